// The translation on the page: the model's own, another way to say it, or one that goes on from a
// word that the reader chose; and which words of source and translation go together.

import { openAlternatives, watchAlternatives } from "./alternatives.js";
import { make } from "./dom.js";
import { byId } from "./elements.js";
import { joined, saidOtherwise } from "./sentences.js";
import { drawSource, lightSource, watchSource } from "./source.js";
import { drawTarget, focusTarget, lightTarget, watchTarget } from "./target.js";
import { drawThreads } from "./threads.js";

const SPEAK_AFTER_MS = 1200; // a screen reader says what was typed last, not every letter
const COPIED_MS = 2000;

let own = null; // what the model said: { text, warnings, sentences, ways: [{sentence, text}] }
let shown = []; // the sentences on the page
let speaking = null;
let handlers = { ask: null, announce: (text) => text, show: () => {} };

/**
 * Watch the words and buttons of the translation.
 *
 * `ask(question, signal)` promises what `openAlternatives` lists, and is null if words have no
 * alternatives; `announce(text)` is what a screen reader says of a translation; `show(sentences)` is
 * called whenever other sentences are shown.
 */
export function watchTranslation({ ask, announce, show = () => {} }) {
  handlers = { ask, announce, show };
  watchSource((word) => lightUp("source", word));
  watchTarget({ point: (word) => lightUp("target", word), open: openWord });
  watchAlternatives({ close: () => lightUp(null, null) });
  byId("copy").addEventListener("click", copy);
  byId("own").addEventListener("click", () => {
    showSentences(own.sentences);
    focusTarget(0, 0);
  });
  byId("others-list").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button !== null) takeWay(own.ways[Number(button.dataset.index)]);
  });
  byId("sure").addEventListener("change", (event) => {
    document.body.classList.toggle("plain", !event.target.checked);
  });
}

/** What the model said to the text in the field; null before it has. */
export const ownTranslation = () => own;

/** Show what the model said; nothing for null. */
export function showTranslation(answer) {
  own = answer;
  drawDoubts(answer?.warnings ?? []);
  showSentences(answer?.sentences ?? []);
}

/** Why the translation should not be trusted, a sentence each. */
function drawDoubts(warnings) {
  byId("doubts").hidden = warnings.length === 0;
  byId("doubts").replaceChildren(...warnings.map(({ message }) => make("li", {}, asSentence(message))));
}

const asSentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function showSentences(sentences, { note = "" } = {}) {
  shown = sentences;
  const text = joined(sentences);
  drawTarget(sentences);
  drawSource(sentences);
  drawWays(text);
  lightUp(null, null);
  byId("chosen").hidden = note === "";
  byId("chosen-text").textContent = note;
  byId("copy").hidden = text === "";
  const hasNumbers = sentences.some((each) => each.confidences.some((value) => value !== null));
  byId("legend").hidden = !hasNumbers;
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    byId("spoken").textContent = text === "" ? "" : handlers.announce(text);
  }, SPEAK_AFTER_MS);
  handlers.show(sentences);
}

function drawWays(text) {
  const others = (own?.ways ?? [])
    .map((way, index) => ({ whole: joined(withWay(way)), index }))
    .filter(({ whole }) => whole !== text && whole !== own.text);
  byId("others").hidden = others.length === 0;
  byId("others-list").replaceChildren(
    ...others.map(({ whole, index }) =>
      make("li", {}, make("button", { type: "button", dir: "auto", "data-index": index }, whole)),
    ),
  );
}

/** The model's sentences, one of them said in another way. */
function withWay({ sentence, text }) {
  const bare = { text, tokens: [], confidences: null, alignment: null };
  return own.sentences.map((each, index) => (index === sentence ? saidOtherwise(each, bare) : each));
}

function takeWay(way) {
  showSentences(withWay(way), { note: "Another way to say it." });
  byId("own").focus();
}

function takeAlternative(word, alternative) {
  const old = shown[word.sentence];
  const first = own.sentences[word.sentence];
  const next = alternative.text === first.text ? first : saidOtherwise(old, alternative);
  const sentences = shown.map((each, index) => (index === word.sentence ? next : each));
  const isAllOwn = joined(sentences) === own.text;
  showSentences(sentences, { note: isAllOwn ? "" : "Goes on from the word you chose." });
  focusTarget(word.sentence, word.index);
}

function openWord(word) {
  if (handlers.ask === null) return;
  const sentence = shown[word.sentence];
  const [position] = sentence.words[word.index].tokens;
  openAlternatives(word.element, sentence, position, handlers.ask, (alternative) =>
    takeAlternative(word, alternative),
  );
}

/** Light up a word of one side and its partners on the other; nothing if `word` is null. */
export function lightUp(side, word) {
  if (word === null) {
    lightSource(() => false);
    lightTarget(() => false);
    drawThreads([], []);
    return;
  }
  const { toSource, toTarget } = shown[word.sentence] ?? { toSource: [], toTarget: [] };
  const partners = (side === "target" ? toSource : toTarget)[word.index] ?? new Set();
  const isWord = (sentence, index) => sentence === word.sentence && index === word.index;
  const isPartner = (sentence, index) => sentence === word.sentence && partners.has(index);
  const sources = lightSource(side === "source" ? isWord : isPartner);
  const targets = lightTarget(side === "target" ? isWord : isPartner);
  drawThreads(sources, targets);
}

async function copy() {
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(joined(shown));
  } catch {
    getSelection().selectAllChildren(byId("target"));
    done = "Marked: press Ctrl+C";
  }
  byId("copy").textContent = done;
  byId("spoken").textContent = done;
  setTimeout(() => {
    byId("copy").textContent = "Copy";
  }, COPIED_MS);
}
