// The page of an exported model: a text, its translation as one types, and the model at work below.

import { closeAlternatives } from "../ui/alternatives.js";
import { make } from "../ui/dom.js";
import { byId } from "../ui/elements.js";
import { readAnswer } from "../ui/sentences.js";
import { drawSource } from "../ui/source.js";
import { lightUp, ownTranslation, showTranslation, watchTranslation } from "../ui/translation.js";
import { startEngine } from "./engine_client.js";
import { mountViews } from "./views.js";
import { asSentence, isBlank, otherWays, sentencesOf, spaced } from "./texts.js";

const WAYS = 3;
const NEW_TOKENS = 30;
const MOST_CHARACTERS = 5000;
const TOGETHER = 8; // sentences that are translated at once: between, the page sees whether someone typed on
const REMEMBERED = 200; // sentences whose translations are kept, or twice those of a longer text
const BUSY_AFTER_MS = 250;

const field = byId("source");
const header = JSON.parse(take("pellucid-model"));
const isTranslator = header.source_reads === "pairs";
const listeners = [];
const known = new Map(); // what was used last comes last
let mostKnown = REMEMBERED;
let engine = null;
let isAsking = false;

/** The text of an element, which is removed: it is as large as what is read of it. */
function take(id) {
  const element = byId(id);
  const text = element.textContent;
  element.remove();
  return text;
}

/** The JSON of an element as `_packed` of export.py wrote it. */
function readPacked(id) {
  const inflated = new Blob([bytesOf(take(id))]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(inflated).json();
}

function bytesOf(packed) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(packed);
  const text = atob(packed); // an older browser
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

// ---- from keystrokes to an answer ----

const isGreedy = () => byId("greedy").checked;

/** Ask for what stands in the field; while one text is computed, only the latest other one waits. */
async function askNow() {
  if (engine === null || isAsking) return;
  isAsking = true;
  const busy = setTimeout(() => byId("result").setAttribute("aria-busy", "true"), BUSY_AFTER_MS);
  let text = null;
  while (text !== field.value || isStale) {
    text = field.value;
    isStale = false;
    try {
      await answer(text);
      byId("notice").hidden = true;
    } catch (problem) {
      showTranslation(null); // that of an earlier text
      byId("notice-text").textContent = problem.message;
      byId("notice").hidden = false;
    }
  }
  isAsking = false;
  clearTimeout(busy);
  byId("result").setAttribute("aria-busy", "false");
}

let isStale = false; // the way to search changed, and not the text

async function answer(text) {
  const limited = [...text].slice(0, MOST_CHARACTERS).join("");
  if (isBlank(limited)) {
    showTranslation(null);
    tell(text, null);
    return;
  }
  const places = isTranslator ? sentencesOf(limited, header) : [{ before: "", source: limited, after: "", read: limited }];
  const answers = new Map([["", BLANK]]);
  const asked = [...new Set(places.map(({ read }) => read).filter((read) => read !== ""))];
  mostKnown = Math.max(REMEMBERED, 2 * asked.length);
  for (let from = 0; from < asked.length; from += TOGETHER) {
    const sources = asked.slice(from, from + TOGETHER);
    (await ask(sources)).forEach((each, at) => answers.set(sources[at], each));
    if (field.value !== text) return; // someone typed on
  }
  const said = places.map(({ read }) => answers.get(read));
  const own = places.map((place, index) => asSentence(place, said[index]));
  const sentences = spaced(own, header.characters.wide);
  const ways = sentences.length === 1 && isTranslator ? otherWays(said[0], WAYS) : [];
  const translation = {
    text: sentences.map((each) => each.before + each.text + each.after).join(""),
    warnings: distinct([
      ...(limited === text ? [] : [{ kind: "truncated", message: `only its first ${MOST_CHARACTERS} characters are read` }]),
      ...sentences.flatMap((each) => each.warnings),
    ]),
    sentences,
  };
  const shown = ways.map((text) => ({ sentence: 0, text }));
  showTranslation({ ...readAnswer(limited, translation), ways: shown });
  // the views show one sentence: the first
  const first = places.findIndex(({ source }) => source !== "");
  tell(places[first].source, said[first]);
}

/** The warnings of several sentences, each once. */
const distinct = (warnings) => [...new Map(warnings.map((each) => [each.message, each])).values()];

const BLANK = { text: "", tokens: [], source_tokens: [], log_probabilities: [], alignment: [], score: 0 };

/** What the model says to each of some sentences; those that it has not met yet it answers together. */
async function ask(sources) {
  const way = isGreedy();
  const key = (source) => `${way} ${source}`;
  const answers = new Map(sources.map((source) => [source, known.get(key(source))]));
  const others = sources.filter((source) => answers.get(source) === undefined);
  const found = others.length === 0 ? [] : await compute(others, way ? { beam_size: 1 } : { n_best: WAYS + 1 });
  others.forEach((source, at) => answers.set(source, found[at]));
  for (const [source, answer] of answers) {
    known.delete(key(source));
    known.set(key(source), answer);
  }
  while (known.size > mostKnown) known.delete(known.keys().next().value);
  return sources.map((source) => answers.get(source));
}

function compute(sources, search) {
  const [text] = sources; // only a translator reads more than one
  switch (header.source_reads) {
    case "source":
      return engine.fillMasks(text).then((filled) => [{ ...BLANK, ...filled, log_probabilities: ofMasks(filled) }]);
    case "target":
      return engine.continueText(text, NEW_TOKENS, search).then((said) => [{ ...BLANK, ...said }]);
    default:
      return engine.translateLines(sources, search);
  }
}

/** Only words that were guessed have a probability. */
function ofMasks({ tokens, masks }) {
  const found = new Map(masks.map(({ at, candidates }) => [at, Math.log(candidates[0].probability)]));
  return tokens.map((_, at) => found.get(at) ?? null);
}

function tell(text, translation) {
  for (const listener of listeners) listener({ text, translation });
}

// ---- the field ----

function onType(event) {
  if (event?.isComposing) {
    drawSource([]); // an unfinished character of an input method
    return;
  }
  closeAlternatives();
  byId("clear").hidden = field.value === "";
  byId("hint").hidden = field.value.trim() !== "";
  if (event?.type === "input") isBuilding = false;
  byId("invite").hidden = byId("chips").childElementCount === 0 || (field.value.trim() !== "" && !isBuilding);
  drawSource([]);
  lightUp(null, null);
  askNow();
}

function setText(text) {
  field.value = text;
  onType();
}

let isBuilding = false; // the text is made of the words that are offered

/** What an empty field offers: the example, or words that the model knows, to be put one after the other. */
function drawInvitation() {
  const isWhole = header.example !== "";
  const gap = header.source_reads === "source" ? ["[MASK]"] : [];
  const texts = isWhole ? [header.example] : [...gap, ...header.words];
  byId("invite-says").textContent = isWhole ? "For example" : "Words that the model knows, among others:";
  const { kind } = header.source_reads === "target" ? header.target_tokenizer : (header.source_tokenizer ?? header.target_tokenizer);
  const between = kind === "character" ? "" : " ";
  for (const text of texts) {
    const button = make("button", { type: "button", dir: "auto" }, text);
    button.addEventListener("click", () => {
      isBuilding = !isWhole;
      const before = isWhole ? "" : field.value.trimEnd();
      setText(before === "" ? text : `${before}${between}${text}`);
      if (isWhole) field.focus();
    });
    byId("chips").append(make("li", {}, button));
  }
}

// ---- the translation ----

async function askAlternatives({ text, prefix, count }) {
  const ids = await engine.idsOf(prefix);
  const found = await engine.alternatives(text, ids, count, isGreedy() ? { beam_size: 1 } : {});
  const alternatives = found.map((each) => ({
    ...asSentence({ before: "", source: text, after: "", read: text }, each),
    token: each.token,
    probability: each.probability,
  }));
  return { alternatives };
}

// ---- buttons ----

function watchButtons() {
  field.addEventListener("input", onType);
  field.addEventListener("compositionend", () => onType());
  byId("clear").addEventListener("click", () => {
    setText("");
    field.focus();
  });
  byId("search").hidden = header.source_reads === "source"; // a gap is filled, not searched
  for (const id of ["greedy", "beam"]) {
    byId(id).addEventListener("change", () => {
      isStale = true;
      askNow();
    });
  }
}

async function start() {
  watchButtons();
  drawInvitation();
  watchTranslation({
    ask: isTranslator ? askAlternatives : null,
    announce: (text) => `${byId("target-language").textContent}: ${text}`,
  });
  if (field.value === "") field.value = header.example; // a browser may keep what was typed before
  onType();
  let views = null;
  try {
    const script = byId("pellucid-engine").textContent;
    engine = await startEngine(script, header, bytesOf(take("pellucid-weights")));
    views = await Promise.all(["pellucid-plan", "pellucid-film", "pellucid-scenes"].map(readPacked));
  } catch (problem) {
    byId("notice-text").textContent = `This browser cannot open the model: ${problem.message}`;
    byId("notice").hidden = false;
    return;
  }
  await askNow();
  document.documentElement.dataset.ready = "true";
  const [plan, film, scenes] = views;
  mountViews(byId("explorer"), {
    engine: { ...engine, onChange: (listener) => listeners.push(listener) },
    plan,
    film,
    scenes,
    header,
    setText,
  });
  const first = ownTranslation()?.sentences.find(({ source }) => source !== "");
  if (first === undefined) return;
  const [said] = await ask([first.source]);
  tell(first.source, said);
}

start();
