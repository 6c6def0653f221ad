// Elements made from data. Text only ever becomes text: nothing here reads markup.

const MATHML = "http://www.w3.org/1998/Math/MathML";

/** Numbers of the catalogue of equations in words, separated by commas. */
export function equationNames(numbers) {
  return numbers.map((number) => `EQ-${String(number).padStart(2, "0")}`).join(", ");
}

/** An element with attributes, listeners (`on`) and children; strings become text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
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

/** The key of an event; none with a modifier, as Alt and the left arrow lead back in history. */
export const plainKey = (event) => (event.altKey || event.ctrlKey || event.metaKey ? "" : event.key);

/** Move by arrow keys, Home and End; returns the new index, or -1 if the key does not move. */
export function moved(event, index, count, rightToLeft = false) {
  const key = plainKey(event);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[key];
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (step === undefined || count === 0) return -1;
  const mirrored = rightToLeft && /Left|Right/.test(key) ? -step : step;
  return Math.min(Math.max(index + mirrored, 0), count - 1);
}

export const isRightToLeft = (element) => getComputedStyle(element).direction === "rtl";

/** A formula from the tree that mathml.py writes: [tag, attributes, ...children] or text. */
export function typeset(tree, head) {
  if (typeof tree === "string") {
    return document.createTextNode(tree.replaceAll("{head}", String(head)));
  }
  const [tag, attributes, ...children] = tree;
  if (tag === "msqrt" && !drawsRoots()) return plainRoot(children, head);
  const element = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children.map((child) => typeset(child, head)));
  return element;
}

let roots = null;

/** Whether the browser has a font from which it can draw root signs. */
function drawsRoots() {
  if (roots === null) {
    const probe = make("span", {});
    const math = document.createElementNS(MATHML, "math");
    const root = document.createElementNS(MATHML, "msqrt");
    const inside = document.createElementNS(MATHML, "mi");
    inside.textContent = "x";
    root.append(inside);
    math.append(root);
    probe.append(math);
    document.body.append(probe);
    roots = root.getBoundingClientRect().width > inside.getBoundingClientRect().width + 2;
    probe.remove();
  }
  return roots;
}

function plainRoot(children, head) {
  const sign = typeset(["mo", { class: "root-sign", stretchy: "false" }, "√"], head);
  return typesetAround("mrow", [sign, typesetAround("mrow", children.map((child) => typeset(child, head)), "under-root")]);
}

function typesetAround(tag, children, name = "") {
  const element = document.createElementNS(MATHML, tag);
  if (name) element.setAttribute("class", name);
  element.append(...children);
  return element;
}

/** A whole formula, inline or as a block. */
export function formula(tree, head, display = "inline") {
  const math = document.createElementNS(MATHML, "math");
  math.setAttribute("display", display);
  math.append(typeset(tree, head));
  return math;
}

/** A function that calls `act` before the next frame, once however often it is called until then. */
export function onceAFrame(act) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      act();
    });
  };
}

/** A number with four digits that count, minus sign and all. */
export function digits(value) {
  if (value === -Infinity) return "−∞";
  if (value === Infinity) return "∞";
  if (Number.isNaN(value)) return "not a number";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e6 || size < 1e-4 ? size.toExponential(3) : String(Number(size.toPrecision(4)));
  return (value < 0 ? "−" : "") + text;
}

/**
 * A number computed here again from the numbers of a file, which hold five to six digits: where it differs from the
 * file's by less than the last digit shown, it is written as that one, or the two would be told apart by rounding.
 */
export function digitsBeside(value, known) {
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(known))) - 3);
  return digits(Math.abs(value - known) < unit ? known : value);
}

/** A share as a percentage. */
export function percent(share) {
  const value = 100 * share;
  if (value >= 99.95) return value === 100 ? "100%" : "> 99.9%";
  return value >= 10 ? `${value.toFixed(1)}%` : value >= 0.01 ? `${value.toFixed(2)}%` : "< 0.01%";
}

/** `1 head`, `4 heads`. */
export function count(number, noun) {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}
