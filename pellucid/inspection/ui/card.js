// What opens below a tower: one step of a sublayer, its formula, its arithmetic and its matrices.

import { digits, make } from "./dom.js";
import { forgetPictures } from "./heatmap.js";
import { makeInspector } from "./inspector.js";
import { ofHead } from "./plan.js";
import { headRadios, stepView } from "./steps.js";

/**
 * The card for a place in the towers. `acts` has `open(name, detail)` and `close()`; `extra(place, matrix)` may give an
 * element that stands below the pictures. Returns `{ element, pickCell(row, column) }`.
 */
export function makeCard(place, state, acts, extra) {
  forgetPictures();
  const { column } = place;
  const { page } = column;
  const step = page.steps.find((each) => each.name === place.step) ?? page.steps.at(-1);
  const head = place.head ?? 0;
  const line = makeInspector("Point at a number of the large matrix: its arithmetic stands here.");
  let last = null; // the number of the result that was pointed at last: its arithmetic stays
  const inspector = {
    ...line,
    show(symbol, matrix, row, column, at, known, byKeyboard) {
      if (symbol === step.symbols.at(-1)) last = [row, column];
      line.show(symbol, matrix, row, column, at, explained(known, matrix.at(row, column)), byKeyboard);
    },
    clear: () => (last ? body.pickCell(...last) : line.clear()),
  };
  const context = { report: state, inspector, matrix: state.matrix };
  const body = stepView(context, page, step, page.steps.indexOf(step), head, { inspector: line.element });
  const name = ofHead(step.symbols.at(-1)?.matrix ?? null, head);
  const element = make(
    "div",
    { class: "card", role: "region", "aria-label": `${page.title}: ${step.title}` },
    cardTop(place, step, acts),
    cardSteps(place, step, acts),
    body.element,
    extra?.(place, step, name) ?? null,
  );
  return { element, step, name, pickCell: body.pickCell, cell: () => last };
}

const AGREES = 0.01;

/** An experiment may put another number where the formula has its own: then both are told. */
function explained(known, value) {
  if (!known || known.value === null || !Number.isFinite(value)) return known;
  if (Math.abs(known.value - value) <= AGREES * Math.max(1, Math.abs(value))) return known;
  const parts = ["changed by an experiment; the formula gives ", ...known.parts, ` = ${digits(known.value)}`];
  return { ...known, parts, value: null };
}

function cardTop(place, step, acts) {
  const { tower, block, column } = place;
  const crumbs = [[tower.title, tower.side]];
  if (/layers/.test(block.name)) crumbs.push([block.title, block.name]);
  if (column.title !== block.title) crumbs.push([column.title, column.name]);
  if (place.column.page.head_count > 1) crumbs.push([`Head ${place.head ?? 0}`, `${column.name}.heads.${place.head ?? 0}`]);
  const list = make("ol", { class: "crumbs", "aria-label": "Where this is" });
  for (const [text, name] of crumbs) {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => acts.open(name));
    list.append(make("li", {}, button));
  }
  list.append(make("li", {}, make("b", {}, step.title)));
  const close = make("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
  close.addEventListener("click", () => acts.close());
  const heads = column.page.head_count > 1 ? cardHeads(place, step, acts) : null;
  return make("div", { class: "card-top" }, list, heads, close);
}

function cardHeads({ column, head: shown }, step, acts) {
  const { name, page } = column;
  return headRadios(page.head_count, shown ?? 0, { name: `head-of-${name}`, style: "card-heads" }, (head) =>
    acts.open(`${name}.heads.${head}`, { from: name, head, step: step.name, focus: `input:nth-of-type(1)` }),
  );
}

function cardSteps(place, step, acts) {
  const { steps } = place.column.page;
  if (steps.length < 2) return null;
  const list = make("ol", { class: "card-steps", "aria-label": "Steps of this part" });
  for (const each of steps) {
    const button = make(
      "button",
      { type: "button", "aria-current": each === step ? "step" : null, "data-step": each.name },
      each.title,
    );
    button.addEventListener("click", () =>
      acts.open(place.column.name, { from: place.column.name, head: place.head, step: each.name, focus: `[data-step="${each.name}"]` }),
    );
    list.append(make("li", {}, button));
  }
  return list;
}
