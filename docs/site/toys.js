// Equations of the book that one can play with. Each function computes what the function of
// pellucid/equations computes that it names; tests/docs/test_site.py compares the numbers.
"use strict";

// equations/softmax.py softmax, of scores divided by a temperature
function softmax(scores, temperature = 1) {
  const greatest = Math.max(...scores);
  const weights = scores.map((score) => Math.exp((score - greatest) / temperature));
  const sum = weights.reduce((left, right) => left + right, 0);
  return weights.map((weight) => weight / sum);
}

const dot = (left, right) => left.reduce((sum, value, index) => sum + value * right[index], 0);

// equations/attention.py attention_weights
function attentionWeights(queries, keys) {
  const root = Math.sqrt(keys[0].length);
  return queries.map((query) => softmax(keys.map((key) => dot(query, key) / root)));
}

// equations/attention.py attention
function attention(queries, keys, values) {
  return attentionWeights(queries, keys).map((weights) =>
    values[0].map((_, column) => dot(weights, values.map((value) => value[column]))));
}

// equations/positions.py sinusoidal_positions
function sinusoidalPositions(length, width) {
  return Array.from({ length }, (_, position) => Array.from({ length: width }, (_, feature) => {
    const phase = position / 10000 ** ((feature - (feature % 2)) / width);
    return feature % 2 ? Math.cos(phase) : Math.sin(phase);
  }));
}

// equations/label_smoothing.py smooth_labels, of one word
function smoothLabels(right, size, smoothing) {
  return Array.from({ length: size }, (_, word) =>
    smoothing / size + (word === right ? 1 - smoothing : 0));
}

// equations/schedules.py transformer_learning_rate
function learningRate(step, width, warmup) {
  return width ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5);
}

// equations/penalties.py length_penalty
function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

const show = (value, digits = 3) => value.toFixed(digits);

function bars(names, shares) {
  const rows = names.map((name, index) => `<span>${name}</span>
    <span class="bar"><i style="width:${100 * shares[index]}%"></i></span>
    <span>${show(shares[index])}</span>`);
  return `<div class="bars">${rows.join("")}</div>`;
}

// A table whose cells are the bluer the greater and the redder the smaller, from -1 to 1.
function cells(rows, names, digits = 2) {
  const cell = (value) => `<td style="--share:${Math.min(100, Math.abs(value) * 70)}%"
    class="${value < 0 ? "below" : "above"}">${digits ? show(value, digits) : ""}</td>`;
  const lines = rows.map((row, index) =>
    `<tr><th>${names[index]}</th>${row.map(cell).join("")}</tr>`);
  return `<div class="cells"><table>${lines.join("")}</table></div>`;
}

// The points (x, y) as a curve; a mark at one of them.
function curve(points, marked, labelX, labelY) {
  const [width, height] = [600, 180];
  const greatestX = Math.max(...points.map(([x]) => x));
  const greatestY = Math.max(...points.map(([, y]) => y));
  const at = ([x, y]) => `${show(width * x / greatestX, 1)},${show(height - height * y / greatestY, 1)}`;
  const [x, y] = at(marked).split(",");
  return `<svg viewBox="-8 -8 616 196" role="img" aria-label="${labelY} against ${labelX}">
    <path class="axes" d="M0,0V180H600"/><polyline points="${points.map(at).join(" ")}"/>
    <circle cx="${x}" cy="${y}" r="6"/></svg><p class="axis">${labelX} →</p>`;
}

const WORDS = ["chat", "chien", "maison", "et"];
const RIGHT_WORDS = ["cat", "dog", "house", "and", "the"];

// For each toy: a sentence, its sliders (name, least, greatest, step, first value), and what it shows.
const TOYS = {
  softmax: {
    say: "Four words with the scores below. A low temperature gives nearly all to the greatest "
      + "score, a high one shares evenly.",
    sliders: [["temperature", 0.1, 5, 0.1, 1], ["score of chat", -3, 3, 0.1, 2],
      ["score of chien", -3, 3, 0.1, 1], ["score of maison", -3, 3, 0.1, 0]],
    draw: ([temperature, ...scores]) => bars(WORDS, softmax([...scores, -1], temperature)),
  },
  attention: {
    say: "One query, three keys, three values. Turn the query: the keys that point its way get "
      + "more weight, and the answer moves toward their values.",
    sliders: [["direction of the query (degrees)", 0, 360, 5, 45],
      ["length of the query", 0, 8, 0.25, 2]],
    draw: ([degrees, length]) => {
      const angle = degrees * Math.PI / 180;
      const query = [length * Math.cos(angle), length * Math.sin(angle)];
      const [keys, values] = [[[1, 0], [0, 1], [-1, 0]], [[1, 2], [3, 4], [5, 6]]];
      const names = keys.map((key, index) => `key (${key}) → value (${values[index]})`);
      const [answer] = attention([query], keys, values);
      return `${bars(names, attentionWeights([query], keys)[0])}
        <p>query (${query.map((value) => show(value, 2)).join(", ")}), answer
        (<b>${answer.map((value) => show(value, 2)).join(", ")}</b>)</p>`;
    },
  },
  positions: {
    say: "A row for each position, a column for each feature: blue is above zero, red below. Left "
      + "the waves are short, right they are long.",
    sliders: [["positions", 4, 24, 1, 12], ["features", 4, 32, 2, 16]],
    draw: ([length, width]) => cells(sinusoidalPositions(length, width),
      Array.from({ length }, (_, position) => position), 0),
  },
  smoothing: {
    say: "What is taught where cat is right: with smoothing ε every word gets ε / 5, and the right "
      + "one 1 − ε more.",
    sliders: [["smoothing", 0, 1, 0.05, 0.1]],
    draw: ([smoothing]) => bars(RIGHT_WORDS, smoothLabels(0, RIGHT_WORDS.length, smoothing)),
  },
  warmup: {
    say: "The rate rises for the warm-up updates and then falls with the root of the update.",
    sliders: [["warm-up updates", 100, 8000, 100, 4000], ["d_model", 64, 1024, 64, 512],
      ["update", 1, 20000, 1, 4000]],
    draw: ([warmup, width, step]) => {
      const points = Array.from({ length: 201 }, (_, index) => Math.max(1, 100 * index))
        .map((at) => [at, learningRate(at, width, warmup)]);
      const rate = learningRate(step, width, warmup);
      return `${curve(points, [step, rate], "update", "learning rate")}
        <p>rate at update ${step}: <b>${rate.toExponential(2)}</b></p>`;
    },
  },
  penalty: {
    say: "Two translations: 5 words with log-probability −4, and 10 words with what you set. Their "
      + "log-probabilities are divided by the penalty; the greater quotient wins.",
    sliders: [["alpha", 0, 2, 0.05, 0.6], ["log-probability of the long one", -12, -4, 0.1, -6]],
    draw: ([alpha, long]) => {
      const scores = [-4 / lengthPenalty(5, alpha), long / lengthPenalty(10, alpha)];
      const winner = scores[0] >= scores[1] ? "the short one" : "the long one";
      return `<p>short: −4 / ${show(lengthPenalty(5, alpha))} = <b>${show(scores[0])}</b><br>
        long: ${long} / ${show(lengthPenalty(10, alpha))} = <b>${show(scores[1])}</b></p>
        <p>chosen: <b>${winner}</b></p>`;
    },
  },
};

function start(box) {
  const { say, sliders, draw } = TOYS[box.dataset.toy];
  box.innerHTML = `<p>${say}</p><form></form><div class="shown" aria-live="polite"></div>`;
  const inputs = sliders.map(([name, min, max, step, value]) => {
    const label = document.createElement("label");
    label.innerHTML = `<span>${name}</span><input type="range" min="${min}" max="${max}"
      step="${step}" value="${value}"><output>${value}</output>`;
    box.querySelector("form").append(label);
    return label.querySelector("input");
  });

  const update = () => {
    for (const input of inputs) input.nextElementSibling.textContent = input.value;
    box.querySelector(".shown").innerHTML = draw(inputs.map((input) => Number(input.value)));
  };
  box.addEventListener("input", update);
  update();
}

if (typeof document === "undefined") {
  module.exports = {
    softmax, attention, attentionWeights, sinusoidalPositions, smoothLabels, learningRate,
    lengthPenalty,
  };
} else {
  document.querySelectorAll("[data-toy]").forEach(start);
}
