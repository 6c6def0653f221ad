// The tab that looks inside: every head of every layer for the sentence just translated.

import { postJson } from "./api.js";
import { byId } from "./ui/elements.js";
import { make } from "./ui/dom.js";
import { drawHeads } from "./heads.js";
import { chosenModel } from "./models.js";
import { isInside, onInside, showTranslate } from "./tabs.js";
import { drawLive } from "./live-link.js";
import { drawWalk } from "./walk.js";

const view = byId("view-inside");
let sentences = [];
let model;
let chosen = 0;
let drawn = null; // what is on the page: JSON of the request
let request = null;

/** Wire the view; to be called once. */
export function watchInside() {
  onInside(draw);
  drawEmpty();
}

/** From now on look at `translated`, the sentences on the page. */
export function lookInside(translated, name) {
  sentences = translated.filter((sentence) => sentence.text.trim() !== "");
  model = name;
  chosen = 0;
  if (isInside()) draw();
}

async function draw() {
  if (sentences.length === 0) {
    drawEmpty();
    return;
  }
  const { source, text } = sentences[chosen];
  const body = { text: source, target: text, model, only: ["*.weights"] };
  if (drawn === JSON.stringify(body)) return;
  request?.abort();
  request = new AbortController();
  const status = make("p", { class: "waiting", role: "status" }, "Opening the model …");
  view.replaceChildren(...heading(), status);
  view.setAttribute("aria-busy", "true");
  try {
    const hasAttention = chosenModel()?.kind !== "rnn";
    const capture = hasAttention
      ? await postJson("/v1/inspect", body, request.signal)
      : { names: [] };
    view.replaceChildren(...heading(), drawHeads(capture), ...drawLive({ text: source, model }), drawWalk({ text: source, target: text, model }));
    drawn = JSON.stringify(body);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    const again = make("button", { type: "button" }, "Try again");
    again.addEventListener("click", draw);
    view.replaceChildren(...heading(), make("p", { class: "notice", role: "alert" }, problem.message, again));
    drawn = null;
  }
  view.setAttribute("aria-busy", "false");
}

function drawEmpty() {
  drawn = null;
  const back = make("button", { type: "button" }, "Write a text");
  back.addEventListener("click", showTranslate);
  view.replaceChildren(
    make(
      "div",
      { class: "empty" },
      make("h2", {}, "Nothing to look into yet"),
      make(
        "p",
        {},
        "Translate a sentence first. Here you will then see where every head of the model looked, and every formula with the numbers of your sentence.",
      ),
      back,
    ),
  );
}

function heading() {
  const parts = [];
  if (sentences.length > 1) {
    const select = make(
      "select",
      { id: "inside-sentence" },
      ...sentences.map((each, index) =>
        make("option", { value: index, selected: index === chosen }, `${index + 1}. ${each.source}`),
      ),
    );
    select.addEventListener("change", async () => {
      chosen = Number(select.value);
      await draw();
      byId("inside-sentence")?.focus();
    });
    parts.push(
      make("p", { class: "pick" }, make("label", { for: "inside-sentence" }, "Sentence"), select),
    );
  }
  const { source, text } = sentences[chosen];
  parts.push(
    make(
      "div",
      { class: "pair" },
      make("h2", { class: "hidden" }, "The sentence looked into"),
      make("p", { class: "text", dir: "auto" }, source),
      make("p", { class: "text to", dir: "auto" }, text),
    ),
  );
  return parts;
}
