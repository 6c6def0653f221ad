// The cells below the exercises of the book: an answer is right or wrong, as `is_answered_by` of
// book/exercises.py says; tests/docs/test_site.py compares the two.
"use strict";

const TOLERANCE = 5e-3;

// Whether `text` is the answer: the same word, or a number up to three digits.
function isAnsweredBy(answer, text) {
  const given = text.trim().replace(/^['"]+|['"]+$/g, "");
  if (typeof answer === "string") return given.toLowerCase() === answer.toLowerCase();
  const plain = given.replace(/\s/g, "").replaceAll("−", "-");
  // a comma is that of 1,632 or that of 0,88
  return ["", "."].some((sign) => isClose(answer, plain.replaceAll(",", sign)));
}

function isClose(answer, text) {
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)) return false;
  const number = Number(text);
  const largest = Math.max(Math.abs(number), Math.abs(answer));
  return Math.abs(number - answer) <= Math.max(TOLERANCE * largest, 1e-6);
}

function watchCell(cell) {
  const answer = JSON.parse(cell.dataset.answer);
  const number = cell.dataset.number;
  cell.innerHTML = `<label>Your answer <input autocomplete="off" name="answer"></label>
    <button type="submit">Check</button> <output></output>`;
  cell.querySelector("input").setAttribute("aria-label", `Your answer to exercise ${number}`);
  const says = cell.querySelector("output");
  cell.addEventListener("input", () => { says.textContent = ""; });
  cell.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = cell.querySelector("input").value;
    if (text.trim() === "") return;
    const isRight = isAnsweredBy(answer, text);
    says.textContent = isRight ? "right" : "wrong";
    says.className = isRight ? "right" : "wrong";
  });
}

document.querySelectorAll("form.cell").forEach(watchCell);
