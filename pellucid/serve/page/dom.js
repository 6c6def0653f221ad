// Small help with elements; text only ever becomes a text node.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text nodes. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** As `make`, for a part of a drawing. */
export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Move by arrow keys, Home and End; returns the new index, or -1 if `key` does not move. */
export function moved(key, index, count, rightToLeft = false) {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[key];
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (step === undefined || count === 0) return -1;
  const mirrored = rightToLeft && key.startsWith("Arrow") && /Left|Right/.test(key) ? -step : step;
  return Math.min(Math.max(index + mirrored, 0), count - 1);
}

export const isRightToLeft = (element) => getComputedStyle(element).direction === "rtl";

/** 0.273 as 27%, and what is nearly nothing as <1%. */
export function percent(probability) {
  const rounded = Math.round(probability * 100);
  return rounded === 0 && probability > 0 ? "<1%" : `${rounded}%`;
}
