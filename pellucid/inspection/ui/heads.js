// Every head of every layer as a small picture, and the chosen one large, with its words.

import { colorOf, isDark } from "./colors.js";
import { isRightToLeft, make, moved } from "./dom.js";
import { heatMap, keepPainted } from "./heatmap.js";
import { Matrix } from "./matrices.js";

/** The kinds of attention by whose words its rows and its columns have. */
const KINDS = {
  "target to source": {
    title: "Translation to source",
    meaning:
      "Each row is a word of the translation; the stronger the color, the more the decoder attends to that word of the source before it generates the row’s word.",
  },
  "source to source": {
    title: "Source to itself",
    meaning:
      "Each row is a word of the source; the stronger the color, the more it attends to that word.",
  },
  "target to target": {
    title: "Translation to itself",
    meaning: "Each row is a word of the translation; it attends to those before it.",
  },
};

let remembered = { kind: null, layer: null, head: null };

/**
 * The layers of attention by kind, that of the translation to the source first: `layers` are `{ name, heads, ... }`
 * with the name of a sublayer and a matrix for each head.
 */
export function kindsOf(layers) {
  const kinds = new Map();
  for (const layer of layers) {
    const key = `${side(layer.heads[0].rowAxis)} to ${side(layer.heads[0].columnAxis)}`;
    if (!kinds.has(key)) kinds.set(key, { key, ...KINDS[key], layers: [] });
    kinds.get(key).layers.push(layer);
  }
  const order = Object.keys(KINDS);
  return [...kinds.values()].sort((one, other) => order.indexOf(one.key) - order.indexOf(other.key));
}

const side = (axis) => (axis.startsWith("source") ? "source" : "target");

/**
 * The view of `kinds`. Options: `onPick(chosen, row, column, byKeyboard)` and `onLeave()` for the
 * large picture, `above(chosen)` and `below(chosen)` for what stands around it; `chosen` is
 * `{ kind, layer, matrix, head, title }`, and `head` is null for the mean of all heads.
 */
export function headView(kinds, options = {}) {
  const overview = make("div", { class: "head-overview" });
  const large = make("div", { class: "head-large" });
  const show = (kind) => showKind(kind, overview, large, options);
  const start = kinds.find(({ key }) => key === remembered.kind) ?? kinds[0];
  show(start);
  return make(
    "div",
    { class: "head-view" },
    kinds.length > 1 ? kindChoice(kinds, start, show) : null,
    make("div", { class: "head-maps" }, overview, large),
  );
}

function kindChoice(kinds, start, show) {
  return make(
    "fieldset",
    { class: "head-kinds" },
    make("legend", { class: "for-ears" }, "Which attention"),
    ...kinds.map((kind) => {
      const input = make("input", { type: "radio", name: "attention-kind", checked: kind === start });
      input.addEventListener("change", () => show(kind));
      return make("label", {}, input, make("span", {}, kind.title));
    }),
  );
}

function showKind(kind, overview, large, options) {
  remembered.kind = kind.key;
  const layers = kind.layers.map(({ heads }) =>
    heads.length > 1 ? [...heads, Matrix.meanOf(heads)] : heads,
  );
  const headCount = kind.layers[0].heads.length;
  const layerIndex = Math.min(remembered.layer ?? layers.length - 1, layers.length - 1);
  const headIndex = Math.min(remembered.head ?? headCount, layers[0].length - 1);
  const open = (layer, index) => {
    const head = index === headCount ? null : index;
    remembered = { kind: kind.key, layer, head };
    const title = headTitle(layer, index, headCount);
    const chosen = { kind, layer: kind.layers[layer], matrix: layers[layer][index], head, title };
    large.replaceChildren(...largeHead(chosen, options));
  };
  const grid = headGrid(layers, headCount, open);
  const note = `${kind.meaning} A row for each layer, a column for each head.`;
  overview.replaceChildren(make("p", { class: "head-note" }, note.trim()), grid.element);
  grid.choose(layerIndex, headIndex);
}

const headTitle = (layer, head, headCount) =>
  `Layer ${layer}, ${head === headCount ? "mean of all heads" : `head ${head}`}`;

function largeHead(chosen, { onPick, onLeave, above, below }) {
  const map = heatMap(chosen.matrix, {
    meaning: chosen.kind.title,
    onPick: (row, column, byKeyboard) => onPick?.(chosen, row, column, byKeyboard),
    onLeave: () => onLeave?.(chosen),
  });
  return [make("h3", {}, chosen.title), above?.(chosen), map.element, below?.(chosen)].filter(Boolean);
}

/** A button for each head, layers below each other; one tab stop, arrow keys move. */
function headGrid(layers, headCount, open) {
  const buttons = layers.map((heads, layer) =>
    heads.map((matrix, head) => {
      const name = headTitle(layer, head, headCount);
      const button = make(
        "button",
        { type: "button", tabindex: -1, "aria-pressed": "false", "aria-label": name, title: name },
        thumbnail(matrix),
      );
      button.addEventListener("click", () => choose(layer, head));
      button.addEventListener("keydown", (event) => onKey(event, layer, head));
      return button;
    }),
  );
  function choose(layer, head) {
    for (const each of buttons.flat()) {
      each.setAttribute("aria-pressed", "false");
      each.tabIndex = -1;
    }
    buttons[layer][head].setAttribute("aria-pressed", "true");
    buttons[layer][head].tabIndex = 0;
    open(layer, head);
  }
  function onKey(event, layer, head) {
    const isUpDown = event.key === "ArrowUp" || event.key === "ArrowDown";
    const to = isUpDown
      ? moved(event, layer, buttons.length)
      : moved(event, head, buttons[0].length, isRightToLeft(event.target));
    if (to < 0) return;
    event.preventDefault();
    event.stopPropagation(); // arrow keys turn the pages of a report
    const [row, column] = isUpDown ? [to, head] : [layer, to];
    choose(row, column);
    buttons[row][column].focus();
  }
  const headings = layers[0].map((_, head) => (head === headCount ? "mean" : String(head)));
  const element = make(
    "div",
    { class: "head-grid", role: "group", "aria-label": "Heads, a row for each layer" },
    axisLabel(""),
    ...headings.map(axisLabel),
    ...buttons.flatMap((row, layer) => [axisLabel(String(layer)), ...row]),
  );
  element.style.setProperty("--columns", headings.length);
  return { element, choose };
}

const axisLabel = (text) => make("span", { class: "head-axis", "aria-hidden": "true" }, text);

/** A small picture of weights without words, a pixel for each. */
function thumbnail(matrix) {
  const { rows, columns } = matrix;
  const canvas = make("canvas", { width: columns, height: rows, "aria-hidden": "true" });
  keepPainted(() => {
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    matrix.all().forEach((value, index) => {
      image.data.set([...colorOf(value, "share", 1), 255], 4 * index);
    });
    context.putImageData(image, 0, 0);
    canvas.dataset.scheme = isDark() ? "dark" : "light";
  });
  return canvas;
}
