// Matrices as pictures of a few pixels, quick enough to repaint a whole model while someone types.

import { colorOf, huesOf, isDark } from "./colors.js";

const SHADES = 255;
const SAMPLED = 512;
const palettes = new Map();

/** The number that gets the strongest color, as `extentOf`, from a sample of a large matrix. */
export function quickExtent(matrix) {
  if (matrix.scale === "share") return 1;
  const values = matrix.all();
  const step = Math.max(1, Math.floor(values.length / SAMPLED));
  const sizes = new Float32Array(Math.ceil(values.length / step));
  let count = 0;
  for (let index = 0; index < values.length; index += step) {
    const size = Math.abs(values[index]);
    if (size < Infinity) sizes[count++] = size;
  }
  const sorted = sizes.subarray(0, count).sort();
  return sorted[Math.min(count - 1, Math.floor(0.99 * count))] || 1;
}

/** The colors of a scale as 32-bit numbers, from the lowest to the highest. */
function paletteOf(hues) {
  const key = `${hues} ${isDark()}`;
  if (!palettes.has(key)) {
    const colors = new Uint32Array(SHADES + 1);
    for (let shade = 0; shade <= SHADES; shade += 1) {
      const part = hues === "signed" ? (2 * shade) / SHADES - 1 : shade / SHADES;
      const [red, green, blue] = colorOf(part, hues, 1);
      colors[shade] = (255 << 24) | (blue << 16) | (green << 8) | red;
    }
    palettes.set(key, colors);
  }
  return palettes.get(key);
}

/**
 * The matrix with at most `most` columns, evenly chosen. Where few numbers are not 0 (`isSparse`), neighbors
 * share a column instead, which shows the number farthest from 0.
 */
export function thinned(matrix, most, isSparse) {
  const values = matrix.all();
  const { rows, columns } = matrix;
  if (columns <= most) return { rows, columns, values };
  const few = new Float32Array(rows * most);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < most; column += 1) {
      const from = row * columns + Math.floor((column * columns) / most);
      const to = row * columns + Math.floor(((column + 1) * columns) / most);
      let farthest = values[from];
      for (let at = from + 1; isSparse && at < to; at += 1) {
        if (Math.abs(values[at]) > Math.abs(farthest)) farthest = values[at];
      }
      few[row * most + column] = farthest;
    }
  }
  return { rows, columns: most, values: few };
}

const SEEN = 0.04;
// how strongly changes light up at first, and then every FADES_EVERY milliseconds
const FADING = [1, 0.45, 0];
const FADES_EVERY = 550;
const STEADY = 0.55; // where motion is not wanted, until the next change
const quiet = window.matchMedia("(prefers-reduced-motion: reduce)");
const lit = new Map(); // by what lights up: a function that shows it with its light at a strength
let faded = 0;
let clock = null;

/** A picture of a matrix that is not on the page: `draw` scales it into a box of a canvas that is. */
export function makePixels(onLight) {
  const surface = document.createElement("canvas");
  return {
    surface,
    context: surface.getContext("2d", { willReadFrequently: true }), // kept where it is painted, number by number
    onLight,
    draw(context, width, height) {
      context.imageSmoothingEnabled = false;
      context.drawImage(surface, 0, 0, width, height);
    },
  };
}

/**
 * Paint `matrix` on `picture`, one pixel a number; what is not finite stays see-through. With `before`, the matrix
 * that was there, the numbers that differ light up, and the light fades; returns whether any does. `most` and
 * `isSparse` as in `thinned`.
 *
 * The light is painted on the picture itself: a browser that composes its pictures without a graphics card takes
 * longer for a hundred fading layers than for all else that an edit asks for.
 */
export function paintPixels(picture, matrix, { most = Infinity, isSparse = false, before = null } = {}) {
  const now = thinned(matrix, most, isSparse);
  const { rows, columns, values } = now;
  const { surface, context } = picture;
  if (surface.width !== columns) surface.width = columns;
  if (surface.height !== rows) surface.height = rows;
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const hues = huesOf(matrix);
  const colors = paletteOf(hues);
  const extent = quickExtent(matrix);
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index];
    if (!Number.isFinite(value)) continue;
    const part = Math.max(-1, Math.min(1, value / extent));
    const place = hues === "signed" ? (part + 1) / 2 : Math.max(0, part);
    pixels[index] = colors[Math.round(place * SHADES)];
  }
  const changes = before && before !== matrix ? lightsOf(thinned(before, most, isSparse), now, extent) : null;
  if (changes === null) {
    lit.delete(picture);
    context.putImageData(image, 0, 0);
  } else {
    const painted = { picture, image, pixels: pixels.slice(), changes };
    glow(picture, (strength) => light(painted, strength));
  }
  return changes !== null;
}

/** How strongly each number lights up, from 0 to 255: those that changed, the more the larger the change; or null. */
function lightsOf(old, now, extent) {
  const isSameShape = old.rows === now.rows && old.columns === now.columns;
  const changes = new Uint8Array(now.values.length);
  let isSeen = false;
  for (let index = 0; index < changes.length; index += 1) {
    const change = isSameShape ? Math.abs(now.values[index] - old.values[index]) / extent : 0.5;
    if (!(change > SEEN)) continue;
    isSeen = true;
    changes[index] = Math.round(255 * Math.min(0.9, 0.25 + change));
  }
  return isSeen ? changes : null;
}

const HIGHLIGHT = { light: [255, 165, 30], dark: [255, 214, 90] }; // amber

/** Paint the pixels with their light at this strength. */
function light({ picture, image, pixels, changes }, strength) {
  const bytes = image.data;
  new Uint32Array(bytes.buffer).set(pixels);
  const [red, green, blue] = HIGHLIGHT[isDark() ? "dark" : "light"];
  for (let index = 0; strength > 0 && index < changes.length; index += 1) {
    if (changes[index] === 0) continue;
    const at = 4 * index;
    const share = (strength * changes[index]) / 255;
    // over a pixel that is see-through nothing but the light is seen
    const rest = bytes[at + 3] === 0 ? 0 : 1 - share;
    const part = rest === 0 ? 1 : share;
    bytes[at] = part * red + rest * bytes[at];
    bytes[at + 1] = part * green + rest * bytes[at + 1];
    bytes[at + 2] = part * blue + rest * bytes[at + 2];
    bytes[at + 3] = rest === 0 ? 255 * share : 255;
  }
  picture.context.putImageData(image, 0, 0);
  picture.onLight();
}

/**
 * Call `show(strength)` now and whenever the light of `key` has faded, at last with 0. In a few steps: an
 * animation of the browser's own would draw the page again 60 times a second.
 */
export function glow(key, show) {
  lit.set(key, show);
  show(quiet.matches ? STEADY : FADING[0]);
  fadeAll();
}

/** From now on all that is lit fades together. */
function fadeAll() {
  faded = 0;
  if (clock !== null || quiet.matches) return;
  clock = setInterval(() => {
    faded += 1;
    for (const show of lit.values()) show(FADING[faded]);
    if (FADING[faded] > 0) return;
    lit.clear();
    clearInterval(clock);
    clock = null;
  }, FADES_EVERY);
}
