// A matrix as a picture: hovering, tapping or the arrow keys show the row, the column, the value.

import { digits, formula, make, moved } from "./dom.js";
import { colorOf, extentOf, gradient, huesOf, isDeep, onSchemeChange } from "./colors.js";
import { axisNoun, plural } from "./matrices.js";
import { isResting } from "./pointer.js";

const ROOMY = { width: 44, height: 26 };
const MOST_UPRIGHT = 6; // letters
const MOST_TABLE_CELLS = 60000;
const repainting = new Set();
onSchemeChange(() => {
  for (const paint of repainting) paint();
});

/** Forget pictures that are no longer shown. */
export function forgetPictures() {
  repainting.clear();
}

/** Call `paint` now, and again when the colors of the page change. */
export function keepPainted(paint) {
  paint();
  repainting.add(paint);
}

/**
 * A figure for `matrix`. Options: `letter` (a formula tree) and `head` for the caption, `meaning`,
 * `small` for what enters a step, `roomy` for a few numbers that are all to be read, `onPick(row, column, byKeyboard)` and `onLeave()`.
 */
export function heatMap(matrix, options = {}) {
  const size = options.roomy ? ROOMY : cellSize(matrix, options.small === true);
  const extent = extentOf(matrix);
  const cells = makeCells(matrix, size, extent, options);
  const figure = make(
    "figure",
    { class: `heat${options.small ? " small" : ""}${isUpright(matrix, options) ? " upright" : ""}`, "data-matrix": matrix.name },
    caption(matrix, options),
    make(
      "div",
      { class: "heat-scroll" },
      make(
        "div",
        { class: "heat-grid" },
        make("div", { class: "heat-corner", "aria-hidden": "true" }),
        columnLabels(matrix, size),
        rowLabels(matrix, size),
        cells.element,
      ),
    ),
    legend(matrix, extent),
    table(matrix, options),
  );
  figure.style.width = `min(100%, ${figureWidth(matrix, size)}px)`;
  return { element: figure, matrix, pick: cells.pick, mark: cells.mark };
}

/** Whether the words above the columns need not be turned. */
function isUpright(matrix, options) {
  return options.roomy === true && (matrix.columnWords ?? []).every((word) => word.length <= MOST_UPRIGHT);
}

function caption(matrix, options) {
  const letter = options.letter
    ? make("span", { class: "letter" }, formula(options.letter, options.head ?? 0))
    : null;
  const cut = matrix.isCut
    ? make(
        "span",
        { class: "cut" },
        ` · shown in part: the first ${matrix.rows} × ${matrix.columns}`,
      )
    : null;
  return make(
    "figcaption",
    {},
    letter,
    make("span", { class: "meaning" }, options.meaning ?? ""),
    make("span", { class: "shape" }, matrix.shape),
    cut,
  );
}

/** As wide as the picture with its row labels, and wide enough for a caption. */
function figureWidth(matrix, size) {
  const longest = (matrix.rowWords ?? []).reduce((most, word) => Math.max(most, word.length), 0);
  const labels = matrix.rowWords ? Math.min(176, longest * 7.5) + 24 : 10;
  return Math.max(184, matrix.columns * size.width + labels);
}

function cellSize(matrix, small) {
  const wordRows = matrix.rowWords !== null;
  const wordColumns = matrix.columnWords !== null;
  const height = wordRows || matrix.rows === 1 ? (small ? 14 : 20) : matrix.rows > 40 ? 2 : 4;
  if (wordColumns) {
    const many = matrix.columns > 40;
    const width = small || many ? 14 : matrix.columns <= 16 ? 36 : 24;
    return { width, height: wordRows ? (small ? 14 : many ? 16 : 24) : height };
  }
  if (matrix.columns === 1) return { width: 48, height };
  const widths = small
    ? [[16, 8], [32, 5], [64, 3], [128, 2], [Infinity, 1]]
    : [[16, 24], [32, 9], [64, 8], [128, 6], [256, 3], [Infinity, 2]];
  return { width: widths.find(([most]) => matrix.columns <= most)[1], height };
}

function makeCells(matrix, size, extent, options) {
  const width = matrix.columns * size.width;
  const height = matrix.rows * size.height;
  const canvas = make("canvas", { width: matrix.columns, height: matrix.rows });
  const rowBand = make("div", { class: "band" });
  const columnBand = make("div", { class: "band" });
  const cursor = make("div", { class: "cursor" });
  const numbers = showsNumbers(matrix, size) ? make("div", { class: "numbers" }) : null;
  const label = options.meaning ? `${options.meaning}, ${matrix.shape}` : matrix.shape;
  const element = make(
    "div",
    {
      class: "cells",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "heat map",
      "aria-label": `${label}. Arrow keys go from number to number; a table follows.`,
    },
    canvas,
    size.width >= 12 && size.height >= 12 ? make("div", { class: "lines" }) : null,
    numbers,
    rowBand,
    columnBand,
    cursor,
  );
  for (const part of [canvas, element]) {
    part.style.width = `${width}px`;
    part.style.height = `${height}px`;
  }
  element.style.setProperty("--cell-width", `${size.width}px`);
  element.style.setProperty("--cell-height", `${size.height}px`);
  if (numbers) numbers.style.gridTemplateColumns = `repeat(${matrix.columns}, ${size.width}px)`;
  const paint = () => paintCells(matrix, extent, canvas, numbers);
  keepPainted(paint);
  return listen({ matrix, size, element, rowBand, columnBand, cursor }, options);
}

function showsNumbers(matrix, size) {
  return size.width >= 36 && size.height >= 16 && matrix.rows <= 24;
}

function paintCells(matrix, extent, canvas, numbers) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(matrix.columns, matrix.rows);
  const values = matrix.all();
  const scale = huesOf(matrix);
  const written = [];
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    if (!Number.isFinite(value)) {
      if (numbers) written.push(make("span", {}, value === -Infinity ? "−∞" : "?"));
      continue; // see-through: the hatching behind shows what is hidden
    }
    const color = colorOf(value, scale, extent);
    image.data.set([...color, 255], 4 * index);
    if (numbers) {
      const span = make("span", { class: isDeep(color) ? "on-deep" : "on-pale" }, brief(value, scale));
      written.push(span);
    }
  }
  context.putImageData(image, 0, 0);
  if (numbers) numbers.replaceChildren(...written);
}

function brief(value, scale) {
  if (scale === "share") return value < 0.005 ? "" : value.toFixed(2).replace(/^0/, "");
  const size = Math.abs(value);
  const text = size >= 100 ? size.toFixed(0) : size >= 10 ? size.toFixed(1) : size.toFixed(2);
  return (value < 0 && Number(text) !== 0 ? "−" : "") + text;
}

function listen(parts, options) {
  const { matrix, size, element } = parts;
  let at = null;
  const show = (band, top, left, width, height) => {
    band.style.transform = `translate(${left}px, ${top}px)`;
    band.style.width = `${width}px`;
    band.style.height = `${height}px`;
    band.classList.add("on");
  };
  const mark = (row, column) => {
    parts.cursor.classList.remove("on");
    parts.rowBand.classList.remove("on");
    parts.columnBand.classList.remove("on");
    const width = matrix.columns * size.width;
    const height = matrix.rows * size.height;
    if (row !== null) show(parts.rowBand, row * size.height, 0, width, size.height);
    if (column !== null) show(parts.columnBand, 0, column * size.width, size.width, height);
    if (row !== null && column !== null) {
      show(parts.cursor, row * size.height, column * size.width, size.width, size.height);
    }
  };
  const pick = (row, column, byKeyboard = false) => {
    at = [row, column];
    mark(row, column);
    options.onPick?.(row, column, byKeyboard);
  };
  const leave = () => {
    mark(null, null);
    options.onLeave?.();
  };
  const pointed = (event) => {
    if (isResting(event)) return;
    const box = element.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / size.width);
    const row = Math.floor((event.clientY - box.top) / size.height);
    if (row >= 0 && row < matrix.rows && column >= 0 && column < matrix.columns) pick(row, column);
  };
  element.addEventListener("pointermove", pointed);
  element.addEventListener("pointerdown", pointed);
  element.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") leave();
  });
  element.addEventListener("focus", () => {
    if (element.matches(":focus-visible")) pick(...(at ?? [0, 0]), true);
  });
  element.addEventListener("blur", leave);
  element.addEventListener("keydown", (event) => {
    const next = cellAfter(event, at ?? [0, 0], matrix);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    pick(...next, true);
    parts.cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  return { element, pick, mark };
}

/** The cell that a key leads to, or null. */
function cellAfter(event, [row, column], matrix) {
  const isUpDown = event.key === "ArrowUp" || event.key === "ArrowDown";
  const to = isUpDown ? moved(event, row, matrix.rows) : moved(event, column, matrix.columns);
  if (to < 0) return null;
  return isUpDown ? [to, column] : [row, to];
}

function columnLabels(matrix, size) {
  const labels = make("div", { class: "column-labels", "aria-hidden": "true" });
  if (matrix.columnWords !== null) {
    labels.classList.add("words");
    for (const word of matrix.columnWords.slice(0, matrix.columns)) {
      const label = make("span", {}, make("bdi", {}, word));
      label.style.width = `${size.width}px`;
      labels.append(label);
    }
    return labels;
  }
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((each) => each * size.width >= 44) ?? 512;
  labels.style.width = `${matrix.columns * size.width}px`;
  for (let column = 0; column < matrix.columns; column += step) {
    if (column > 0 && (matrix.columns - column) * size.width < 14) break;
    const tick = make("span", { class: "tick" }, String(column));
    tick.style.left = `${column * size.width}px`;
    labels.append(tick);
  }
  return labels;
}

function rowLabels(matrix, size) {
  const labels = make("div", { class: "row-labels", "aria-hidden": "true" });
  if (matrix.rowWords !== null) {
    for (const word of matrix.rowWords.slice(0, matrix.rows)) {
      const label = make("span", {}, make("bdi", {}, word));
      label.style.height = `${size.height}px`;
      label.style.lineHeight = `${size.height}px`;
      labels.append(label);
    }
  }
  return labels;
}

function legend(matrix, extent) {
  const bar = make("span", { class: "bar" });
  const scale = huesOf(matrix);
  const paint = () => {
    bar.style.backgroundImage = gradient(scale);
  };
  keepPainted(paint);
  const ends = scale === "share" ? ["0", digits(extent)] : [`−${digits(extent)}`, digits(extent)];
  const hidden = matrix.all().includes(-Infinity)
    ? make("span", { class: "hidden-key" }, make("i", {}), "hidden, −∞")
    : null;
  return make(
    "div",
    { class: "scale", "aria-hidden": "true" },
    make("span", {}, ends[0]),
    bar,
    make("span", {}, ends[1]),
    hidden,
  );
}

function table(matrix, options) {
  const details = make("details", { class: "numbers-table" }, make("summary", {}, "Numbers as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(fullTable(matrix, options));
  });
  return details;
}

function fullTable(matrix, options) {
  const rows = Math.min(matrix.rows, Math.max(1, Math.floor(MOST_TABLE_CELLS / matrix.columns)));
  const columnName = (index) => matrix.columnWords?.[index] ?? String(index);
  const head = make("tr", {}, make("td", {}));
  for (let column = 0; column < matrix.columns; column += 1) {
    head.append(make("th", { scope: "col" }, columnName(column)));
  }
  const body = make("tbody", {});
  for (let row = 0; row < rows; row += 1) {
    const line = make("tr", {}, make("th", { scope: "row" }, matrix.rowWords?.[row] ?? String(row)));
    for (const value of matrix.row(row)) line.append(make("td", {}, digits(value)));
    body.append(line);
  }
  const name = `${options.meaning ?? matrix.name}: rows are ${plural(axisNoun(matrix.rowAxis))}, columns are ${plural(axisNoun(matrix.columnAxis))}`;
  return make(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": name },
    make("table", {}, make("caption", {}, name), make("thead", {}, head), body),
  );
}
