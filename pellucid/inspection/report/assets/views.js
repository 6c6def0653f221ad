// Views of the whole sentence at once: the logit lens, rollout, and what each word depends on.

import { equationNames, make, percent } from "../ui/dom.js";
import { heatMap } from "../ui/heatmap.js";
import { scrolling } from "../ui/steps.js";

/** The prediction of each decoder layer if it were the last. */
export function lensPage(context) {
  const { report } = context;
  const layers = report.lens;
  const head = make("tr", {}, make("th", { scope: "col" }, "position"));
  for (const layer of layers) head.append(make("th", { scope: "col" }, layerName(layer.name)));
  const table = make(
    "table",
    { class: "lens" },
    make("caption", {}, "In each cell the word that layer finds likeliest, and its probability."),
    make("thead", {}, head),
  );
  report.words.steps.forEach((step, row) => {
    const line = make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, step)));
    for (const layer of layers) line.append(lensCell(report, layer, row));
    table.append(line);
  });
  return [
    make(
      "p",
      { class: "about" },
      "The last norm and the output matrix are applied to the hidden states of each layer, as if no",
      ` layer followed (${equationNames(report.equations.lens)}). Framed: the word of the target. Read`,
      " a row from left to right to see at which layer the prediction is decided.",
    ),
    scrolling(table, "The prediction of each layer"),
  ];
}

function layerName(name) {
  const parts = name.split(".");
  return parts[1] === "layers" ? `layer ${parts[2]}` : "after attention";
}

function lensCell(report, layer, row) {
  const [word, probability, id] = layer.predictions[row][0];
  // isolated, so that a word of a script from right to left does not move its share
  const others = layer.predictions[row]
    .slice(1)
    .flatMap(([other, share], index) => [index === 0 ? "" : ", ", make("bdi", {}, other), ` ${percent(share)}`]);
  const isSaid = id === report.sentence.said_ids[row];
  const cell = make(
    "td",
    { class: isSaid ? "said" : null },
    make("bdi", {}, word),
    make("span", { class: "chance" }, percent(probability)),
    make("span", { class: "others" }, ...others),
    isSaid ? make("span", { class: "for-ears" }, ", the word of the target") : null,
  );
  cell.style.setProperty("--share", `${Math.round(100 * probability)}%`);
  return cell;
}

/** Attention of all layers multiplied through. */
export function rolloutPage(context) {
  return [
    make(
      "p",
      { class: "about" },
      "The attention of all layers multiplied through, where half of every row stays what it was",
      " (attention rollout, Abnar and Zuidema 2020). It shows which words a row depends on after",
      " several layers of attention, not how they are used.",
    ),
    picture(context, "rollout.source", "each target token, of the source"),
    picture(context, "rollout.target", "each target token, of the target so far"),
    picture(context, "rollout.encoder", "each row of the encoder, of the source"),
  ].filter(Boolean);
}

/** Which source words the log-probability of each target token depends on. */
export function saliencyPage(context) {
  return [
    make(
      "p",
      { class: "about" },
      "Blue raises the probability of the target token, orange lowers it: each source word's share, in nats, in the",
      " gain of log p that the source brings over a source of zeros (integrated gradients, Sundararajan",
      " et al. 2017).",
    ),
    picture(context, "saliency", "what each target token depends on"),
    make(
      "p",
      { class: "about" },
      "The shares of a row should sum to its gain; what is missing is the error of an integral taken at",
      ` ${context.report.saliency_points} ${context.report.saliency_points === 1 ? "point" : "points"}.`,
    ),
    picture(context, "saliency_ends", "the sum of each row, and what it should be"),
  ].filter(Boolean);
}

function picture(context, name, meaning) {
  const matrix = context.matrix(name);
  if (!matrix) return null;
  const map = heatMap(matrix, {
    meaning,
    onPick: (row, column, byKeyboard) => {
      context.inspector.show(null, matrix, row, column, 0, null, byKeyboard);
    },
    onLeave: () => context.inspector.clear(),
  });
  return make("section", { class: "glance" }, map.element);
}
