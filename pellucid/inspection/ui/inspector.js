// The line at the foot of the page: the number that is pointed at, and how it is computed.

import { digits, digitsBeside, formula, make } from "./dom.js";

const RESTING = "Point at a number, or reach a picture with Tab and move with the arrow keys.";

/** The panel, and functions to fill and to clear it. */
export function makeInspector(resting = RESTING) {
  const spoken = make("p", { class: "for-ears", "aria-live": "polite" });
  const place = make("p", { class: "place" }, resting);
  const reason = make("p", { class: "reason" });
  const element = make("aside", { class: "inspector", "aria-label": "The number pointed at" });
  element.append(place, reason, spoken);

  const show = (symbol, matrix, row, column, head, known, byKeyboard) => {
    const value = matrix.at(row, column);
    place.replaceChildren(
      symbol?.letter ? formula(symbol.letter, head) : "",
      make("span", { class: "where" }, "row ", make("b", {}, matrix.rowName(row))),
      make("span", { class: "where" }, "column ", make("b", {}, matrix.columnName(column))),
      make("output", { class: "value" }, digits(value)),
    );
    const from = [];
    if (known) {
      from.push("= ", ...known.parts);
      if (known.value !== null) from.push(make("span", { class: "computed" }, ` = ${digitsBeside(known.value, value)}`));
    }
    reason.replaceChildren(...from);
    element.dataset.computed = known?.value ?? "";
    element.dataset.value = String(value);
    if (byKeyboard) {
      spoken.textContent = `${matrix.rowName(row)}, ${matrix.columnName(column)}: ${digits(value)}`;
    }
  };
  const say = (what, why) => {
    place.replaceChildren(make("b", {}, what));
    reason.replaceChildren(why);
  };
  const clear = () => {
    place.replaceChildren(resting);
    reason.replaceChildren();
    element.dataset.computed = "";
    element.dataset.value = "";
  };
  return { element, show, say, clear };
}
