// What else could stand where a word stands: a list beside the word.

import { byId, percent } from "./elements.js";
import { make, moved } from "./dom.js";
import { isSilent, surface, toWords } from "./words.js";

const popover = byId("alternatives");
const title = byId("alternatives-title");
const list = byId("alternatives-list");
const note = byId("alternatives-note");
const COUNT = 6;
const MARGIN = 8; // pixels, as are those below
const ROUND_THE_LIST = 56;
const LEAST = 160;
const MOST = 432;

let pending = null;
let anchor = null;
let options = [];
let active = 0;
let onPick = () => {};
let onClose = () => {};

/** `pick(alternative)` when one is taken, `close()` when the reader turns away. */
export function watchAlternatives({ close }) {
  onClose = close;
  list.addEventListener("keydown", onKey);
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option !== null) take(Number(option.dataset.index));
  });
  list.addEventListener("pointermove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option !== null) activate(Number(option.dataset.index));
  });
  document.addEventListener("pointerdown", (event) => {
    if (!popover.hidden && !popover.contains(event.target)) closeAlternatives();
  });
  popover.addEventListener("focusout", (event) => {
    if (event.relatedTarget !== null && !popover.contains(event.relatedTarget)) closeAlternatives();
  });
  addEventListener("resize", () => closeAlternatives());
}

/**
 * Open the list below `element`, for the token at `position` of `sentence`.
 *
 * `ask(question, signal)` promises `{ alternatives }` for `{ text, prefix, count }`.
 */
export async function openAlternatives(element, sentence, position, ask, pick) {
  closeAlternatives();
  anchor = element;
  onPick = pick;
  anchor.setAttribute("aria-expanded", "true");
  anchor.classList.add("open");
  title.textContent = `Instead of “${element.textContent}”`;
  note.textContent = "Asking the model …";
  list.replaceChildren();
  popover.hidden = false;
  place();
  list.focus({ preventScroll: true });
  pending = new AbortController();
  try {
    const question = { text: sentence.read, prefix: sentence.tokens.slice(0, position), count: COUNT };
    const answer = await ask(question, pending.signal);
    show(answer.alternatives, sentence, position);
  } catch (error) {
    if (error.name === "AbortError") return;
    note.textContent = error.message;
  }
  place();
}

function show(alternatives, sentence, position) {
  options = alternatives;
  active = Math.max(
    0,
    options.findIndex((option) => option.token === sentence.tokens[position]),
  );
  list.replaceChildren(
    ...options.map((option, index) =>
      make(
        "li",
        { role: "option", id: `alternative-${index}`, "data-index": index, "aria-selected": false },
        ...describe(option, position, option.token === sentence.tokens[position]),
      ),
    ),
  );
  note.textContent = options.length === 0 ? "The model sees no other way to go on here." : "";
  if (options.length > 0) activate(active);
}

/** A word where the token is part of one, its probability, and how the sentence goes on. */
function describe(option, position, isCurrent) {
  const word = toWords(option.text, option.tokens).find(({ tokens }) => tokens.includes(position));
  const spelled = isSilent(option.token) ? "(end here)" : (word?.text ?? surface(option.token));
  const rest = word === undefined ? option.text : option.text.slice(word.start);
  const meter = make("span", { class: "meter", "aria-hidden": "true" }, make("span"));
  meter.firstChild.style.inlineSize = `${Math.max(option.probability * 100, 1)}%`;
  const goesOn = rest === spelled ? "" : `${word?.start > 0 ? "… " : ""}${rest}`;
  return [
    make("bdi", { class: "option-word" }, spelled),
    make("span", { class: "option-sure" }, percent(option.probability)),
    meter,
    make(
      "span",
      { class: "option-text", dir: "auto" },
      isCurrent ? "as it stands" : goesOn,
    ),
  ];
}

function activate(index) {
  active = index;
  [...list.children].forEach((child, at) => child.setAttribute("aria-selected", at === index));
  list.setAttribute("aria-activedescendant", `alternative-${index}`);
  list.children[index].scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    closeAlternatives({ isReturning: true });
  } else if ((event.key === "Enter" || event.key === " ") && options.length > 0) {
    event.preventDefault();
    take(active);
  } else {
    const to = moved(event, active, options.length);
    if (to < 0) return;
    event.preventDefault();
    activate(to);
  }
}

function take(index) {
  const option = options[index];
  const pick = onPick;
  closeAlternatives({ isReturning: true });
  pick(option);
}

/** Close the list; the focus goes back to the word if `isReturning`. */
export function closeAlternatives({ isReturning = false } = {}) {
  pending?.abort();
  pending = null;
  if (popover.hidden) return;
  popover.hidden = true;
  options = [];
  list.removeAttribute("aria-activedescendant");
  anchor.removeAttribute("aria-expanded");
  anchor.classList.remove("open");
  if (isReturning) anchor.focus();
  onClose();
}

/** Below the word, or above it where there is more room. */
function place() {
  const word = anchor.getBoundingClientRect();
  const below = innerHeight - word.bottom;
  const isBelow = below > 320 || below > word.top;
  const room = (isBelow ? below : word.top) - 2 * MARGIN - ROUND_THE_LIST;
  list.style.maxBlockSize = `${Math.min(Math.max(room, LEAST), MOST)}px`;
  const own = popover.getBoundingClientRect();
  const right = document.documentElement.clientWidth - own.width - MARGIN;
  const top = isBelow ? word.bottom + MARGIN : word.top - own.height - MARGIN;
  popover.style.left = `${Math.max(MARGIN, Math.min(word.left, right)) + scrollX}px`;
  popover.style.top = `${top + scrollY}px`;
}
