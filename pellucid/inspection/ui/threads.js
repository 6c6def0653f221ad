// Lines from a word to those it is aligned with.

import { byId } from "./elements.js";
import { makeSvg } from "./dom.js";

const canvas = byId("threads");
const desk = byId("desk");
const MOST = 24;

/** Draw a line from each of `sources` to each of `targets`; none for empty lists. */
export function drawThreads(sources, targets) {
  canvas.replaceChildren();
  if (sources.length === 0 || targets.length === 0) return;
  const frame = desk.getBoundingClientRect();
  const isStacked = getComputedStyle(desk).flexDirection === "column";
  const lines = sources.flatMap((source) => targets.map((target) => [source, target]));
  for (const [source, target] of lines.slice(0, MOST)) {
    const path = between(source.getClientRects()[0], target.getClientRects()[0], frame, isStacked);
    canvas.append(makeSvg("path", { d: path }));
  }
}

function between(from, to, frame, isStacked) {
  const middle = (box) => (box.left + box.right) / 2 - frame.left;
  const [x1, y1] = [middle(from), from.bottom - frame.top];
  const [x2, y2] = [middle(to), (isStacked ? to.top : to.bottom) - frame.top];
  if (isStacked) {
    const half = (y1 + y2) / 2;
    return `M${x1} ${y1}C${x1} ${half} ${x2} ${half} ${x2} ${y2}`;
  }
  const low = Math.max(y1, y2) + 26;
  return `M${x1} ${y1}C${x1} ${low} ${x2} ${low} ${x2} ${y2}`;
}
