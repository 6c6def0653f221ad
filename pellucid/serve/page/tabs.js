// Two views, one at a time.

import { byId } from "./ui/elements.js";
import { moved } from "./ui/dom.js";

const tabs = [byId("tab-translate"), byId("tab-inside")];
let onShow = () => {};

/** Wire the tabs; to be called once. */
export function watchTabs() {
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => choose(index));
    tab.addEventListener("keydown", (event) => {
      const to = moved(event, index, tabs.length);
      if (to < 0) return;
      event.preventDefault();
      choose(to);
      tabs[to].focus();
    });
  });
}

/** Call `handler()` when the reader comes to look inside. */
export function onInside(handler) {
  onShow = handler;
}

/** Whether the reader looks inside. */
export const isInside = () => tabs[1].getAttribute("aria-selected") === "true";

/** Go back to the text. */
export function showTranslate() {
  choose(0);
  byId("source").focus();
}

function choose(index) {
  tabs.forEach((tab, at) => {
    tab.setAttribute("aria-selected", at === index);
    tab.tabIndex = at === index ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = at !== index;
  });
  if (index === 1) onShow();
}
