// Marks the lines that an address ends with, such as #L67-L84.
"use strict";

function markLines() {
  const [, first, last] = /^#L(\d+)(?:-L(\d+))?$/.exec(location.hash) || [];
  document.querySelectorAll("pre span").forEach((line, index) => {
    const number = index + 1;
    line.classList.toggle("chosen", number >= first && number <= (last || first));
  });
  if (first) document.getElementById(`L${first}`)?.scrollIntoView({ block: "center" });
}

addEventListener("hashchange", markLines);
markLines();
