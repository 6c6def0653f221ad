// The equations, each a function named as in pellucid/equations, with its number in EQUATIONS.md.

import { add, map, sizes, tensor, times, zeros } from "./tensors.js";

// ---- softmax: pellucid/equations/softmax.py, masks.py ----

/** pᵢ = exp(xᵢ) / Σⱼ exp(xⱼ) along the last axis (EQ-38, EQ-113). */
export const softmax = (x) => maskedSoftmax(x, null);

/**
 * A = softmax(S + M), with exp(-∞) = 0 (EQ-72, EQ-73).
 *
 * `may(query, key)` says what is not masked; a query that may attend to nothing gets zeros.
 */
export function maskedSoftmax(scores, may) {
  const [count, keys] = sizes(scores);
  const queries = scores.shape.at(-2);
  const weights = zeros(scores.shape);
  for (let row = 0; row < count; row++) {
    const start = row * keys;
    let most = -Infinity;
    for (let key = 0; key < keys; key++) {
      const score = scores.values[start + key];
      if (score > most && (may === null || may(row % queries, key))) most = score;
    }
    let sum = 0;
    for (let key = 0; key < keys; key++) {
      if (may !== null && !may(row % queries, key)) continue;
      sum += weights.values[start + key] = Math.exp(scores.values[start + key] - most);
    }
    if (sum === 0) continue; // nothing to attend to
    for (let key = 0; key < keys; key++) weights.values[start + key] /= sum;
  }
  return weights;
}

/** log pᵢ = xᵢ - log Σⱼ exp(xⱼ) of a row of numbers, in their place (EQ-113); summed by the kernel, if there is one. */
export function logSoftmax(row, kernel = null) {
  const shift = kernel?.logSumExp(row) ?? logSumExp(row);
  for (let i = 0; i < row.length; i++) row[i] -= shift;
  return row;
}

function logSumExp(row) {
  let most = -Infinity;
  for (let i = 0; i < row.length; i++) if (row[i] > most) most = row[i];
  let sum = 0;
  for (let i = 0; i < row.length; i++) {
    const below = row[i] - most;
    // exp(-40) is 4e-18: even a million of those are beyond the digits of float32
    if (below > -40) sum += Math.exp(below);
  }
  return most + Math.log(sum);
}

/** May attend: each position to itself and to earlier positions (EQ-70). */
export const causalMask = (query, key) => key <= query;

// ---- feed-forward: pellucid/equations/feed_forward.py ----

/** Φ needs erf, which JavaScript has not: a series near zero, a continued fraction far from it. */
export function erf(x) {
  const z = Math.abs(x);
  if (z > 6) return Math.sign(x);
  if (z < 2.5) {
    // erf(z) = 2/√π Σ (-1)ⁿ z²ⁿ⁺¹ / (n! (2n + 1)); Abramowitz and Stegun, 7.1.5
    let [term, sum] = [z, z];
    for (let n = 1; Math.abs(term) > 1e-17 * sum && n < 80; n++) {
      term *= (-z * z) / n;
      sum += term / (2 * n + 1);
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  // erfc(z) = exp(-z²)/√π · 1/(z + 1/2/(z + 2/2/(z + …))); Abramowitz and Stegun, 7.1.14
  let fraction = z;
  for (let n = 60; n > 0; n--) fraction = z + n / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-z * z) / (Math.sqrt(Math.PI) * fraction));
}

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x), // EQ-99
  gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
  swish: (x) => x / (1 + Math.exp(-x)),
};

/** The activation function that a config names (EQ-99). */
export const activate = (x, kind) => map(x, ACTIVATIONS[kind]);

const relu = (x) => map(x, ACTIVATIONS.relu);

// ---- norms: pellucid/equations/normalization.py ----

/** g ⊙ (a - μ) / √(σ² + ε) + b for each row, or another norm that a config names (EQ-91, EQ-98). */
export function normalize(x, kind, gain, bias, eps) {
  const [rows, size] = sizes(x);
  const y = zeros(x.shape);
  const [from, to] = [x.values, y.values];
  const [gains, biases] = [gain?.values ?? null, bias?.values ?? null];
  const isCentered = kind === "layer" || kind === "l2_centered";
  const isMean = kind === "layer" || kind === "rms"; // the others divide by the length itself
  for (let start = 0; start < rows * size; start += size) {
    let sum = 0;
    for (let i = 0; isCentered && i < size; i++) sum += from[start + i];
    const mean = sum / size;
    let square = 0;
    for (let i = 0; i < size; i++) {
      const centered = from[start + i] - mean;
      square += centered * centered;
    }
    const factor = 1 / Math.sqrt((isMean ? square / size : square) + eps);
    for (let i = 0; i < size; i++) {
      const value = (from[start + i] - mean) * factor;
      to[start + i] = value * (gains === null ? 1 : gains[i]) + (biases === null ? 0 : biases[i]);
    }
  }
  return y;
}

// ---- positions: pellucid/equations/positions.py ----

/**
 * p[n, 2i] = sin(n / 10000^(2i/d)), p[n, 2i+1] = cos(n / 10000^(2i/d)) (EQ-24, EQ-25); with the kind
 * `sinusoidal_t2t` d − 2 stands for d in the exponent.
 */
export function sinusoidalPositions(length, width, start = 0, kind = "sinusoidal") {
  const key = `${kind} ${width}`;
  let known = sinusoids.get(key);
  if (known === undefined || known.length < (start + length) * width) {
    const over = kind === "sinusoidal_t2t" ? Math.max(2 * Math.floor(width / 2) - 2, 2) : width;
    known = computeSinusoids(Math.max(64, 2 * (start + length)), width, over);
    sinusoids.set(key, known);
  }
  return tensor([length, width], known.subarray(start * width, (start + length) * width));
}

const sinusoids = new Map(); // by kind and width; a search asks for one position at a time

function computeSinusoids(length, width, over) {
  const values = new Float32Array(length * width);
  for (let n = 0; n < length; n++) {
    for (let feature = 0; feature < width; feature++) {
      const even = feature - (feature % 2);
      const angle = n / 10000 ** (even / over);
      values[n * width + feature] = feature % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return values;
}

/** Row `start` of the table and those after it (EQ-30). */
function tableRows(table, start, length) {
  const [size, width] = table.shape;
  if (start + length > size) {
    throw new RangeError(`this model numbers ${size} tokens, and the text has ${start + length}`);
  }
  return tensor([length, width], table.values.subarray(start * width, (start + length) * width));
}

export const learnedPositions = (length, table, start = 0) => tableRows(table, start, length);

/** xₙ → (xₙ, eₙ) W (EQ-21); without positions eₙ is zero. */
export function oneHotPositions(x, w, start, isOn) {
  const [length, width] = sizes(x);
  const words = tensor([width, w.shape[1]], w.values.subarray(0, width * w.shape[1]));
  const y = times(x, words);
  if (!isOn) return y;
  const places = tensor(
    [w.shape[0] - width, w.shape[1]],
    w.values.subarray(width * w.shape[1]),
  );
  return add(y, tableRows(places, start, length)); // eₙ W is a row of W
}

/** zₙ = ReLU(xₙ W_x + eₙ W_e) W_z (EQ-22). */
export function jointPositions(x, { w_x, w_e, w_z }, start, isOn) {
  const words = times(x, w_x);
  const both = isOn ? add(words, tableRows(w_e, start, sizes(x)[0])) : words;
  return times(relu(both), w_z);
}

/** zₙ = ReLU(xₙ W_x) W_zx + ReLU(eₙ W_e) W_ze (EQ-23). */
export function summedPositions(x, { w_x, w_zx, w_e, w_ze }, start, isOn) {
  const words = networkEmbedding(x, w_x, w_zx);
  if (!isOn) return words;
  return add(words, times(relu(tableRows(w_e, start, sizes(x)[0])), w_ze));
}

/** ReLU(xₙ W_x) W_zx (EQ-28). */
export const networkEmbedding = (x, w_x, w_zx) => times(relu(times(x, w_x)), w_zx);

// ---- positions inside attention: pellucid/equations/relative.py ----

/** clip(j - i, -k, k) + k: the row of the table of distances for a pair (EQ-31). */
export function relativeDistance(query, key, clip) {
  return Math.min(Math.max(key - query, -clip), clip) + clip;
}

/** (x₂ᵢ, x₂ᵢ₊₁) turned by the angle n · 10000^(-2i/d); x is (heads, length, size). Su et al. (2021). */
export function rotaryPositions(x, start = 0) {
  const [heads, length, size] = x.shape;
  const waves = sinusoidalPositions(length, size, start).values;
  const y = zeros(x.shape);
  for (let at = 0; at < heads * length * size; at += 2) {
    const wave = at % (length * size);
    const [sine, cosine] = [waves[wave], waves[wave + 1]];
    const [even, odd] = [x.values[at], x.values[at + 1]];
    y.values[at] = even * cosine - odd * sine;
    y.values[at + 1] = even * sine + odd * cosine;
  }
  return y;
}

/** m_h = 2^(-8h/H); for H that is no power of two, also every other slope of the next one. */
export function alibiSlopes(heads) {
  const lower = 2 ** Math.floor(Math.log2(heads));
  const slopes = (count) => Array.from({ length: count }, (_, h) => 2 ** ((-8 * (h + 1)) / count));
  const between = slopes(2 * lower).filter((_, h) => h % 2 === 0);
  return [...slopes(lower), ...between.slice(0, heads - lower)];
}

// ---- recurrent cells: pellucid/equations/recurrent.py ----

export const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** c' = σ(f) ⊙ c + σ(i) ⊙ tanh(g), h' = σ(o) ⊙ tanh(c'), from W_ih x + b_ih and W_hh h + b_hh (EQ-131). */
export function lstmCell(fromInput, fromHidden, cell) {
  const size = cell.length;
  const hidden = new Float32Array(size);
  const next = new Float32Array(size);
  for (let i = 0; i < size; i++) {
    const gate = (number) => fromInput[number * size + i] + fromHidden[number * size + i];
    next[i] = sigmoid(gate(1)) * cell[i] + sigmoid(gate(0)) * Math.tanh(gate(2));
    hidden[i] = sigmoid(gate(3)) * Math.tanh(next[i]);
  }
  return [hidden, next];
}

/** c' = f ⊙ c + (1 − f) ⊙ x: the cell of an SSRU, whose gates do not read it. */
export function gatedMean(gates, inputs, cell) {
  return cell.map((before, i) => gates[i] * before + (1 - gates[i]) * inputs[i]);
}

/** ñ = tanh(n + σ(r + r') ⊙ n'), h' = (1 - σ(z + z')) ⊙ ñ + σ(z + z') ⊙ h (EQ-131). */
export function gruCell(fromInput, fromHidden, hidden) {
  const size = hidden.length;
  const next = new Float32Array(size);
  for (let i = 0; i < size; i++) {
    const reset = sigmoid(fromInput[i] + fromHidden[i]);
    const update = sigmoid(fromInput[size + i] + fromHidden[size + i]);
    const candidate = Math.tanh(fromInput[2 * size + i] + reset * fromHidden[2 * size + i]);
    next[i] = (1 - update) * candidate + update * hidden[i];
  }
  return next;
}
