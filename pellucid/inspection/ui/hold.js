// A row of attention weights, held by hand: bars to drag, the rest of the row gives way.

import { make, percent, plainKey } from "./dom.js";
import { inWords } from "./experiments.js";

const HEIGHT = 84;
const STEP = 0.05;

/** The handles for the rows of the weights called `name`. */
export function holdView(explorer, name) {
  const matrix = explorer.state.matrix(name);
  if (!matrix || matrix.columns < 2) return null;
  const held = explorer.edits.rows.find((each) => each.name === name);
  let row = held?.row ?? Math.min(explorer.picked ?? 0, matrix.rows - 1);
  const bars = make("div", { class: "hold-bars", role: "group", "aria-label": "Weights of this row" });
  const choice = make("select", { "aria-label": "The row to hold" });
  matrix.rowWords?.forEach((word, index) => choice.append(make("option", { value: index, selected: index === row }, word)));
  const free = make("button", { type: "button", class: "tool" }, "Let go");
  const draw = () => {
    const own = explorer.edits.rows.find((each) => each.name === name && each.row === row);
    free.disabled = !own;
    const values = own ? [...own.values] : [...(explorer.state.matrix(name) ?? matrix).row(row)];
    bars.replaceChildren(...values.map((value, column) => bar(column, value)));
  };
  const set = (column, share) => {
    const own = explorer.edits.rows.find((each) => each.name === name && each.row === row);
    const values = moveShare(own ? own.values : (explorer.state.matrix(name) ?? matrix).row(row), column, share);
    explorer.hold(name, row, values);
    free.disabled = false;
    [...bars.children].forEach((each, index) => showShare(each, values[index], matrix.columnWords?.[index] ?? index));
  };
  const bar = (column, value) => {
    const handle = make(
      "div",
      { class: "hold-bar", role: "slider", tabindex: "0", "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": 100 },
      make("span", { class: "fill" }),
      make("bdi", {}, matrix.columnWords?.[column] ?? String(column)),
    );
    showShare(handle, value, matrix.columnWords?.[column] ?? column);
    const drag = (event) => {
      const box = handle.getBoundingClientRect();
      set(column, Math.min(1, Math.max(0, 1 - (event.clientY - box.top) / HEIGHT)));
    };
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      drag(event);
    });
    handle.addEventListener("pointermove", (event) => {
      if (handle.hasPointerCapture(event.pointerId)) drag(event);
    });
    handle.addEventListener("keydown", (event) => {
      const by = { ArrowUp: STEP, ArrowRight: STEP, ArrowDown: -STEP, ArrowLeft: -STEP, Home: -1, End: 1 }[plainKey(event)];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      set(column, Math.min(1, Math.max(0, Number(handle.dataset.share) + by)));
    });
    return handle;
  };
  choice.addEventListener("change", () => {
    row = Number(choice.value);
    draw();
  });
  free.addEventListener("click", async () => {
    await explorer.hold(name, row, null);
    draw();
  });
  draw();
  return make(
    "section",
    { class: "hold", "aria-label": "Hold a row by hand" },
    make("p", {}, make("b", {}, "Hold a row by hand. "), `Drag a bar: where should this word look? ${inWords(name.replace(/\.weights$/, ""))}.`),
    make("div", { class: "hold-top" }, make("span", {}, "Row of "), choice, free),
    bars,
  );
}

function showShare(handle, share, word) {
  handle.dataset.share = String(share);
  handle.style.setProperty("--share", share);
  handle.setAttribute("aria-valuenow", String(Math.round(100 * share)));
  handle.setAttribute("aria-valuetext", percent(share));
  handle.setAttribute("aria-label", `Weight on ${word}`);
}

/** The row with `share` in one column; the others keep their proportions, and the sum stays 1. */
export function moveShare(values, column, share) {
  const rest = values.reduce((sum, each, index) => (index === column ? sum : sum + each), 0);
  return Array.from(values, (each, index) => {
    if (index === column) return share;
    return rest > 0 ? (each / rest) * (1 - share) : (1 - share) / (values.length - 1);
  });
}
