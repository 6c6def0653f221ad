// What was translated in this tab; it lives in memory and goes with the tab.

import { byId } from "./ui/elements.js";
import { make } from "./ui/dom.js";

const MOST = 30;
const box = byId("history");
const list = byId("history-list");
let entries = []; // newest first: {source, text, model}
let current = null;

/** `restore(entry)` brings one back. */
export function watchHistory(restore) {
  byId("forget").addEventListener("click", () => {
    entries = [];
    current = null;
    draw();
    byId("source").focus();
  });
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button !== null) restore(entries[Number(button.dataset.index)]);
  });
}

/** Keep a translation; typing on at the same text replaces it. */
export function remember(source, text, model) {
  const entry = { source: source.trim(), text, model };
  const isSame = (other) => other.source === entry.source && other.model === entry.model;
  const isGrown =
    current !== null &&
    current.model === model &&
    (entry.source.startsWith(current.source) || current.source.startsWith(entry.source));
  entries = entries.filter((other) => !isSame(other) && !(isGrown && other === current));
  entries = [entry, ...entries].slice(0, MOST);
  current = entry;
  draw();
}

/** The next text is another one, even if it begins alike. */
export function finishEntry() {
  current = null;
}

function draw() {
  const earlier = entries.filter((entry) => entry !== current);
  box.hidden = earlier.length === 0;
  list.replaceChildren(
    ...earlier.map((entry) =>
      make(
        "li",
        {},
        make(
          "button",
          { type: "button", "data-index": entries.indexOf(entry) },
          make("span", { class: "from", dir: "auto" }, entry.source),
          make("span", { class: "to", dir: "auto" }, entry.text),
        ),
      ),
    ),
  );
}
