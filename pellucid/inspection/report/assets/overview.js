// The first page: the sentence, the model in words, its parts as a map, and how to read the rest.

import { count, formula, make, percent } from "../ui/dom.js";

/** The first page's content. */
export function overview(context) {
  const report = context.report;
  return [
    make("section", { class: "sentence", "aria-label": "The sentence" }, sides(report)),
    modelSection(report),
    mapSection(context),
    readingSection(report),
  ];
}

function sides(report) {
  const sentence = report.sentence;
  return make(
    "dl",
    { class: "sides" },
    make("div", {}, make("dt", {}, "source"), make("dd", {}, make("bdi", {}, sentence.source))),
    make(
      "div",
      {},
      make("dt", {}, "target"),
      make("dd", {}, confidentWords(report)),
      make(
        "dd",
        { class: "note" },
        "Each token with its probability: a thick line is sure, a thin broken one is a guess.",
      ),
    ),
  );
}

/** The target's tokens, each shaded by its probability. */
export function confidentWords(report) {
  const line = make("p", { class: "confident" });
  report.words.says.forEach((word, index) => {
    const share = report.sentence.confidences[index];
    const level = share >= 0.9 ? 4 : share >= 0.6 ? 3 : share >= 0.3 ? 2 : 1;
    line.append(
      make(
        "span",
        { class: `token sure-${level}`, tabindex: "0", title: percent(share) },
        make("bdi", {}, word),
        make("span", { class: "chance" }, percent(share)),
      ),
    );
  });
  return line;
}

function modelSection(report) {
  const list = make("dl", { class: "facts" });
  for (const fact of report.facts) {
    list.append(
      make(
        "div",
        {},
        make("dt", {}, fact.name),
        make("dd", {}, make("b", {}, fact.value), make("span", {}, fact.meaning)),
      ),
    );
  }
  return make("section", {}, make("h3", {}, "The model"), list);
}

function mapSection(context) {
  const encoder = make("ol", { class: "stack" });
  const decoder = make("ol", { class: "stack" });
  for (const page of context.report.pages) {
    const stack = page.name.startsWith("encoder") ? encoder : decoder;
    const kind = page.name.split(".").at(-1).replace(/^\d+$/, "layer");
    stack.append(
      make(
        "li",
        { class: `part ${kind}` },
        make(
          "a",
          { href: `#${page.name}` },
          make("span", { class: "name" }, page.title),
          make("span", { class: "size" }, sizeOf(page)),
        ),
      ),
    );
  }
  return make(
    "section",
    {},
    make("h3", {}, "The way through the model"),
    make(
      "p",
      { class: "about" },
      "Read down the left side, then down the right: the decoder's cross-attention attends to the",
      " encoder's output. Each box is a page of steps.",
    ),
    make(
      "div",
      { class: "map" },
      make("div", {}, make("h4", {}, "Encoder"), encoder),
      make("div", {}, make("h4", {}, "Decoder"), decoder),
    ),
  );
}

function sizeOf(page) {
  const heads = page.head_count > 1 ? `${count(page.head_count, "head")}, ` : "";
  return heads + count(page.steps.length, "step");
}

function readingSection(report) {
  const example = ["mrow", {}, ["mi", {}, "Q"], ["mo", {}, "="], ["mi", {}, "X"], ["mi", {}, "W"]];
  return make(
    "section",
    { class: "reading" },
    make("h3", {}, "How to read it"),
    make(
      "ul",
      {},
      make(
        "li",
        {},
        "Rows are words, so a matrix stands on the right: ",
        formula(example, 0),
        ". Layers and heads are counted from 0, as in the names that ",
        make("code", {}, "pellucid.inspect"),
        " knows.",
      ),
      make(
        "li",
        {},
        "Point at any number, tap it, or reach a picture with Tab and walk with the arrow keys: the",
        " line at the foot shows row, column, value, and how it follows from the matrices above.",
      ),
      make(
        "li",
        {},
        "Point at a symbol and its matrix lights up. ",
        make("kbd", {}, "←"),
        " and ",
        make("kbd", {}, "→"),
        " turn the page wherever no picture has the focus.",
      ),
      make(
        "li",
        {},
        "Blue is above zero and orange below; shares are blue alone, from 0 to 1. The strongest color",
        " is what one number in a hundred exceeds. Hatched cells are hidden by the mask.",
      ),
      make(
        "li",
        {},
        "Numbers are the model's own, kept to 16 significant bits (about 5 digits) and shown with 4.",
        " What the foot line computes, it computes from these.",
        report.cut ? ` ${report.cut}` : "",
      ),
    ),
  );
}
