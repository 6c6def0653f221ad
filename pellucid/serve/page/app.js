// The page: a text, its translation, and the tab that looks inside.

import { Problem, getJson, postJson } from "./api.js";
import { closeAlternatives, openAlternatives, watchAlternatives } from "./ui/alternatives.js";
import { watchDocuments } from "./document.js";
import { byId } from "./ui/elements.js";
import { make } from "./ui/dom.js";
import { ask, askSoon, stopAsking } from "./flow.js";
import { finishEntry, remember, watchHistory } from "./history.js";
import { lookInside, watchInside } from "./inside.js";
import { chosenGlossary, chosenModel, drawModels, onModelChange, pickModel } from "./models.js";
import { hideNotice, showNotice, watchNotice } from "./notice.js";
import { joined, readAnswer, saidOtherwise } from "./ui/sentences.js";
import { drawSource, lightSource, watchSource } from "./ui/source.js";
import { watchTabs } from "./tabs.js";
import { drawTarget, focusTarget, lightTarget, watchTarget } from "./ui/target.js";
import { drawThreads } from "./ui/threads.js";

const WAYS = 3;
const SPEAK_AFTER_MS = 1200;
const REMEMBER_AFTER_MS = 1500;

const field = byId("source");
const limits = { max_text_chars: 5000, max_n_best: WAYS + 1 };
let own = null; // what the model said: {text, truncated, sentences, ways}
let shown = []; // the sentences on the page
let clocks = [];

// ---- the source ----

const countOf = (text) => [...text].length; // the server counts code points
const withCommas = (number) => number.toLocaleString("en");

function onType(event) {
  if (event?.isComposing) {
    drawSource([]); // an unfinished character of an input method
    return;
  }
  closeAlternatives();
  hideNotice();
  const text = field.value;
  const excess = drawCounter();
  byId("clear").hidden = text === "";
  drawSource([]);
  lightUp(null, null);
  byId("hint").hidden = text.trim() !== "";
  if (text.trim() === "") {
    stopAsking();
    finishEntry();
    show(null);
  } else if (excess > 0) {
    stopAsking();
    const rule = `A text may have ${withCommas(limits.max_text_chars)} characters`;
    showNotice(
      new Problem("long", `${rule}; this one has ${withCommas(excess)} more.`, { canRetry: false }),
      () => {},
    );
  } else {
    const isPaste = event?.inputType === "insertFromPaste";
    askSoon(requestFor(text), (settled) => onSettled(text, settled), { isPaste });
  }
}

/** Returns by how many characters the text is too long. */
function drawCounter() {
  const length = countOf(field.value);
  const counter = byId("counter");
  counter.textContent = `${withCommas(length)} of ${withCommas(limits.max_text_chars)}`;
  counter.classList.toggle("over", length > limits.max_text_chars);
  return length - limits.max_text_chars;
}

function requestFor(text) {
  return {
    text,
    model: chosenModel()?.name,
    glossary: chosenGlossary(),
    alternatives: Math.min(WAYS, limits.max_n_best - 1),
    alignment: true,
    confidences: true,
  };
}

function onSettled(text, { answer, problem }) {
  if (problem !== undefined) {
    showNotice(problem, askAgain);
    return;
  }
  hideNotice();
  const [translation] = answer.translations;
  const ways = translation.alternatives ?? [];
  show({ ...readAnswer(text, translation), ways });
  if (chosenModel() === null) start(); // the server was down when the page was opened
}

function askAgain() {
  const text = field.value;
  if (text.trim() === "" || countOf(text) > limits.max_text_chars) return;
  ask(requestFor(text), (settled) => onSettled(text, settled));
}

function setText(text) {
  field.value = text;
  onType();
}

// ---- the translation ----

function show(answer) {
  own = answer;
  byId("truncated").hidden = !answer?.truncated;
  byId("truncated").textContent = "The end of a long sentence is beyond what this model can read.";
  showSentences(answer?.sentences ?? []);
  if (answer !== null) {
    clocks.push(setTimeout(() => remember(field.value, answer.text, chosenModel()?.name), REMEMBER_AFTER_MS));
  }
}

function showSentences(sentences, { note = "" } = {}) {
  clocks.forEach(clearTimeout);
  clocks = [];
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
  lookInside(sentences, chosenModel()?.name);
  const speak = () => {
    byId("spoken").textContent = text === "" ? "" : `Translation: ${text}`;
  };
  clocks.push(setTimeout(speak, SPEAK_AFTER_MS));
}

function drawWays(text) {
  const others = (own?.ways ?? []).filter((way) => way !== text && way !== own.text);
  byId("others").hidden = others.length === 0;
  byId("others-list").replaceChildren(
    ...others.map((way) => make("li", {}, make("button", { type: "button", dir: "auto" }, way))),
  );
}

function takeWay(text) {
  const before = own.sentences[0];
  const bare = { text, tokens: [], confidences: null, alignment: null };
  showSentences([saidOtherwise({ ...before, before: "", after: "" }, bare)], {
    note: "Another way to say it.",
  });
  byId("own").focus();
}

function takeAlternative(word, alternative) {
  const old = shown[word.sentence];
  const isOwn = alternative.text === own.sentences[word.sentence].text;
  const next = isOwn ? own.sentences[word.sentence] : saidOtherwise(old, alternative);
  const sentences = shown.map((each, index) => (index === word.sentence ? next : each));
  const isAllOwn = joined(sentences) === own.text;
  showSentences(sentences, { note: isAllOwn ? "" : "Goes on from the word you chose." });
  focusTarget(word.sentence, word.index);
}

function openWord(word) {
  const sentence = shown[word.sentence];
  const [position] = sentence.words[word.index].tokens;
  const model = chosenModel()?.name;
  const ask = (question, signal) => postJson("/v1/alternatives", { ...question, model }, signal);
  openAlternatives(word.element, sentence, position, ask, (alternative) =>
    takeAlternative(word, alternative),
  );
}

// ---- who goes with whom ----

function lightUp(side, word) {
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

// ---- buttons ----

async function copy() {
  const text = joined(shown);
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(byId("target"));
    said = "Marked: press Ctrl+C";
  }
  byId("copy").textContent = said;
  byId("spoken").textContent = said;
  setTimeout(() => {
    byId("copy").textContent = "Copy";
  }, 2000);
}

function watchButtons() {
  field.addEventListener("input", onType);
  field.addEventListener("compositionend", () => onType());
  byId("clear").addEventListener("click", () => {
    setText("");
    field.focus();
  });
  byId("copy").addEventListener("click", copy);
  byId("cancel").addEventListener("click", () => {
    stopAsking();
    field.focus();
    showNotice(new Problem("cancelled", "Cancelled. Your text is still here."), askAgain);
  });
  byId("own").addEventListener("click", () => {
    showSentences(own.sentences);
    focusTarget(0, 0);
  });
  byId("others-list").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button !== null) takeWay(button.textContent);
  });
  byId("sure").addEventListener("change", (event) => {
    document.body.classList.toggle("plain", !event.target.checked);
  });
}

async function start() {
  try {
    const [models, given] = await Promise.all([getJson("/v1/models"), getJson("/v1/limits")]);
    Object.assign(limits, given);
    drawModels(models.models);
    drawCounter();
    if (own === null) onType();
  } catch (problem) {
    if (own === null) showNotice(problem, start);
  }
}

watchNotice();
watchTabs();
watchDocuments();
watchInside();
watchButtons();
watchSource((word) => lightUp("source", word));
watchTarget({ point: (word) => lightUp("target", word), open: openWord });
watchAlternatives({ close: () => lightUp(null, null) });
watchHistory((entry) => {
  finishEntry();
  pickModel(entry.model);
  setText(entry.source);
  field.focus();
});
onModelChange(() => onType());
start();
