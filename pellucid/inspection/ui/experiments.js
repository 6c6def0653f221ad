// What can be done to a live model: parts off, mask, positions, norm, search; and what it says then.

import { make } from "./dom.js";

/** Nothing is changed. */
export const NO_EDITS = Object.freeze({ off: [], rows: [], mask: true, positions: true, norm: null });

/**
 * The bar of experiments for a model with this config, whose searches have the settings `usual`:
 * `{ element, wire(explorer), update(explorer) }`.
 */
export function experimentBar(config, usual) {
  const cut = make("button", { type: "button", class: "tool", "aria-pressed": "false" }, "Switch parts off");
  const switches = make("div", { class: "switches" }, cut);
  const controls = [];
  const toggle = (text, hint, isOn, set) => {
    const button = make("button", { type: "button", class: "tool", "aria-pressed": "false", title: hint }, text);
    switches.append(button);
    controls.push({ button, isOn, set });
  };
  if (!config.kind.startsWith("rnn")) {
    if (config.kind !== "encoder") toggle("Drop the mask", "The decoder may look at the words that follow.", (edits) => !edits.mask, (edits, isOn) => ({ ...edits, mask: !isOn }));
    toggle("Drop the positions", "The model does not know the order of words.", (edits) => !edits.positions, (edits, isOn) => ({ ...edits, positions: !isOn }));
    const other = config.norm === "pre" ? "post" : "pre";
    toggle(
      "Swap the norm",
      `The norm moves ${other === "post" ? "behind each sum" : "before each sublayer"}; the weights stay.`,
      (edits) => edits.norm !== null,
      (edits, isOn) => ({ ...edits, norm: isOn ? other : null }),
    );
  }
  const isSearched = config.kind === "transformer" || config.kind.startsWith("rnn");
  const sliders = (isSearched ? SLIDERS : []).map((slider) => makeSlider({ ...slider, start: usual[slider.key] }));
  const reset = make("button", { type: "button" }, "Undo all");
  const hint = hintOf(config);
  const compare = make("div", { class: "compare", "aria-live": "polite" }, make("p", {}, hint));
  const element = make(
    "section",
    { class: "experiments", "aria-label": "Experiments" },
    make("div", { class: "tools" }, switches, make("div", { class: "sliders" }, ...sliders.map((each) => each.element))),
    compare,
  );
  const wire = (explorer) => {
    cut.addEventListener("click", () => {
      explorer.isCutting = !explorer.isCutting;
      cut.setAttribute("aria-pressed", String(explorer.isCutting));
      cut.textContent = explorer.isCutting ? "Click heads, sublayers, layers; done" : "Switch parts off";
    });
    for (const { button, isOn, set } of controls) {
      button.addEventListener("click", () => explorer.setEdits(set(explorer.edits, !isOn(explorer.edits))));
    }
    for (const slider of sliders) slider.wire(explorer);
    reset.addEventListener("click", () => {
      explorer.reset();
      cut.focus();
    });
  };
  const update = (explorer) => {
    for (const { button, isOn } of controls) button.setAttribute("aria-pressed", String(isOn(explorer.edits)));
    for (const slider of sliders) slider.update(explorer.search);
    const changes = changesOf(explorer, usual);
    compare.classList.toggle("is-changed", changes.length > 0);
    compare.replaceChildren(...(changes.length > 0 ? comparison(explorer, changes, reset) : [make("p", {}, hint)]));
  };
  return { element, wire, update };
}

const SLIDERS = [
  { key: "beam_size", label: "Beam", min: 1, max: 8, step: 1 },
  { key: "length_penalty", label: "Length penalty", min: 0, max: 2, step: 0.1 },
  { key: "temperature", label: "Temperature", min: 0, max: 2, step: 0.1 },
];

function makeSlider({ key, label, min, max, step, start }) {
  // the settings of a model may be beyond a slider's end, or between two of its steps
  const input = make("input", { type: "range", min, max: Math.max(max, start), step, value: start });
  const told = make("output", {}, String(start));
  const element = make("label", { class: "slider" }, make("span", {}, label), input, told);
  let timer = null;
  return {
    element,
    wire(explorer) {
      input.addEventListener("input", () => {
        told.textContent = input.value;
        window.clearTimeout(timer);
        timer = window.setTimeout(() => explorer.setSearch({ [key]: Number(input.value) }), 60);
      });
    },
    update(search) {
      const value = search[key] ?? start;
      if (document.activeElement !== input) input.value = String(value);
      told.textContent = String(value);
    },
  };
}

/** Every change as words and what undoes it. */
function changesOf(explorer, usual) {
  const { edits, search } = explorer;
  const changes = edits.off.map((name) => ({
    text: `without ${inWords(name)}`,
    undo: () => explorer.switchOff(name, false),
  }));
  for (const { name, row } of edits.rows) {
    changes.push({
      text: `row “${explorer.state.matrix(name)?.rowWords?.[row] ?? row}” held in ${inWords(name.replace(/\.weights$/, ""))}`,
      undo: () => explorer.hold(name, row, null),
    });
  }
  if (!edits.mask) changes.push({ text: "no mask", undo: () => explorer.setEdits({ ...edits, mask: true }) });
  if (!edits.positions) changes.push({ text: "no positions", undo: () => explorer.setEdits({ ...edits, positions: true }) });
  if (edits.norm) changes.push({ text: `${edits.norm}-norm`, undo: () => explorer.setEdits({ ...edits, norm: null }) });
  for (const { key, label } of SLIDERS) {
    if (key in search && search[key] !== usual[key]) {
      changes.push({ text: `${label.toLowerCase()} ${search[key]}`, undo: () => explorer.setSearch({ [key]: usual[key] }) });
    }
  }
  return changes;
}

/** `decoder.layers.1.cross_attention.heads.3` as `decoder layer 1, cross-attention, head 3`. */
export function inWords(name) {
  return name
    .replace(/\.layers\.(\d+)/, " layer $1")
    .replace(/\.heads\.(\d+)/, ", head $1")
    .replace(/\.(\w+)/, ", $1")
    .replaceAll("_", "-");
}

/** What to try, where nothing is changed yet. */
function hintOf({ kind }) {
  const acts = kind.startsWith("rnn") ? "Switch a layer off, move the temperature" : "Switch a head off, drop the positions, hold a row of attention";
  return `Nothing is changed. ${acts}: what the model says then stands here, beside what it said.`;
}

function comparison(explorer, changes, reset) {
  const [before, after] = [explorer.untouched, explorer.state].map(({ sentence }) => sentence.target);
  const [old, now] = [before, after].map((text) => text.match(WORD) ?? []);
  const [oldKept, nowKept] = common(old, now);
  const list = make("ul", { class: "changes" });
  for (const { text, undo } of changes) {
    const button = make("button", { type: "button", "aria-label": `Undo: ${text}` }, text, make("span", { "aria-hidden": "true" }, " ×"));
    button.addEventListener("click", undo);
    list.append(make("li", {}, button));
  }
  if (changes.length > 1) list.append(make("li", {}, reset));
  const isSame = old.join(" ") === now.join(" ");
  return [
    list,
    make(
      "dl",
      { class: "before-after" },
      make("div", {}, make("dt", {}, "untouched"), make("dd", { dir: "auto" }, ...marked(before, oldKept, "del"))),
      make("div", {}, make("dt", {}, "now"), make("dd", { class: "now", dir: "auto" }, ...marked(after, nowKept, "ins"), isSame ? make("small", {}, " the same") : null)),
    ),
  ];
}

const SPACELESS = "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}";
/** A word, or a letter with its marks where a script has no spaces between words. */
const WORD = new RegExp(`[${SPACELESS}]\\p{M}*|[^\\s${SPACELESS}]+`, "gu");

/** The text with those of its words marked that are not kept. */
function marked(text, kept, tag) {
  let end = 0;
  const parts = [...text.matchAll(WORD)].flatMap(({ 0: word, index }, number) => {
    const space = text.slice(end, index);
    end = index + word.length;
    return [space, make(kept.has(number) ? "span" : tag, {}, word)];
  });
  return parts.length > 0 ? parts : [make("i", {}, "(nothing)")];
}

/** Which words of two sentences belong to their longest common subsequence. */
function common(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let row = one.length - 1; row >= 0; row -= 1) {
    for (let column = other.length - 1; column >= 0; column -= 1) {
      lengths[row][column] =
        one[row] === other[column]
          ? lengths[row + 1][column + 1] + 1
          : Math.max(lengths[row + 1][column], lengths[row][column + 1]);
    }
  }
  const kept = [new Set(), new Set()];
  let [row, column] = [0, 0];
  while (row < one.length && column < other.length) {
    if (one[row] === other[column]) {
      kept[0].add(row++);
      kept[1].add(column++);
    } else if (lengths[row + 1][column] >= lengths[row][column + 1]) row += 1;
    else column += 1;
  }
  return kept;
}
