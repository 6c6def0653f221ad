// Fetches a model as the page of `pellucid export web`, and becomes that page.

import { getText } from "./api.js";
import { heldText } from "./live-text.js";
import { byId } from "./ui/elements.js";

const model = new URLSearchParams(location.hash.slice(1)).get("model") ?? "";

async function open() {
  byId("notice").hidden = true;
  byId("state").hidden = false;
  let html;
  try {
    html = await getText(`/live/${encodeURIComponent(model)}`);
  } catch (problem) {
    byId("state").hidden = true;
    byId("notice-text").textContent =
      problem.kind === "key" ? "This server asks for a key: open the model from the page, where you can give it." : problem.message;
    byId("again").hidden = !problem.canRetry;
    byId("notice").hidden = false;
    return;
  }
  // The policy of this page lets the two scripts of every such page run, and no others.
  document.open();
  document.write(html);
  // before its scripts run, which wait for the end of the page
  byId("source").value = heldText();
  document.close();
}

byId("again").addEventListener("click", open);
open();
