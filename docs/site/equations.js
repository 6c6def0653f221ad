// The field of equations/find.html: shows the entries in whose words every word that was typed occurs.
"use strict";

function findEquations() {
  const field = document.getElementById("find-equation");
  if (!field) return;
  const entries = [...document.querySelectorAll(".equation")];
  for (const each of entries) each.words = `${each.dataset.words} ${each.textContent.toLowerCase()}`;

  const show = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    // a number with all its digits is that number, and not the beginning of a longer one
    const has = (words, word) => (/^eq-\d\d/.test(word) ? new RegExp(`${word}(?!\\d)`).test(words) : words.includes(word));
    const found = entries.filter((each) => {
      each.hidden = !wanted.every((word) => has(each.words, word));
      return !each.hidden;
    });
    document.getElementById("found-equations").textContent =
      wanted.length ? `${found.length} of ${entries.length} entries` : "";
  };
  field.addEventListener("input", show);
  if (/^#EQ-\d+$/i.test(location.hash)) field.value = location.hash.slice(1);
  show();
}

findEquations();
