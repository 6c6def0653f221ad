// Which model translates, between which languages, and with which terms.

import { byId } from "./ui/elements.js";
import { make } from "./ui/dom.js";

const select = byId("model");
const glossary = byId("glossary");
const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });
let models = [];

/** The model that is chosen, as GET /v1/models tells of it; null before it is known. */
export const chosenModel = () => models.find((model) => model.name === select.value) ?? null;

/** The name of the glossary whose terms are asked for; undefined for none. */
export const chosenGlossary = () => glossary.value || undefined;

/** Offer `found`, keeping the choice if it is still there. */
export function drawModels(found) {
  const before = select.value;
  models = found;
  select.replaceChildren(
    ...models.map((model) => make("option", { value: model.name }, titleOf(model))),
  );
  select.disabled = models.length < 2;
  if (models.some((model) => model.name === before)) select.value = before;
  label();
}

/** Choose by name; nothing happens if there is no such model. */
export function pickModel(name) {
  if (!models.some((model) => model.name === name)) return;
  select.value = name;
  label();
}

/** Call `handler()` when the reader chooses another one, or another glossary. */
export function onModelChange(handler) {
  select.addEventListener("change", () => {
    label();
    handler();
  });
  glossary.addEventListener("change", () => handler());
}

function titleOf(model) {
  const [from, to] = [languageOf(model.source_language), languageOf(model.target_language)];
  if (from === null || to === null) return model.name;
  return models.length > 1 || model.name ? `${from} – ${to} (${model.name})` : `${from} – ${to}`;
}

function languageOf(code) {
  if (!code || code === "und") return null;
  try {
    return names.of(code) ?? null;
  } catch {
    return null; // not a code that Intl can read
  }
}

function label() {
  const model = chosenModel();
  if (model === null) return;
  byId("source-language").textContent = languageOf(model.source_language) ?? "Source";
  byId("target-language").textContent = languageOf(model.target_language) ?? "Translation";
  setLanguage(byId("source"), model.source_language);
  setLanguage(byId("target"), model.target_language);
  drawGlossaries(model.glossaries ?? []);
}

/** Offer the glossaries of the model, keeping the choice if it is still there. */
function drawGlossaries(names) {
  const before = glossary.value;
  glossary.replaceChildren(
    make("option", { value: "" }, "none"),
    ...names.map((name) => make("option", { value: name }, name)),
  );
  glossary.value = names.includes(before) ? before : "";
  glossary.hidden = byId("glossary-label").hidden = names.length === 0;
}

function setLanguage(element, code) {
  if (languageOf(code) === null) element.removeAttribute("lang");
  else element.lang = code;
}
