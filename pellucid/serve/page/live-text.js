// The sentence that goes along to a tab of its own: in the memory of the tabs, and not in an address.

const HELD = "pellucid-live";
const MOST_CHARACTERS = 1000;

/** Keep `text` for a tab that is opened now; it gets a copy of what this tab holds. */
export function holdText(text) {
  try {
    sessionStorage.setItem(HELD, [...text].slice(0, MOST_CHARACTERS).join(""));
    setTimeout(() => sessionStorage.removeItem(HELD), 1000);
  } catch {
    // a browser that keeps nothing: the model opens without the sentence
  }
}

/** What the tab was opened with; empty if nothing was. */
export function heldText() {
  try {
    return sessionStorage.getItem(HELD) ?? "";
  } catch {
    return "";
  }
}
