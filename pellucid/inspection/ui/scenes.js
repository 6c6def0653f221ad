// Worked examples, step by step: few numbers, each with its picture, its formula and its arithmetic.
//
// A scene is `{ name, title, source, says, pages, entries, matrices, words, sentence, predictions }`, as scenes.py
// writes it: a small report of its own, whose steps are shown one at a time.

import { make } from "./dom.js";
import { makeInspector } from "./inspector.js";
import { openMatrices } from "./matrices.js";
import { headRadios, stepView } from "./steps.js";

/** The stepper over `scenes`; `onClose` is called by its button. Gives its element and `open(name)`. */
export function scenesView(scenes, { onClose }) {
  const element = make("section", { class: "scenes card", "aria-label": "Worked examples" });
  const readers = new Map(scenes.map((scene) => [scene.name, openMatrices(scene)]));
  const now = { scene: scenes[0], at: 0, head: 0 };

  function open(name, focus = null) {
    now.scene = scenes.find((each) => each.name === name) ?? scenes[0];
    now.at = 0;
    now.head = 0;
    draw(focus);
  }

  function go(at, focus) {
    now.at = at;
    draw(focus);
  }

  function chooseHead(head) {
    now.head = head;
    draw(".card-heads input:checked");
  }

  function draw(focus = null) {
    const { scene } = now;
    const places = scenePlaces(scene);
    const { page, step } = places[now.at];
    const head = Math.min(now.head, Math.max(0, page.head_count - 1));
    const resting = "Point at a number of the last picture: its arithmetic stands here.";
    const line = makeInspector(resting);
    let last = null; // the number of the result that was pointed at last: its arithmetic stays
    const inspector = {
      ...line,
      show(symbol, matrix, row, column, ...rest) {
        if (symbol === step.symbols.at(-1)) last = [row, column];
        line.show(symbol, matrix, row, column, ...rest);
      },
      clear: () => (last ? body.pickCell(...last) : line.clear()),
    };
    const context = { report: scene, matrix: readers.get(scene.name), inspector, isRoomy: true, prefix: "scene-" };
    const body = stepView(context, page, step, page.steps.indexOf(step), head, { inspector: line.element });
    const parts = [
      make("div", { class: "scenes-top" }, make("h3", {}, "Worked examples"), sceneButton("×", "close", onClose, { "aria-label": "Close the worked examples" })),
      sceneChoice(scenes, scene, open),
      make(
        "div",
        { class: "scene-about" },
        make("h4", {}, scene.title),
        make("p", {}, scene.says),
        make("p", { class: "scene-source" }, scene.source),
      ),
      scenePages(places, now, go),
      make(
        "div",
        { class: "card-top" },
        sceneSteps(places, now, go),
        page.head_count > 1 ? headRadios(page.head_count, head, { name: "head-of-scene", style: "card-heads" }, chooseHead) : null,
      ),
      body.element,
      make(
        "div",
        { class: "tour-buttons" },
        sceneButton("Back", "tool scene-back", () => go(now.at - 1, ".scene-back"), { disabled: now.at === 0 }),
        sceneButton("Next step", "tool scene-next", () => go(now.at + 1, ".scene-next"), { disabled: now.at === places.length - 1 }),
        make("span", { class: "scene-place", role: "status" }, `Step ${now.at + 1} of ${places.length}`),
      ),
    ];
    element.replaceChildren(...parts.filter(Boolean));
    body.pickCell?.(...sceneCell(context, step, head));
    if (focus) (element.querySelector(`${focus}:not(:disabled)`) ?? element.querySelector(".tour-buttons .tool:not(:disabled)"))?.focus();
  }

  open(scenes[0].name);
  return { element, open };
}

const scenePlaces = (scene) => scene.pages.flatMap((page) => page.steps.map((step) => ({ page, step })));

/** The largest number of the first row of the result, so that there is something to read at once. */
function sceneCell(context, step, head) {
  const matrix = context.matrix(step.symbols.at(-1).matrix.replaceAll("{head}", String(head)));
  const row = Math.min(1, matrix.rows - 1);
  return [row, matrix.farthest(row)];
}

function sceneButton(text, name, act, attributes = {}) {
  const made = make("button", { type: "button", class: name, ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

function sceneChoice(scenes, shown, open) {
  const list = make("ul", { class: "scene-choice", "aria-label": "Examples" });
  for (const scene of scenes) {
    const made = sceneButton(scene.title, "tool", () => {
      open(scene.name, `[data-scene="${scene.name}"]`);
    }, { "aria-pressed": String(scene === shown), "data-scene": scene.name });
    list.append(make("li", {}, made));
  }
  return list;
}

/** The parts of a scene with more than one page. */
function scenePages(places, now, go) {
  const pages = [...new Set(places.map(({ page }) => page))];
  if (pages.length < 2) return null;
  const list = make("ol", { class: "card-steps scene-pages", "aria-label": "Parts of the model" });
  pages.forEach((page, index) => {
    const isHere = page === places[now.at].page;
    const act = () => go(places.findIndex((each) => each.page === page), `[data-page="${index}"]`);
    list.append(make("li", {}, sceneButton(page.title, "", act, { "aria-current": isHere ? "true" : null, "data-page": index })));
  });
  return list;
}

function sceneSteps(places, now, go) {
  const { page } = places[now.at];
  const list = make("ol", { class: "card-steps", "aria-label": "Steps" });
  places.forEach((place, index) => {
    if (place.page !== page) return;
    const attributes = { "aria-current": index === now.at ? "step" : null, "data-step": place.step.name };
    list.append(make("li", {}, sceneButton(place.step.title, "", () => go(index, `[data-step="${place.step.name}"]`), attributes)));
  });
  return list;
}
