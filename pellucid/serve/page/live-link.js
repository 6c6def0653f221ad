// The model as a page of its own, which computes in the browser: a link to it, and the file to keep.

import { getText } from "./api.js";
import { holdText } from "./live-text.js";
import { make } from "./ui/dom.js";
import { attempt, download } from "./walk.js";

/** A section that opens `model` live with `text`; none before the page knows which model it asks. */
export function drawLive({ text, model }) {
  if (model === undefined) return [];
  const address = `/static/live.html#model=${encodeURIComponent(model)}`;
  // the tab is ours, and gets the sentence and the key from this one
  const open = make("a", { class: "button", href: address, target: "_blank", rel: "opener" }, "Open the model live");
  const save = make("button", { type: "button", class: "quiet" }, "Save the model as a file");
  const status = make("p", { class: "note", role: "status" });
  open.addEventListener("click", () => holdText(text));
  save.addEventListener("click", () =>
    attempt(save, status, "Fetching the model …", async () => {
      download(await getText(`/live/${encodeURIComponent(model)}`), `${model}.html`);
    }),
  );
  const section = make(
    "section",
    { class: "walk", "aria-labelledby": "live-title" },
    make("h2", { id: "live-title" }, "The model at work"),
    make(
      "p",
      {},
      "In a tab of its own the model computes in your browser: every layer as you type, heads to switch off, why this word and not that one, a tour and worked examples.",
    ),
    make("p", { class: "buttons" }, open, save),
    status,
  );
  return [section];
}
