// The first page: the whole model as one picture that opens, then the model in words, and how to read the rest.

import { formula, make } from "../ui/dom.js";
import { mountExplorer } from "../ui/explorer.js";
import { mountFilm } from "../ui/film.js";
import { mountWhy, storedWhy } from "../ui/why.js";

/** The first page's content. */
export function overview(context) {
  const { report, matrix } = context;
  const element = make("div", {});
  const { sentence, words, predictions, config, entries } = report;
  context.explorer = mountExplorer(element, {
    plan: report,
    state: { sentence, words, predictions, config, entries, matrix },
    live: null,
  });
  if (report.why) mountWhy(context.explorer, storedWhy(report.why));
  if (report.film) mountFilm(context.explorer, report.film);
  return [element, modelSection(report), readingSection(report)];
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
