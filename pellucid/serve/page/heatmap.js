// A matrix of weights between words: small as a picture, large as a table one can walk through.

import { isRightToLeft, make, moved } from "./dom.js";
import { surface } from "./words.js";

const SPECIAL = {
  "</s>": "end",
  "[STOP]": "end",
  "<s>": "start",
  "[START]": "start",
  "<unk>": "unknown",
  "[UNK]": "unknown",
};

const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;

/** A token as people read it: `{text, isSpecial}`. */
export function readable(token) {
  if (Object.hasOwn(SPECIAL, token)) return { text: SPECIAL[token], isSpecial: true };
  const byte = BYTE.exec(token);
  const code = byte === null ? 0 : Number.parseInt(byte[1], 16);
  const text = code > 0x20 && code < 0x7f ? String.fromCharCode(code) : surface(token);
  return { text: text.trim() === "" ? "␣" : text, isSpecial: false };
}

/** Draw `matrix` (rows of numbers from 0 to 1) on `canvas`, a pixel for each number. */
export function paint(canvas, matrix) {
  const style = getComputedStyle(canvas);
  canvas.height = matrix.length;
  canvas.width = matrix[0].length;
  const context = canvas.getContext("2d");
  context.fillStyle = style.getPropertyValue("--ground");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = style.getPropertyValue("--heat");
  matrix.forEach((row, y) =>
    row.forEach((weight, x) => {
      context.globalAlpha = shade(weight);
      context.fillRect(x, y, 1, 1);
    }),
  );
  context.globalAlpha = 1;
}

/** How dark a weight is drawn: its square root, so that small ones can be told from none. */
export const shade = (weight) => Math.sqrt(Math.min(Math.max(weight, 0), 1));

/**
 * A table of `matrix` with words on both axes; `onCell({row, column, weight} | null)` as it is
 * pointed at or walked through with the arrow keys.
 */
export function heatTable({ matrix, rows, columns, label, onCell }) {
  const head = make(
    "tr",
    {},
    make("td", { class: "corner" }),
    ...columns.map((token) => make("th", { scope: "col" }, word(token))),
  );
  const lines = matrix.map((weights, row) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, word(rows[row])),
      ...weights.map((weight) => cell(weight)),
    ),
  );
  const table = make(
    "table",
    { role: "grid", class: "heat", "aria-label": label },
    make("thead", {}, head),
    make("tbody", {}, ...lines),
  );
  watch(table, matrix, onCell);
  return table;
}

function word(token) {
  const { text, isSpecial } = readable(token);
  return make("bdi", { class: isSpecial ? "special" : null }, text);
}

function cell(weight) {
  const element = make("td", { tabindex: -1 }, make("span", { class: "hidden" }, weight.toFixed(2)));
  element.style.setProperty("--weight", `${shade(weight) * 100}%`);
  return element;
}

function watch(table, matrix, onCell) {
  const body = table.tBodies[0];
  const at = (row, column) => body.rows[row].cells[column + 1];
  at(0, 0).tabIndex = 0;
  let lit = [];
  const light = (row, column) => {
    for (const element of lit) element.classList.remove("lit");
    lit = [];
    if (row === null) return onCell(null);
    lit = [body.rows[row].cells[0], table.tHead.rows[0].cells[column + 1], at(row, column)];
    for (const element of lit) element.classList.add("lit");
    return onCell({ row, column, weight: matrix[row][column] });
  };
  const placeOf = (event) => {
    const element = event.target.closest("td:not(.corner)");
    return element === null
      ? null
      : { row: element.parentElement.sectionRowIndex, column: element.cellIndex - 1 };
  };
  table.addEventListener("pointerover", (event) => {
    const place = placeOf(event);
    if (place !== null) light(place.row, place.column);
  });
  table.addEventListener("pointerleave", () => light(null));
  table.addEventListener("focusin", (event) => {
    const place = placeOf(event);
    if (place === null) return;
    table.querySelector("td[tabindex='0']").tabIndex = -1;
    at(place.row, place.column).tabIndex = 0;
    light(place.row, place.column);
  });
  table.addEventListener("keydown", (event) => {
    const place = placeOf(event);
    if (place === null) return;
    const isUpDown = event.key === "ArrowUp" || event.key === "ArrowDown";
    const to = isUpDown
      ? moved(event.key, place.row, matrix.length)
      : moved(event.key, place.column, matrix[0].length, isRightToLeft(table));
    if (to < 0) return;
    event.preventDefault();
    (isUpDown ? at(to, place.column) : at(place.row, to)).focus();
  });
}
