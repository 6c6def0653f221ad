// The numbers of equations beside a step: each opens, in place, what stands behind it, and leads to the book of
// equations where the page knows of one.

import { equationNames, make } from "./dom.js";

/**
 * `chips` for the numbers and the `place` in which an entry opens. `entries` has for a number
 * `{ function, formula, says, source }`, as equation_entries.py writes it; a number without one is plain text.
 */
export function equationChips(numbers, entries) {
  const chips = make("span", { class: "equations" });
  const place = make("div", { class: "equation-place" });
  let shown = null;
  const buttons = new Map();
  const show = (number) => {
    shown = shown === number ? null : number;
    for (const [each, button] of buttons) button.setAttribute("aria-expanded", String(each === shown));
    place.replaceChildren(...(shown === null ? [] : [equationEntry(shown, entries[shown])]));
  };
  for (const number of numbers) {
    const name = equationNames([number]);
    if (!entries[number]) {
      chips.append(make("span", { class: "equation" }, name));
      continue;
    }
    const button = make("button", { type: "button", class: "equation", "aria-expanded": "false", "aria-label": `${name}: what it says` }, name);
    button.addEventListener("click", () => show(number));
    buttons.set(number, button);
    chips.append(button);
  }
  return { chips, place };
}

function equationEntry(number, entry) {
  return make(
    "div",
    { class: "equation-entry", role: "note" },
    make("p", { class: "equation-says" }, entry.says),
    entry.formula ? make("pre", { tabindex: "0" }, entry.formula) : null,
    make(
      "dl",
      {},
      make("dt", {}, "Function"),
      make("dd", {}, make("code", {}, entry.function)),
      ...(entry.source ? [make("dt", {}, "Source"), make("dd", {}, entry.source)] : []),
    ),
    bookLink(number),
  );
}

/** The page of the equation in the book, if the page was written with an address of one; null otherwise. */
function bookLink(number) {
  const name = equationNames([number]);
  const href = bookAddress(`equations/find.html#${name}`);
  if (href === null) return null;
  return make("p", {}, make("a", { href, target: "_blank", rel: "noopener noreferrer" }, `${name} in the book of equations`));
}

/** The address of a page of the book, such as `equations/find.html`; null if this page knows none. */
export function bookAddress(path) {
  const given = document.querySelector("meta[name='pellucid-book']")?.content;
  if (!given) return null;
  const { protocol, href } = new URL(path, new URL(given.replace(/\/?$/, "/"), location.href));
  return ["http:", "https:", "file:"].includes(protocol) ? href : null;
}
