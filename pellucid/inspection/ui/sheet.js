// One canvas for all pictures of a tower.
//
// A browser composes each canvas of a page by itself. Without a graphics card a hundred of them, one for each
// picture, took longer to compose after an edit than the model took to compute.

import { make, onceAFrame } from "./dom.js";

const MOST_PIXELS = 1 << 24; // beyond, a sheet is drawn more coarsely: a browser limits a canvas, too

/**
 * The sheet over `flow`, an element that holds the boxes of pictures. A picture is `{ element, draw(context,
 * width, height, style), strength(), isDirty, radius }`: what it draws stands in the box of its element, as
 * strongly as `strength` says; `radius` is that of its corners, if they are round. `pictures()` gives all that are shown.
 *
 * Returns its element and `soon()`: before the next frame, pictures that are dirty are drawn again, and all of
 * them if any box has moved.
 */
export function makeSheet(flow, pictures) {
  const canvas = make("canvas", { class: "drawn", "aria-hidden": "true", width: 1, height: 1 });
  const context = canvas.getContext("2d");
  let placed = ""; // where the pictures were when they were drawn

  function draw() {
    const frame = flow.getBoundingClientRect();
    if (frame.width === 0 || frame.height === 0) return;
    const size = frame.width * frame.height;
    const ratio = Math.min(window.devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / size));
    const shown = pictures();
    const boxes = shown.map(({ element }) => boxIn(frame, element, ratio));
    const [, , wide, high] = boxIn(frame, canvas, ratio);
    const places = `${wide} ${high} ${boxes.join(" ")}`;
    const hasMoved = places !== placed;
    placed = places;
    if (!hasMoved && !shown.some(({ isDirty }) => isDirty)) return;

    if (canvas.width !== wide) canvas.width = wide;
    if (canvas.height !== high) canvas.height = high;
    if (hasMoved) context.clearRect(0, 0, wide, high);
    const style = getComputedStyle(flow);
    for (const [index, picture] of shown.entries()) {
      if (!hasMoved && !picture.isDirty) continue;
      picture.isDirty = false;
      drawIn(context, boxes[index], picture, ratio, style);
    }
  }

  // told after a layout and before it is seen, so that no frame shows a picture beside its box
  new ResizeObserver(draw).observe(flow);
  printAlone(flow, pictures);
  return {
    element: canvas,
    soon: onceAFrame(draw),
    /** Follow the boxes inside these elements, too, while they grow and shrink. */
    follow(elements) {
      const observer = new ResizeObserver(draw);
      for (const element of elements) observer.observe(element);
    },
  };
}

/** [left, top, width, height] of an element in a frame, in whole pixels of the screen; all 0 if it is not seen. */
function boxIn(frame, element, ratio) {
  const box = element.getBoundingClientRect();
  const isSeen = box.width > 0 && (element.checkVisibility?.({ visibilityProperty: true }) ?? true);
  if (!isSeen) return [0, 0, 0, 0];
  // a browser, too, draws each box from one whole pixel of the screen to another
  const pixel = (at, origin) => Math.round(at * ratio) - Math.round(origin * ratio);
  const [left, right] = [pixel(box.left, frame.left), pixel(box.right, frame.left)];
  const [top, bottom] = [pixel(box.top, frame.top), pixel(box.bottom, frame.top)];
  return [left, top, right - left, bottom - top];
}

function drawIn(context, [left, top, width, height], picture, ratio, style) {
  if (width === 0 || height === 0) return;
  context.save();
  context.beginPath();
  context.roundRect(left, top, width, height, ratio * (picture.radius ?? 0));
  context.clip();
  context.clearRect(left, top, width, height);
  context.globalAlpha = picture.strength();
  context.translate(left, top);
  context.scale(ratio, ratio);
  picture.draw(context, width / ratio, height / ratio, style);
  context.restore();
}

const ON_PAPER = 2; // pixels for each CSS pixel

/** On paper the boxes have other widths, which nobody is told: there each picture has a canvas of its own. */
function printAlone(flow, pictures) {
  let alone = [];
  const end = () => {
    for (const canvas of alone) canvas.remove();
    alone = [];
  };
  window.addEventListener("beforeprint", () => {
    end();
    const frame = flow.getBoundingClientRect();
    const style = getComputedStyle(flow);
    for (const picture of pictures()) {
      const [, , width, height] = boxIn(frame, picture.element, ON_PAPER);
      if (width === 0 || height === 0) continue;
      const canvas = make("canvas", { class: "alone", "aria-hidden": "true", width, height });
      drawIn(canvas.getContext("2d"), [0, 0, width, height], picture, ON_PAPER, style);
      picture.element.append(canvas);
      alone.push(canvas);
    }
  });
  window.addEventListener("afterprint", end);
}
