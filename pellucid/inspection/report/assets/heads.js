// Every head of every layer at a glance, and one of them large.

import { digits, make, percent } from "./dom.js";
import { colorOf, isDark, onSchemeChange } from "./colors.js";
import { heatMap } from "./heatmap.js";

const LETTER = ["mi", {}, "A"];

/** The page of all attention weights. */
export function allHeads(context) {
  const large = make("div", { class: "large-head" });
  const sections = context.report.attention.map((place) => strip(context, place, large));
  const first = context.report.attention.at(-1);
  showLarge(context, first, 0, large);
  return [
    make(
      "p",
      { class: "about" },
      "The stronger the color, the more attention. Rows look, columns are looked at. Choose one to see",
      " it large, with its words.",
    ),
    large,
    ranking(context),
    make("div", { class: "kinds" }, ...sections),
  ].filter(Boolean);
}

/** The heads of cross-attention that agree best with where the others look. */
function ranking(context) {
  const ranks = context.report.ranks ?? [];
  if (ranks.length < 2) return null;
  const list = make("ol", { class: "ranks" });
  for (const rank of ranks) {
    const [, layer, head] = /layers\.(\d+)\..*heads\.(\d+)\./.exec(rank.name);
    list.append(
      make(
        "li",
        {},
        `layer ${layer}, head ${head}`,
        make("span", { class: "shape" }, ` ${percent(rank.agreement)}, entropy ${digits(rank.entropy)} nats`),
      ),
    );
  }
  return make(
    "details",
    { class: "ranking" },
    make("summary", {}, "Heads of cross-attention that align best"),
    make(
      "p",
      { class: "about" },
      "Mean weight on the source token at which all other heads together look most, for this sentence.",
    ),
    list,
  );
}

function strip(context, place, large) {
  const list = make("div", { class: "strip" });
  for (let head = 0; head < place.heads; head += 1) {
    const matrix = context.matrix(place.weights.replaceAll("{head}", String(head)));
    if (!matrix) continue;
    list.append(
      make(
        "button",
        {
          type: "button",
          class: "thumb",
          on: {
            click: () => {
              showLarge(context, place, head, large);
              large.scrollIntoView({ block: "nearest" });
            },
          },
        },
        thumbnail(matrix),
        make("span", {}, `head ${head}`),
        make("span", { class: "for-ears" }, `, ${place.title}`),
      ),
    );
  }
  return make("section", { class: "kind" }, make("h3", {}, place.title), list);
}

/** A small picture of weights without words. */
export function thumbnail(matrix) {
  const canvas = make("canvas", { width: matrix.columns, height: matrix.rows, "aria-hidden": "true" });
  const paint = () => {
    const context = canvas.getContext("2d");
    const image = context.createImageData(matrix.columns, matrix.rows);
    matrix.all().forEach((value, index) => {
      image.data.set([...colorOf(value, "share", 1), 255], 4 * index);
    });
    context.putImageData(image, 0, 0);
    canvas.dataset.scheme = isDark() ? "dark" : "light";
  };
  paint();
  onSchemeChange(paint);
  return canvas;
}

function showLarge(context, place, head, large) {
  const matrix = context.matrix(place.weights.replaceAll("{head}", String(head)));
  if (!matrix) return;
  const symbol = { letter: LETTER };
  const map = heatMap(matrix, {
    letter: LETTER,
    head,
    meaning: `${place.title}, head ${head}`,
    onPick: (row, column, byKeyboard) => {
      context.inspector.show(symbol, matrix, row, column, head, null, byKeyboard);
    },
    onLeave: () => context.inspector.clear(),
  });
  const link = make("a", { href: `#${place.page}/weights` }, "See how it came about");
  large.replaceChildren(map.element, link);
}
