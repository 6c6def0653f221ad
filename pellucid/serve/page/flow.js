// From keystrokes to an answer: waits for a pause, asks once, drops what came too late.

import { postJson } from "./api.js";
import { byId } from "./ui/elements.js";

const PAUSE_MS = 280;
const SOON_MS = 40; // after a paste nobody types on
const BUSY_AFTER_MS = 250;
const SAY_SO_AFTER_MS = 2000;

const result = byId("result");
const working = byId("working");

let serial = 0;
let pause = 0;
let request = null;
let clocks = [];

/** Ask for a translation after a pause; `settle({answer} | {problem})` gets the latest only. */
export function askSoon(body, settle, { isPaste = false } = {}) {
  stopAsking();
  pause = setTimeout(() => ask(body, settle), isPaste ? SOON_MS : PAUSE_MS);
}

/** Ask now. */
export async function ask(body, settle) {
  stopAsking();
  const mine = serial;
  request = new AbortController();
  showBusy();
  try {
    const answer = await postJson("/v1/translate", body, request.signal);
    if (mine === serial) finish(() => settle({ answer }));
  } catch (problem) {
    if (mine === serial && problem.name !== "AbortError") finish(() => settle({ problem }));
  }
}

/** Forget the planned request and leave the running one. */
export function stopAsking() {
  serial += 1;
  clearTimeout(pause);
  request?.abort();
  request = null;
  showIdle();
}

function finish(settle) {
  request = null;
  showIdle();
  settle();
}

function showBusy() {
  clocks = [
    setTimeout(() => result.setAttribute("aria-busy", "true"), BUSY_AFTER_MS),
    setTimeout(() => {
      working.hidden = false;
    }, SAY_SO_AFTER_MS),
  ];
}

function showIdle() {
  clocks.forEach(clearTimeout);
  clocks = [];
  result.setAttribute("aria-busy", "false");
  if (working.contains(document.activeElement)) byId("source").focus();
  working.hidden = true;
}
