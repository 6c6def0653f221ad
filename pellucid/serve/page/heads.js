// All heads at a glance, and one of them large.

import { isRightToLeft, make, moved } from "./dom.js";
import { heatTable, paint, readable } from "./heatmap.js";

const KINDS = [
  {
    key: "cross_attention",
    title: "Translation to source",
    meaning: "Each row is a word being said; the darker a cell, the more it looks at that word of the source.",
    verb: "looks at",
  },
  {
    key: "encoder",
    title: "Source to itself",
    meaning: "Each row is a word of the source; the darker a cell, the more it takes from that word.",
    verb: "takes from",
  },
  {
    key: "decoder",
    title: "Translation to itself",
    meaning: "Each row is a word being said; it may only look at those said before.",
    verb: "looks back at",
  },
];

const scheme = matchMedia("(prefers-color-scheme: dark)");
let repaint = () => {};
scheme.addEventListener("change", () => repaint());
let remembered = { kind: "cross_attention", layer: null, head: null };

/** The heads of a capture: a choice of kind, a grid of small maps, and the chosen one large. */
export function drawHeads(capture) {
  const kinds = KINDS.map((kind) => ({ ...kind, layers: layersOf(capture, kind.key) })).filter(
    ({ layers }) => layers.length > 0,
  );
  if (kinds.length === 0) {
    return make("p", { class: "note" }, "This kind of model has no attention to look at.");
  }
  const overview = make("div", { class: "overview" });
  const large = make("div", { class: "large" });
  const show = (kind) => showKind(capture, kind, overview, large);
  const start = kinds.find(({ key }) => key === remembered.kind) ?? kinds[0];
  const section = make(
    "section",
    { class: "heads", "aria-labelledby": "heads-title" },
    make("h2", { id: "heads-title" }, "Where it looked"),
    choice(kinds, start, show),
    make("div", { class: "maps" }, overview, large),
  );
  queueMicrotask(() => show(start)); // colors are known once it stands in the page
  return section;
}

function layersOf(capture, key) {
  const names = capture.names.filter((name) => {
    if (!name.endsWith(".weights") || name.includes(".heads.")) return false;
    if (key === "cross_attention") return name.includes(".cross_attention.");
    return name.startsWith(`${key}.`) && name.includes(".self_attention.");
  });
  return names.map((name) => ({ name, ...capture.tensors[name] }));
}

function choice(kinds, start, show) {
  return make(
    "fieldset",
    { class: "segments" },
    make("legend", { class: "hidden" }, "Which attention"),
    ...kinds.map((kind) => {
      const input = make("input", { type: "radio", name: "kind", checked: kind === start });
      input.addEventListener("change", () => show(kind));
      return make("label", {}, input, make("span", {}, kind.title));
    }),
  );
}

function showKind(capture, kind, overview, large) {
  remembered.kind = kind.key;
  const layers = kind.layers.map((layer) => [...layer.values, mean(layer.values)]);
  const layerIndex = Math.min(remembered.layer ?? layers.length - 1, layers.length - 1);
  const headCount = layers[0].length - 1;
  const headIndex = Math.min(remembered.head ?? headCount, headCount);
  const open = (layer, head) => {
    remembered = { ...remembered, layer, head: head === headCount ? null : head };
    large.replaceChildren(
      ...largeMap(capture, kind, layers[layer][head], titleOf(layer, head, headCount)),
    );
  };
  const grid = smallMaps(layers, open);
  overview.replaceChildren(make("p", { class: "note" }, `${kind.meaning} Small maps: a column for each head, a row for each layer.`), grid.element);
  repaint = grid.paint;
  grid.paint();
  grid.choose(layerIndex, headIndex);
}

const titleOf = (layer, head, headCount) =>
  `Layer ${layer}, ${head === headCount ? "mean of all heads" : `head ${head}`}`;

function mean(heads) {
  return heads[0].map((row, y) =>
    row.map((_, x) => heads.reduce((sum, head) => sum + head[y][x], 0) / heads.length),
  );
}

/** A button for each head, layers below each other; one tab stop, arrows move. */
function smallMaps(layers, open) {
  const headCount = layers[0].length - 1;
  const buttons = layers.map((heads, layer) =>
    heads.map((matrix, head) => {
      const canvas = make("canvas", { "aria-hidden": "true" });
      const name = titleOf(layer, head, headCount);
      const button = make(
        "button",
        { type: "button", tabindex: -1, "aria-pressed": false, "aria-label": name, title: name },
        canvas,
      );
      button.addEventListener("click", () => choose(layer, head));
      button.addEventListener("keydown", (event) => onKey(event, layer, head));
      return { button, canvas, matrix };
    }),
  );
  function choose(layer, head) {
    for (const { button } of buttons.flat()) {
      button.setAttribute("aria-pressed", "false");
      button.tabIndex = -1;
    }
    const { button } = buttons[layer][head];
    button.setAttribute("aria-pressed", "true");
    button.tabIndex = 0;
    open(layer, head);
  }
  function onKey(event, layer, head) {
    const isUpDown = event.key === "ArrowUp" || event.key === "ArrowDown";
    const to = isUpDown
      ? moved(event.key, layer, buttons.length)
      : moved(event.key, head, buttons[0].length, isRightToLeft(event.target));
    if (to < 0) return;
    event.preventDefault();
    const [row, column] = isUpDown ? [to, head] : [layer, to];
    choose(row, column);
    buttons[row][column].button.focus();
  }
  const headings = [...Array(headCount).keys()].map(String);
  const element = make(
    "div",
    { class: "small-maps", role: "group", "aria-label": "Heads, a row for each layer" },
    label("", "corner"),
    ...headings.map((text) => label(text, "head")),
    label("mean", "head"),
    ...buttons.flatMap((row, layer) => [
      label(String(layer), "layer"),
      ...row.map(({ button }) => button),
    ]),
  );
  element.style.setProperty("--columns", headCount + 1);
  return {
    element,
    choose,
    paint: () => buttons.flat().forEach(({ canvas, matrix }) => paint(canvas, matrix)),
  };
}

const label = (text, kind) => make("span", { class: `axis ${kind}`, "aria-hidden": "true" }, text);

function largeMap(capture, kind, matrix, title) {
  const isCross = kind.key === "cross_attention";
  const rows = kind.key === "encoder" ? capture.source_tokens : capture.target_tokens;
  const columns =
    isCross || kind.key === "encoder" ? capture.source_tokens : capture.target_input_tokens;
  const rest = "Point at a cell, or walk through the cells with the arrow keys.";
  const readout = make("p", { class: "readout" }, rest);
  const onCell = (place) => {
    if (place === null) {
      readout.replaceChildren(rest);
      return;
    }
    readout.replaceChildren(
      quoted(rows[place.row]),
      ` ${kind.verb} `,
      quoted(columns[place.column]),
      ": ",
      make("b", {}, place.weight.toFixed(3)),
    );
  };
  const table = heatTable({ matrix, rows, columns, label: `${title}. ${kind.title}`, onCell });
  return [
    make("h3", {}, title),
    readout,
    make("div", { class: "scroll", role: "region", "aria-label": title, tabindex: 0 }, table),
  ];
}

const quoted = (token) => make("bdi", { class: "quoted" }, readable(token).text);
