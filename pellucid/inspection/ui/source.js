// What one types into, with words that can light up behind the letters.

import { byId } from "./elements.js";
import { make } from "./dom.js";

const field = byId("source");
const under = byId("under");
let words = []; // {start, end, sentence, index}
let spans = [];
let onPoint = () => {};

/** Call `handler(word)` when a word is pointed at or holds the caret, `handler(null)` after. */
export function watchSource(handler) {
  onPoint = handler;
  field.addEventListener("pointermove", (event) => onPoint(wordAt(event.clientX, event.clientY)));
  field.addEventListener("pointerleave", () => onPoint(null));
  field.addEventListener("blur", () => onPoint(null));
  for (const name of ["keyup", "click", "select"]) {
    field.addEventListener(name, () => onPoint(wordOfCaret()));
  }
}

/** Draw the text again below the field; it also gives the field its height. */
export function drawSource(sentences) {
  words = sentences.flatMap((each, sentence) =>
    each.sourceWords.map(({ start, end }, index) => ({ start, end, sentence, index })),
  );
  const text = field.value;
  const parts = [];
  let cursor = 0;
  spans = words.map(({ start, end }) => {
    const span = make("span", {}, text.slice(start, end));
    parts.push(text.slice(cursor, start), span);
    cursor = end;
    return span;
  });
  under.replaceChildren(...parts, `${text.slice(cursor)}\u200b`); // keeps a last empty line
}

/** Light up the words for which `chosen(sentence, index)` holds; returns their elements. */
export function lightSource(chosen) {
  return words.flatMap(({ sentence, index }, at) => {
    const isLit = chosen(sentence, index);
    spans[at].classList.toggle("lit", isLit);
    return isLit ? [spans[at]] : [];
  });
}

function wordAt(x, y) {
  const at = spans.findIndex((span) =>
    [...span.getClientRects()].some(
      (box) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom,
    ),
  );
  return at < 0 ? null : words[at];
}

function wordOfCaret() {
  const caret = field.selectionStart;
  return words.find(({ start, end }) => start <= caret && caret <= end) ?? null;
}
