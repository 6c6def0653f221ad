// Where the model attended: all heads of the sentence on the page, and one of them large.

import { make } from "./ui/dom.js";
import { headView, kindsOf } from "./ui/heads.js";
import { forgetPictures } from "./ui/heatmap.js";
import { Matrix } from "./ui/matrices.js";
import { readable } from "./ui/words.js";

const RESTING = "Point at a cell, or walk through the cells with the arrow keys.";

/** The heads of a capture, or a line that says that there are none. */
export function drawHeads(capture) {
  forgetPictures();
  const layers = capture.names.filter(isWeights).map((name) => layerOf(capture, name));
  if (layers.length === 0) {
    return make("p", { class: "note" }, "This kind of model has no attention to look at.");
  }
  const readout = make("p", { class: "readout" }, RESTING);
  return make(
    "section",
    { class: "heads", "aria-labelledby": "heads-title" },
    make("h2", { id: "heads-title" }, "Attention"),
    headView(kindsOf(layers), {
      above: () => {
        readout.replaceChildren(RESTING);
        return readout;
      },
      onPick: ({ matrix }, row, column) => {
        // A row of the cross-attention bears the word that the decoder generates from it.
        const isGenerated = matrix.rowAxis === "target token";
        readout.replaceChildren(
          ...(isGenerated ? ["Before it generates ", quoted(matrix.rowWords[row]), ", the decoder"] : [quoted(matrix.rowWords[row])]),
          " attends to ",
          quoted(matrix.columnWords[column]),
          ": ",
          make("b", {}, matrix.at(row, column).toFixed(3)),
        );
      },
      onLeave: () => readout.replaceChildren(RESTING),
    }),
  );
}

const isWeights = (name) => name.endsWith(".weights") && !name.includes(".heads.");

function layerOf(capture, name) {
  const tokens = {
    "source token": capture.source_tokens,
    "target token": capture.target_tokens,
    "target input token": capture.target_input_tokens ?? [],
  };
  const axes = capture.tensors[name].axes.slice(1); // the first one counts heads
  const labels = axes.map((axis) => words(tokens[axis]));
  const place = name.replace(/\.weights$/, "");
  const heads = capture.tensors[name].values.map((values, head) =>
    Matrix.ofRows(`${place}.heads.${head}.weights`, values, axes, labels),
  );
  return { name: place, heads };
}

const words = (tokens) => tokens.map(readable);

const quoted = (word) => make("bdi", { class: "quoted" }, word);
