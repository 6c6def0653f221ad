// How one number of a step's result follows from the matrices that enter it.
//
// Each function gives { parts, value, marks }: words and numbers to read, what comes out when it is
// computed here from the numbers in this file, and which row and column of each matrix was used.

import { digits, percent } from "./dom.js";
import { axisNoun, plural } from "./matrices.js";

const SHOWN_TERMS = 3;

/** The explanation of cell (row, column); `matrices` maps the step's symbols to matrices. */
export function explain(how, matrices, row, column) {
  const missing = [how.left, how.right].some((key) => key !== undefined && !matrices.get(key));
  const rule = RULES[how.kind];
  if (missing || !rule) return null;
  return rule(how, matrices, row, column);
}

const RULES = {
  product: productRule,
  dot: dotRule,
  mask: maskRule,
  softmax: softmaxRule,
  "vocabulary softmax": vocabularyRule,
  sum: sumRule,
  scale: scaleRule,
  same: sameRule,
  norm: normRule,
  relu: activationRule,
  gelu: activationRule,
  swish: activationRule,
  sigmoid: activationRule,
  recurrence: recurrenceRule,
  sinusoid: sinusoidRule,
};

function productRule(how, matrices, row, column) {
  const left = matrices.get(how.left);
  const right = matrices.get(how.right);
  const marks = { [how.left]: [row, null], [how.right]: [null, column] };
  const length = left.wholeColumns;
  if (left.columns < length || right.rows < length || column >= right.columns) {
    return cutSum(length, left.columnAxis, marks);
  }
  const terms = [];
  for (let index = 0; index < length; index += 1) {
    terms.push([index, left.at(row, index), right.at(index, column)]);
  }
  const explained = sumOf(terms, left, marks);
  if (how.bias !== undefined) {
    const bias = matrices.get(how.bias);
    if (!bias || column >= bias.columns) return cutSum(length, left.columnAxis, marks);
    explained.value += bias.at(0, column);
    explained.parts.push(` + bias ${digits(bias.at(0, column))}`);
    marks[how.bias] = [null, column];
  }
  return explained;
}

function dotRule(how, matrices, row, column) {
  const left = matrices.get(how.left);
  const right = matrices.get(how.right);
  const marks = { [how.left]: [row, null], [how.right]: [column, null] };
  const length = left.wholeColumns;
  if (left.columns < length || right.columns < length) {
    return cutSum(length, left.columnAxis, marks);
  }
  const terms = [];
  for (let index = 0; index < length; index += 1) {
    terms.push([index, left.at(row, index), right.at(column, index)]);
  }
  const explained = sumOf(terms, left, marks);
  if (how.divisor !== 1) {
    explained.parts = ["(", ...explained.parts, `) / ${digits(how.divisor)}`];
    explained.value /= how.divisor;
  }
  return explained;
}

function cutSum(length, axis, marks) {
  const text = `a sum over ${length} ${plural(axisNoun(axis))}, of which this file holds a part`;
  return { parts: [text], value: null, marks };
}

function sumOf(terms, left, marks) {
  const value = terms.reduce((sum, [, one, other]) => sum + one * other, 0);
  const largest = [...terms]
    .sort((a, b) => Math.abs(b[1] * b[2]) - Math.abs(a[1] * a[2]))
    .slice(0, SHOWN_TERMS);
  const written = largest.map(([index, one, other]) => {
    const name = left.columnWords?.[index] ?? `#${index}`;
    return `${digits(one)} × ${digits(other)} (${name})`;
  });
  const rest = terms.length - largest.length;
  if (rest > 0) written.push(`${rest} smaller term${rest === 1 ? "" : "s"}`);
  return { parts: [written.join(" + ")], value, marks };
}

function maskRule(how, matrices, row, column) {
  const score = matrices.get(how.left).at(row, column);
  const marks = { [how.left]: [row, column] };
  return { parts: [`the score ${digits(score)}, unless it is hidden`], value: null, marks };
}

function softmaxRule(how, matrices, row, column) {
  const scores = matrices.get(how.left);
  const marks = { [how.left]: [row, column] };
  if (scores.columns < scores.wholeColumns) {
    return cutSum(scores.wholeColumns, scores.columnAxis, marks);
  }
  const numbers = [...scores.row(row)];
  const most = Math.max(...numbers);
  const sum = numbers.reduce((total, each) => total + Math.exp(each - most), 0);
  const own = Math.exp(numbers[column] - most);
  const shift = digits(most);
  const parts = [
    `exp(${digits(numbers[column])} − ${shift}) / the row's sum of exp(score − ${shift})`,
    ` = ${digits(own)} / ${digits(sum)}`,
  ];
  return { parts, value: own / sum, marks };
}

function vocabularyRule(how, matrices, row, column) {
  const logit = matrices.get(how.left).at(row, column);
  const normalizer = matrices.get(how.normalizer)?.at(row, 0);
  const value = Math.exp(logit - normalizer);
  const parts = [
    `exp(${digits(logit)} − ${digits(normalizer)}), where ${digits(normalizer)} is the logarithm of`,
    ` the sum of exp(logit) over the whole vocabulary: ${percent(value)}`,
  ];
  return { parts, value, marks: { [how.left]: [row, column] } };
}

function sumRule(how, matrices, row, column) {
  const one = matrices.get(how.left).at(row, column);
  const other = matrices.get(how.right).at(row, column);
  const marks = { [how.left]: [row, column], [how.right]: [row, column] };
  return { parts: [`${digits(one)} + ${digits(other)}`], value: one + other, marks };
}

function scaleRule(how, matrices, row, column) {
  const one = matrices.get(how.left).at(row, column);
  const marks = { [how.left]: [row, column] };
  return { parts: [`${digits(how.factor)} × ${digits(one)}`], value: how.factor * one, marks };
}

function sameRule(how, matrices, row, column) {
  const value = matrices.get(how.left).at(row, column);
  return { parts: ["unchanged"], value, marks: { [how.left]: [row, column] } };
}

function normRule(how, matrices, row, column) {
  const rows = matrices.get(how.left);
  const marks = { [how.left]: [row, column] };
  if (rows.columns < rows.wholeColumns) {
    const text = `the norm runs over ${rows.wholeColumns} features; this file holds a part`;
    return { parts: [text], value: null, marks };
  }
  const numbers = rows.row(row);
  const centers = how.norm === "layer" || how.norm === "l2_centered";
  const mean = centers ? numbers.reduce((sum, each) => sum + each, 0) / numbers.length : 0;
  const squares = numbers.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  const byLength = how.norm === "l2" || how.norm === "l2_centered";
  const spread = Math.sqrt((byLength ? squares : squares / numbers.length) + how.eps);
  let value = (numbers[column] - mean) / spread;
  const over = centers ? `(${digits(numbers[column])} − ${digits(mean)})` : digits(numbers[column]);
  const parts = [`${over} / ${digits(spread)}`];
  for (const key of ["gain", "bias"]) {
    if (how[key] === undefined) continue;
    const learned = matrices.get(how[key]);
    if (!learned) return { parts, value: null, marks };
    const number = learned.at(0, column);
    value = key === "gain" ? value * number : value + number;
    parts.push(` ${key === "gain" ? "×" : "+"} ${key} ${digits(number)}`);
    marks[how[key]] = [null, column];
  }
  return { parts, value, marks };
}

function activationRule(how, matrices, row, column) {
  const x = matrices.get(how.left).at(row, column);
  const marks = { [how.left]: [row, column] };
  if (how.kind === "relu") {
    return { parts: [`max(0, ${digits(x)})`], value: Math.max(0, x), marks };
  }
  if (how.kind === "swish") {
    return { parts: [`${digits(x)} × sigmoid`], value: x / (1 + Math.exp(-x)), marks };
  }
  if (how.kind === "sigmoid") {
    return { parts: [`1 / (1 + exp(−${digits(x)}))`], value: 1 / (1 + Math.exp(-x)), marks };
  }
  return { parts: [`GELU(${digits(x)})`], value: null, marks };
}

/** A mean of the row above in the result itself, which is 0 above the first, and of a new number. */
function recurrenceRule(how, matrices, row, column) {
  const gate = matrices.get(how.left).at(row, column);
  const added = matrices.get(how.right).at(row, column);
  const before = row > 0 ? matrices.get(how.before)?.at(row - 1, column) : 0;
  const marks = { [how.left]: [row, column], [how.right]: [row, column] };
  if (before === undefined) return { parts: ["the row above is not in this file"], value: null, marks };
  const parts = [`${digits(gate)} × ${digits(before)} + (1 − ${digits(gate)}) × ${digits(added)}`];
  return { parts, value: gate * before + (1 - gate) * added, marks };
}

function sinusoidRule(how, matrices, row, column) {
  const even = column - (column % 2);
  const angle = (row + how.first) / 10000 ** (even / how.width);
  const name = column % 2 ? "cos" : "sin";
  const text = `${name}(${row + how.first} / 10000^(${even}/${how.width})) = ${name}(${digits(angle)})`;
  return { parts: [text], value: column % 2 ? Math.cos(angle) : Math.sin(angle), marks: {} };
}
