// The whole walk through the model, in a frame of its own, or as a file to keep.

import { postForText, postJson } from "./api.js";
import { make } from "./ui/dom.js";

const COMPUTING = "Computing every step …";

/** A section that walks through `body` ({text, target, model}) when asked to. */
export function drawWalk(body) {
  const open = make("button", { type: "button" }, "Open the walk");
  const save = make("button", { type: "button", class: "quiet" }, "Save it as a file");
  const status = make("p", { class: "note", role: "status" });
  const place = make("div", { class: "walk-place" });
  open.addEventListener("click", () =>
    attempt(open, status, COMPUTING, async () => {
      await showIn(place, await walkOf(body));
      open.hidden = true;
    }),
  );
  save.addEventListener("click", () =>
    attempt(save, status, COMPUTING, async () => {
      download(await postForText("/v1/walk", { ...body, format: "html" }), "pellucid-walk.html");
    }),
  );
  return make(
    "section",
    { class: "walk", "aria-labelledby": "walk-title" },
    make("h2", { id: "walk-title" }, "Every step"),
    make(
      "p",
      {},
      "From the words to the translation: each formula of the model with the matrices of this sentence in its place.",
    ),
    make("p", { class: "buttons" }, open, save),
    status,
    place,
  );
}

/** Of the model's own translation, with its search, if that is what is on the page. */
async function walkOf({ target, ...rest }) {
  const own = await postJson("/v1/walk", rest);
  return own.sentence.target === target ? own : postJson("/v1/walk", { ...rest, target });
}

/** Do `work` at the press of `button`; `status` says `working`, and what went wrong. */
export async function attempt(button, status, working, work) {
  button.disabled = true;
  status.textContent = working;
  try {
    await work();
    status.textContent = "";
  } catch (problem) {
    status.textContent = problem.message;
  }
  button.disabled = false;
}

/** A frame, which keeps the report's looks and its scrolling to itself. */
function showIn(place, report) {
  const frame = make("iframe", { src: "/static/walk.html", title: "A walk through the model" });
  return new Promise((resolve) => {
    frame.addEventListener("load", () => {
      frame.contentWindow.postMessage({ kind: "walk", report }, location.origin);
      resolve();
    });
    place.replaceChildren(frame);
  });
}

/** Hand the reader `html` as a file. */
export function download(html, name) {
  const address = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
