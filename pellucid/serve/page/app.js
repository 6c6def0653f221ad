// The page: a text, its translation, and the tab that looks inside.

import { Problem, getJson, postJson } from "./api.js";
import { closeAlternatives } from "./ui/alternatives.js";
import { watchDocuments } from "./document.js";
import { byId } from "./ui/elements.js";
import { ask, askSoon, stopAsking } from "./flow.js";
import { finishEntry, remember, watchHistory } from "./history.js";
import { lookInside, watchInside } from "./inside.js";
import { chosenGlossary, chosenModel, drawModels, onModelChange, pickModel } from "./models.js";
import { hideNotice, showNotice, watchNotice } from "./notice.js";
import { readAnswer } from "./ui/sentences.js";
import { drawSource } from "./ui/source.js";
import { watchTabs } from "./tabs.js";
import { lightUp, ownTranslation, showTranslation, watchTranslation } from "./ui/translation.js";

const WAYS = 3;
const REMEMBER_AFTER_MS = 1500;

const field = byId("source");
const limits = { max_text_chars: 5000, max_n_best: WAYS + 1 };
let remembering = null;

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
  show({ ...readAnswer(text, translation), ways: otherWays(translation) }, text);
  if (chosenModel() === null) start(); // the server was down when the page was opened
}

/** The likeliest other ways to say one of the sentences. */
function otherWays({ sentences }) {
  const ways = sentences.flatMap(({ alternatives }, sentence) =>
    (alternatives ?? []).map(({ text, share }) => ({ sentence, text, share })),
  );
  return ways.sort((one, other) => other.share - one.share).slice(0, WAYS);
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

/** Show the answer to `text`; null for none. */
function show(answer, text) {
  showTranslation(answer);
  if (answer === null) return;
  // The text and the model of this answer: the field may hold another text by then.
  const model = chosenModel()?.name;
  remembering = setTimeout(() => remember(text, answer.text, model), REMEMBER_AFTER_MS);
}

function onShown(sentences) {
  clearTimeout(remembering);
  lookInside(sentences, chosenModel()?.name);
}

function askAlternatives(question, signal) {
  return postJson("/v1/alternatives", { ...question, model: chosenModel()?.name }, signal);
}

// ---- buttons ----

function watchButtons() {
  field.addEventListener("input", onType);
  field.addEventListener("compositionend", () => onType());
  byId("clear").addEventListener("click", () => {
    setText("");
    field.focus();
  });
  byId("cancel").addEventListener("click", () => {
    stopAsking();
    field.focus();
    showNotice(new Problem("cancelled", "Cancelled. Your text is still here."), askAgain);
  });
}

async function start() {
  try {
    const [models, given] = await Promise.all([getJson("/v1/models"), getJson("/v1/limits")]);
    Object.assign(limits, given);
    drawModels(models.models);
    drawCounter();
    if (ownTranslation() === null) onType();
  } catch (problem) {
    if (ownTranslation() === null) showNotice(problem, start);
  }
}

watchNotice();
watchTabs();
watchDocuments();
watchInside();
watchButtons();
watchTranslation({
  ask: askAlternatives,
  announce: (text) => `Translation: ${text}`,
  show: onShown,
});
watchHistory((entry) => {
  finishEntry();
  pickModel(entry.model);
  setText(entry.source);
  field.focus();
});
onModelChange(() => onType());
start();
