// Colors of numbers: one hue for shares, blue and orange around zero; safe for color-blind eyes.

const LIGHT = {
  share: [
    [0.0, [248, 251, 251]],
    [0.15, [211, 227, 240]],
    [0.5, [96, 155, 205]],
    [0.8, [29, 92, 158]],
    [1.0, [8, 45, 92]],
  ],
  signed: [
    [-1.0, [122, 50, 0]],
    [-0.5, [222, 138, 66]],
    [0.0, [248, 251, 251]],
    [0.5, [96, 155, 205]],
    [1.0, [8, 45, 92]],
  ],
};

const DARK = {
  share: [
    [0.0, [24, 33, 35]],
    [0.15, [28, 52, 80]],
    [0.5, [41, 107, 168]],
    [0.8, [118, 180, 231]],
    [1.0, [233, 245, 255]],
  ],
  signed: [
    [-1.0, [255, 205, 160]],
    [-0.5, [190, 104, 38]],
    [0.0, [24, 33, 35]],
    [0.5, [41, 107, 168]],
    [1.0, [205, 232, 255]],
  ],
};

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const onPaper = window.matchMedia("print");

/** Calls back when the colors change: another scheme, or paper. */
export function onSchemeChange(listener) {
  darkScheme.addEventListener("change", listener);
  onPaper.addEventListener("change", listener);
}

/** The colors for a matrix: one hue from 0 up, or two around 0. */
export function huesOf(matrix) {
  return matrix.scale === "signed" ? "signed" : "share";
}

/** Whether the page is dark now; paper never is. */
export function isDark() {
  return darkScheme.matches && !onPaper.matches;
}

/** Red, green and blue for a number; `extent` is the number that gets the strongest color. */
export function colorOf(value, scale, extent) {
  const stops = (isDark() ? DARK : LIGHT)[scale];
  const part = extent === 0 ? 0 : Math.max(stops[0][0], Math.min(1, value / extent));
  let above = 1;
  while (above < stops.length - 1 && stops[above][0] < part) above += 1;
  const [low, from] = stops[above - 1];
  const [high, to] = stops[above];
  const share = (part - low) / (high - low);
  return from.map((channel, index) => Math.round(channel + share * (to[index] - channel)));
}

/** The strongest color stands for this: 1 for shares, else what 1 number in 100 exceeds. */
export function extentOf(matrix) {
  if (matrix.scale === "share") return 1;
  if (matrix.scale === "part") return matrix.all().reduce((most, each) => Math.max(most, each), 0);
  const sizes = matrix.all().filter(Number.isFinite).map(Math.abs).sort();
  if (sizes.length === 0) return 1;
  return sizes[Math.min(sizes.length - 1, Math.floor(0.99 * sizes.length))] || 1;
}

/** A gradient for the legend, as CSS. */
export function gradient(scale) {
  const stops = (isDark() ? DARK : LIGHT)[scale];
  const low = stops[0][0];
  const parts = stops.map(
    ([at, color]) => `rgb(${color.join(" ")}) ${(100 * (at - low)) / (1 - low)}%`,
  );
  return `linear-gradient(90deg, ${parts.join(", ")})`;
}

/** Whether writing on this color should be white. */
export function isDeep([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue < 140;
}
