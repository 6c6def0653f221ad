// The steps of one part of the model: formula, symbols, matrices in, matrix out.

import { count, digits, formula, make, percent } from "./dom.js";
import { explain } from "./arithmetic.js";
import { equationChips } from "./equations.js";
import { heatMap } from "./heatmap.js";

const SHOWN_WORDS = 5;

/** All steps of `page` as seen by one head. */
export function pageSteps(context, page, head) {
  return page.steps.map((step, index) => stepView(context, page, step, index, head).element);
}

/**
 * One step; `inspector` is an element that stands between its formula and its pictures. Gives its element and
 * `pickCell(row, column)`, which points at a number of the result.
 */
export function stepView(context, page, step, index, head, { inspector = null } = {}) {
  const id = `${page.name}/${step.name}`;
  const prefix = context.prefix ?? ""; // of ids, where two steps stand on one page
  const entries = equationChips(step.equations, context.report.entries ?? {});
  const section = make(
    "section",
    { class: "step", id: `${prefix}step-${step.name}`, "aria-labelledby": `${prefix}title-${step.name}` },
    make(
      "header",
      {},
      make("span", { class: "number", "aria-hidden": "true" }, String(index + 1)),
      make("h3", { id: `${prefix}title-${step.name}`, tabindex: "-1" }, step.title),
      entries.chips,
      make("a", { class: "here", href: `#${id}`, "aria-label": `Link to ${step.title}` }, "#"),
    ),
    entries.place,
    make("p", { class: "about" }, step.meaning),
  );
  const math = formula(step.formula, head, "block");
  section.append(make("div", { class: "formula", role: "group", "aria-label": `Formula: ${step.title}` }, math));
  if (step.how.kind === "tokens") section.append(tokenTable(context.report, step.how.side));
  else if (step.how.kind === "predictions") section.append(predictionTable(context.report));
  else {
    const shown = pictures(context, step, head, math);
    if (inspector && shown.pickCell) section.append(inspector);
    section.append(...shown.elements);
    return { element: section, pickCell: shown.pickCell };
  }
  return { element: section, pickCell: null };
}

function pictures(context, step, head, math) {
  const matrices = new Map();
  for (const symbol of step.symbols) {
    const name = symbol.matrix?.replaceAll("{head}", String(head)) ?? null;
    matrices.set(symbol.key, context.matrix(name));
  }
  const extra = step.how.normalizer;
  if (extra !== undefined) matrices.set(extra, context.matrix(extra));
  const maps = new Map();
  const result = step.symbols.at(-1);
  const clear = () => {
    for (const map of maps.values()) map.mark(null, null);
    context.inspector.clear();
  };
  const tell = (symbol, row, column, byKeyboard) => {
    const matrix = matrices.get(symbol.key);
    const known = symbol === result ? explain(step.how, matrices, row, column) : null;
    for (const [key, map] of maps) {
      if (key !== symbol.key) map.mark(...(known?.marks[key] ?? [null, null]));
    }
    context.inspector.show(symbol, matrix, row, column, head, known, byKeyboard);
  };
  const frame = make("div", { class: "pictures" });
  for (const symbol of step.symbols) {
    const matrix = matrices.get(symbol.key);
    if (!matrix) continue;
    const map = heatMap(matrix, {
      letter: symbol.letter,
      key: symbol.key,
      head,
      meaning: symbol.meaning,
      small: symbol !== result && !context.isRoomy,
      roomy: context.isRoomy === true,
      onPick: (row, column, byKeyboard) => tell(symbol, row, column, byKeyboard),
      onLeave: clear,
    });
    if (symbol === result) map.element.classList.add("result");
    maps.set(symbol.key, map);
    frame.append(map.element);
  }
  const others = symbolList(step, matrices, head);
  bindSymbols(math, maps);
  return {
    elements: [others, frame].filter((part) => part.children.length > 0),
    pickCell: maps.get(result?.key)?.pick ?? null,
  };
}

/** The symbols of a step that no picture stands for. */
function symbolList(step, matrices, head) {
  const list = make("ul", { class: "symbols", "aria-label": "Other symbols" });
  for (const symbol of step.symbols) {
    if (matrices.get(symbol.key)) continue;
    list.append(
      make(
        "li",
        {},
        make("span", { class: "letter" }, formula(symbol.letter, head)),
        make("span", { class: "meaning" }, symbol.meaning),
        make("span", { class: "shape" }, symbol.value ?? "not kept in this file"),
      ),
    );
  }
  return list;
}

/** Pointing at a symbol, in the formula or in the list, lights its matrix, and the reverse. */
function bindSymbols(math, maps) {
  const places = [...math.querySelectorAll("[data-symbol]")];
  const light = (key, on) => {
    for (const place of places) {
      if (place.getAttribute("data-symbol") === key) place.classList.toggle("lit", on);
    }
    maps.get(key)?.element.classList.toggle("lit", on);
  };
  const listen = (place, key) => {
    place.addEventListener("pointerenter", () => light(key, true));
    place.addEventListener("pointerleave", () => light(key, false));
    place.addEventListener("focusin", () => light(key, true));
    place.addEventListener("focusout", () => light(key, false));
  };
  for (const place of places) listen(place, place.getAttribute("data-symbol"));
  for (const [key, map] of maps) listen(map.element, key);
}

function tokenTable(report, side) {
  const sentence = report.sentence;
  const rows =
    side === "source"
      ? [
          ["token", sentence.source_tokens],
          ["id", sentence.source_ids],
        ]
      : [
          ["input", sentence.read_tokens],
          ["its id", sentence.read_ids],
          ["target", sentence.said_tokens],
          ["its id", sentence.said_ids],
        ];
  const table = make("table", { class: "tokens" });
  table.append(
    make("caption", {}, side === "source" ? `“${sentence.source}”` : `“${sentence.target}”`),
  );
  for (const [name, cells] of rows) {
    const line = make("tr", {}, make("th", { scope: "row" }, name));
    for (const cell of cells) line.append(make("td", {}, make("bdi", {}, String(cell))));
    table.append(line);
  }
  return scrolling(table, `Tokens and ids of the ${side}`);
}

function predictionTable(report) {
  const { sentence, words } = report;
  const table = make(
    "table",
    { class: "predictions" },
    make("caption", {}, `The likeliest words at each of ${count(words.says.length, "position")}`),
  );
  report.predictions.forEach((likeliest, row) => {
    const line = make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, words.steps[row])));
    const shown = likeliest.slice(0, SHOWN_WORDS);
    if (!shown.some(([, , id]) => id === sentence.said_ids[row])) {
      shown.push([words.says[row], sentence.confidences[row], sentence.said_ids[row]]);
    }
    for (const [word, probability, id] of shown) {
      line.append(predictedWord(word, probability, id === sentence.said_ids[row]));
    }
    table.append(line);
  });
  return scrolling(table, "The likeliest words at each position");
}

function predictedWord(word, probability, isSaid) {
  const bar = make("span", { class: "share", "aria-hidden": "true" });
  bar.style.width = `${Math.max(1, 100 * probability)}%`;
  return make(
    "td",
    { class: isSaid ? "said" : null, title: digits(probability) },
    make("bdi", {}, word),
    make("span", { class: "chance" }, percent(probability)),
    isSaid ? make("span", { class: "mark" }, "target") : null,
    bar,
  );
}

/** A choice among the heads of a page; `choose(head)` when one is taken. */
export function headRadios(count, shown, { name, style }, choose) {
  const choice = make("fieldset", { class: style }, make("legend", {}, "Head"));
  for (let head = 0; head < count; head += 1) {
    const input = make("input", { type: "radio", name, value: head, checked: head === shown });
    input.addEventListener("change", () => choose(head));
    choice.append(make("label", {}, input, make("span", {}, String(head))));
  }
  return choice;
}

/** A wide table in a frame that scrolls by itself and can be reached with the keyboard. */
export function scrolling(table, label) {
  return make("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}
