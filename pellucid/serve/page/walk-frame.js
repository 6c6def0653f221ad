// Shows the walk that the page around it hands in; it asks for nothing by itself.

import { renderReport } from "/static/report/report.js";

addEventListener("message", (event) => {
  if (event.origin !== location.origin || event.source !== parent) return;
  if (event.data?.kind !== "walk") return;
  renderReport(document.getElementById("walk"), event.data.report, { hash: false });
});
