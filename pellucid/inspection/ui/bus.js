// The line from the end of the encoder to what reads it in the decoder.

import { make, makeSvg, onceAFrame } from "./dom.js";

const CORNER = 8;

/** `{ element, follow(towers) }`: an overlay that keeps its line on the columns, wherever they move. */
export function makeBus() {
  const path = makeSvg("path", { class: "bus-line" });
  const drawing = makeSvg("svg", {}, path);
  const label = make("span", { class: "bus-label" });
  const element = make("div", { class: "bus", "aria-hidden": "true" }, drawing, label);
  const draw = (towers) => {
    const frame = towers.getBoundingClientRect();
    const from = [...towers.querySelectorAll(".tower.encoder .column-body")].at(-1);
    const readers = [...towers.querySelectorAll(".tower.decoder .column.cross-attention > .name")];
    // Without attention the decoder starts from the last states of the encoder, and sees nothing else of it.
    const to = readers.length > 0 ? readers : [...towers.querySelectorAll(".tower.decoder .column.recurrent > .name")];
    label.textContent = readers.length > 0 ? "the encoder's output, to every cross-attention" : "the last states, from which the decoder starts";
    const decoder = towers.querySelector(".tower.decoder .side-name");
    if (!from || to.length === 0 || !decoder) {
      element.hidden = true;
      return;
    }
    const start = from.getBoundingClientRect();
    const level = decoder.getBoundingClientRect().top - frame.top + 9;
    const x = start.right - frame.left - Math.min(14, start.width / 2);
    let line = `M${x} ${start.bottom - frame.top} V${level - CORNER} Q${x} ${level} ${x - CORNER} ${level}`;
    const ends = to.map((name) => name.getBoundingClientRect());
    const turns = ends.map((box) => box.left - frame.left + box.width / 2);
    const first = Math.min(...turns);
    line += ` H${first + CORNER}`;
    for (const [index, turn] of turns.entries()) {
      const bottom = ends[index].top - frame.top - 1;
      line += ` M${turn + CORNER} ${level} Q${turn} ${level} ${turn} ${level + CORNER} V${bottom}`;
      line += ` M${turn - 4} ${bottom - 5} L${turn} ${bottom} L${turn + 4} ${bottom - 5}`;
    }
    path.setAttribute("d", line);
    label.style.right = `${frame.width - x + 14}px`;
    label.style.top = `${level - 21}px`;
  };
  const follow = (towers) => {
    const observer = new ResizeObserver(onceAFrame(() => draw(towers)));
    observer.observe(towers);
    for (const part of towers.querySelectorAll(".column, .card-slot")) observer.observe(part);
  };
  return { element, follow };
}
