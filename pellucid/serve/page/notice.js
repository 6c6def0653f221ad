// What went wrong, in words, and what happens next.

import { setKey } from "./api.js";
import { byId } from "./ui/elements.js";

const box = byId("notice");
const text = byId("notice-text");
const countdown = byId("notice-countdown");
const button = byId("notice-retry");
const keyForm = byId("key-form");
const keyField = byId("key");

let timer = 0;
let again = () => {};

/** Wire the buttons; to be called once. */
export function watchNotice() {
  button.addEventListener("click", () => {
    hideNotice();
    again();
  });
  keyForm.addEventListener("submit", (event) => {
    event.preventDefault();
    if (keyField.value.trim() === "") return;
    setKey(keyField.value);
    keyField.value = "";
    hideNotice();
    again();
  });
}

/** Say `problem`; `retry` runs by itself if waiting helps, else at the press of a button. */
export function showNotice(problem, retry) {
  hideNotice();
  again = retry;
  if (problem.kind === "key") {
    keyForm.hidden = false;
    if (document.activeElement === document.body) keyField.focus();
    return;
  }
  text.textContent = problem.message;
  button.hidden = !problem.canRetry;
  countdown.textContent = "";
  box.hidden = false;
  if (problem.retrySeconds !== null && problem.retrySeconds !== undefined) {
    count(problem.retrySeconds);
  }
}

function count(seconds) {
  if (seconds <= 0) {
    hideNotice();
    again();
    return;
  }
  countdown.textContent = `Trying again in ${seconds} s.`;
  timer = setTimeout(() => count(seconds - 1), 1000);
}

/** Remove the notice, and cancel an attempt that was planned. */
export function hideNotice() {
  clearTimeout(timer);
  box.hidden = true;
  text.textContent = "";
  keyForm.hidden = true;
}
