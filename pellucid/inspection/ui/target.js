// The translation, word by word: shaded by confidence, one tab stop, arrows move along it.

import { byId, percent } from "./elements.js";
import { isRightToLeft, make, moved } from "./dom.js";
import { level } from "./words.js";

const field = byId("target");
let words = []; // {sentence, index, element}
let handlers = { point: () => {}, open: () => {} };

/** `point(word|null)` as the reader looks at a word, `open(word)` for its alternatives. */
export function watchTarget({ point, open }) {
  handlers = { point, open };
  const wordOf = (event) => words.find(({ element }) => element === event.target) ?? null;
  field.addEventListener("pointerover", (event) => handlers.point(wordOf(event)));
  field.addEventListener("pointerleave", () => handlers.point(null));
  field.addEventListener("focusin", (event) => handlers.point(wordOf(event)));
  field.addEventListener("focusout", () => handlers.point(null));
  field.addEventListener("click", (event) => {
    const word = wordOf(event);
    const isSelecting = !getSelection().isCollapsed;
    if (word !== null && !isSelecting) handlers.open(word);
  });
  field.addEventListener("keydown", (event) => {
    const word = wordOf(event);
    if (word === null) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      handlers.open(word);
      return;
    }
    const from = words.indexOf(word);
    const to = moved(event, from, words.length, isRightToLeft(field));
    if (to < 0) return;
    event.preventDefault();
    makeTabStop(words[to]);
    words[to].element.focus();
  });
}

/** Show `sentences`; nothing for an empty list. */
export function drawTarget(sentences) {
  words = [];
  const parts = sentences.flatMap((sentence, number) => [
    sentence.before,
    ...drawSentence(sentence, number),
    sentence.after,
  ]);
  field.replaceChildren(...parts);
  if (words.length > 0) makeTabStop(words[0]);
}

function drawSentence(sentence, number) {
  const parts = [];
  let cursor = 0;
  sentence.words.forEach((word, index) => {
    const sure = sentence.confidences[index];
    const element = make(
      "span",
      {
        role: "button",
        tabindex: -1,
        "aria-haspopup": "listbox",
        class: `word sure-${level(sure)}`,
        title: sure === null ? null : `${percent(sure)} sure`,
      },
      word.text,
    );
    parts.push(sentence.text.slice(cursor, word.start), element);
    words.push({ sentence: number, index, element });
    cursor = word.end;
  });
  parts.push(sentence.text.slice(cursor));
  return parts;
}

function makeTabStop(word) {
  for (const each of words) each.element.tabIndex = each === word ? 0 : -1;
}

/** Light up the words for which `chosen(sentence, index)` holds; returns their elements. */
export function lightTarget(chosen) {
  return words.flatMap(({ sentence, index, element }) => {
    const isLit = chosen(sentence, index);
    element.classList.toggle("lit", isLit);
    return isLit ? [element] : [];
  });
}

/** Put the focus on a word, or on the last one before it that is still there. */
export function focusTarget(sentence, index) {
  const before = words.filter((word) => word.sentence === sentence && word.index <= index);
  const word = before.at(-1) ?? words[0];
  if (word === undefined) return;
  makeTabStop(word);
  word.element.focus();
}
