// Why one word and not another: pellucid/inspection/attribution.py once more.
//
// The residual stream of a position is a sum of parts. With the deviations of the norms held, the way from a
// part to the logits is linear, so the difference of two logits is split exactly; and ALTI+ (Ferrando et
// al., 2022) says how much of the last hidden state each word is. Sums are in double precision.

import { relativeDistance } from "./equations.js";
import { readEdits } from "./trace.js";
import { PAD_ID, BOS_ID, EOS_ID } from "./transformer.js";

/** The sublayers of a block in their order: the name of its parts, its title, and the key of its weights. */
const SUBLAYERS = [
  { part: "self_attention", kind: "self-attention", key: "selfAttention" },
  { part: "ssru", kind: "SSRU", key: "ssru" },
  { part: "cross_attention", kind: "cross-attention", key: "crossAttention" },
  { part: "feed_forward", kind: "feed-forward", key: "feedForward" },
];

/**
 * What each part of `model` adds to the difference of two words' logits at `position`, and the shares of source
 * and prefix; the values of `pellucid.why`. Ids as in `model.run`; without `word` the word that stands at the
 * position, without `rival` the likeliest other one. Null for a model without a residual stream.
 */
export function explain(model, { source = [], target = [], edits = {}, position, word = null, rival = null }) {
  if (model.isRecurrent) return null;
  const read = readEdits(edits);
  const context = {
    config: model.config,
    edits: read,
    placement: read.norm ?? model.config.norm,
    weights: model.weights,
    values: model.run({ source, target, edits }),
    side: model.config.kind === "encoder" ? "encoder" : "decoder",
  };

  const logits = rowOf(context.values.get("logits"), position);
  const words = model.config.kind === "encoder" ? [...source, EOS_ID] : [...target, EOS_ID];
  // an encoder reads BOS where a word is hidden
  const said = words[position] === BOS_ID ? likeliest(logits, []) : words[position];
  const id = word ?? said;
  const other = rival ?? likeliest(logits, [id, PAD_ID, BOS_ID]);

  const parts = logitParts(context, position, id, other);
  const shares = contributions(context);
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const candidate = candidates(logits);
  return {
    position,
    word: candidate(id),
    rival: candidate(other),
    difference: logits[id] - logits[other],
    total: sum(parts.map(({ value }) => value)),
    parts,
    source_contributions: shares.source[position] ?? [],
    prefix_contributions: shares.prefix[position],
    source_share: sum(shares.source[position] ?? []),
    prefix_share: sum(shares.prefix[position]),
  };
}

function candidates(logits) {
  const highest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0);
  return (id) => ({ id, logit: logits[id], probability: Math.exp(logits[id] - highest) / total });
}

function likeliest(logits, without) {
  let best = -1;
  logits.forEach((logit, id) => {
    if (!without.includes(id) && (best < 0 || logit > logits[best])) best = id;
  });
  return best;
}

// ---- the sublayers on the way to the logits

/** The blocks of a side with their names, without those that are switched off. */
function blocksOf({ weights, edits }, side) {
  return weights[side]
    .map((block, index) => ({ block, name: `${side}.layers.${index}` }))
    .filter(({ name }) => !edits.off.has(name));
}

/** The sublayers of a side in their order: what they read, what they leave, and their weights. */
function sublayersOf(context, side) {
  let before = `${side}.input`;
  return blocksOf(context, side).flatMap(({ block, name }) =>
    SUBLAYERS.filter(({ key }) => block[key]).map(({ part, kind, key }) => {
      const sublayer = {
        name: `${name}.${part}`,
        kind,
        weights: block[key],
        norm: block[`${key}Norm`],
        before,
        stream: `${name}.${part}.${context.placement === "post" ? "norm" : "residual"}`,
        isOff: context.edits.off.has(`${name}.${part}`),
      };
      before = sublayer.stream;
      return sublayer;
    }),
  );
}

/** Names of parameters have no side in a decoder by itself. */
const owned = ({ config }, name) => (config.kind === "decoder" ? name.replace(/^decoder\./, "") : name);

// ---- the difference of two logits

function logitParts(context, row, word, rival) {
  const { weights, values, side } = context;
  const parts = [];
  const matrix = weights.output.weight;
  const [ours, theirs] = [rowOf(matrix, word), rowOf(matrix, rival)];
  let direction = ours.map((value, at) => value - theirs[at]);
  const { bias } = weights.output;
  if (bias) parts.push({ name: "output_bias", kind: "bias", value: bias.values[word] - bias.values[rival], attended: [] });

  const through = (norm, x, name) => {
    if (norm?.bias) parts.push({ name: owned(context, name), kind: "bias", value: dot(norm.bias.values, direction), attended: [] });
    direction = directionBeforeNorm(direction, x, norm?.gain?.values ?? null, context.config);
  };
  const sublayers = sublayersOf(context, side);
  if (context.placement === "pre") {
    const end = sublayers.at(-1)?.stream ?? `${side}.input`;
    through(weights[`${side}Norm`], rowOf(values.get(end), row), `${side}.last_norm.bias`);
  }
  for (const sublayer of sublayers.reverse()) {
    if (context.placement === "post") {
      through(sublayer.norm, rowOf(values.get(`${sublayer.name}.residual`), row), `${sublayer.name}_norm.norm.bias`);
    }
    if (!sublayer.isOff) parts.push(...sublayerParts(context, sublayer, row, direction).reverse());
  }
  parts.push(...inputParts(context, row, direction).reverse());
  return parts.reverse();
}

function sublayerParts(context, sublayer, row, direction) {
  const { name, kind, weights } = sublayer;
  const parts = [];
  let bias = null;
  if (kind === "SSRU") {
    const partsOf = ssruPartsByKey(context, sublayer);
    const attended = partsOf(row).map((part) => dot(part, direction));
    const value = attended.reduce((a, b) => a + b, 0);
    parts.push({ name: `${name}.output`, kind, value, attended });
  } else if (kind === "feed-forward") {
    bias = weights.b_2;
    const output = rowOf(context.values.get(`${name}.output`), row);
    const value = dot(output.map((each, at) => each - (bias?.values[at] ?? 0)), direction);
    parts.push({ name: `${name}.output`, kind, value, attended: [] });
  } else {
    bias = weights.output.bias;
    for (let head = 0; head < context.config.heads; head += 1) {
      const attended = attendedBy(context, sublayer, head, row, direction);
      const value = attended.reduce((a, b) => a + b, 0);
      parts.push({ name: `${name}.heads.${head}.output`, kind, value, attended });
    }
  }
  if (bias) {
    const last = kind === "feed-forward" ? "outer.bias" : "b_o";
    parts.push({ name: owned(context, `${name}.${last}`), kind: "bias", value: dot(bias.values, direction), attended: [] });
  }
  return parts;
}

/** What a head brings along `direction` from each position that it attends to: wⱼ vⱼ · (W^O₍ₕ₎ d). */
function attendedBy(context, sublayer, head, row, direction) {
  const weights = context.values.get(`${sublayer.name}.heads.${head}.weights`);
  const value = context.values.get(`${sublayer.name}.heads.${head}.value`);
  const [keys, size] = value.shape;
  if (context.edits.off.has(`${sublayer.name}.heads.${head}`)) return Array(keys).fill(0);

  const { weight } = sublayer.weights.output; // (d_model, heads · value_size)
  const width = weight.shape[1];
  const back = Array.from({ length: size }, (_, feature) => {
    let sum = 0;
    direction.forEach((each, at) => { sum += each * weight.values[at * width + head * size + feature]; });
    return sum;
  });
  const table = distancesOf(context, sublayer);
  return Array.from({ length: keys }, (_, key) => {
    const vector = value.values.subarray(key * size, (key + 1) * size);
    let sum = dot(vector, back);
    if (table) sum += dot(rowOf(table, relativeDistance(row, key, context.config.relative_clip)), back);
    return weights.values[row * keys + key] * sum;
  });
}

/** The vectors that relative positions add to the values, if they do. */
function distancesOf({ config, edits }, sublayer) {
  const isOn = config.positions === "relative" && edits.positions && sublayer.kind === "self-attention";
  return isOn ? sublayer.weights.valueDistances : null;
}

function inputParts({ values, side }, row, direction) {
  const whole = dot(rowOf(values.get(`${side}.input`), row), direction);
  if (!values.has(`${side}.positions`)) return [{ name: `${side}.input`, kind: "embedding", value: whole, attended: [] }];
  const embedding = dot(rowOf(values.get(`${side}.embedding`), row), direction);
  return [
    { name: `${side}.embedding`, kind: "embedding", value: embedding, attended: [] },
    { name: `${side}.positions`, kind: "positions", value: whole - embedding, attended: [] },
  ];
}

// ---- the shares of source and prefix

function contributions(context) {
  const count = (side) => context.values.get(`${side}.input`).shape[0];
  let source = [];
  if (context.config.kind === "transformer") {
    source = identity(count("encoder"));
    for (const sublayer of sublayersOf(context, "encoder")) {
      if (sublayer.kind === "self-attention") source = times(ownContributions(context, sublayer), source);
    }
  }

  let prefix = identity(count(context.side));
  let read = prefix.map(() => Array(source.length).fill(0));
  let attended = prefix;
  for (const sublayer of sublayersOf(context, context.side)) {
    if (sublayer.kind === "self-attention" || sublayer.kind === "SSRU") {
      attended = ownContributions(context, sublayer);
      if (context.config.kind !== "transformer") prefix = times(attended, prefix);
    } else if (sublayer.kind === "cross-attention") {
      const crossed = crossedContributions(context, sublayer);
      const scaled = (rows) => rows.map((each, row) => each.map((value) => crossed[row].at(-1) * value));
      prefix = scaled(times(attended, prefix));
      const kept = scaled(times(attended, read));
      const fetched = times(crossed.map((each) => each.slice(0, -1)), source);
      read = kept.map((each, row) => each.map((value, at) => value + fetched[row][at]));
    }
  }
  return { source: read, prefix };
}

function ownContributions(context, sublayer) {
  return mixed(context, sublayer, (parts, stream, row) =>
    parts.map((part, key) => (key === row ? part.map((value, at) => value + stream[at]) : part)),
  );
}

const crossedContributions = (context, sublayer) => mixed(context, sublayer, (parts, stream) => [...parts, stream]);

/** Contributions of each position: `join` puts the parts of the keys and of the stream side by side. */
function mixed(context, sublayer, join) {
  const { values, config } = context;
  const before = values.get(sublayer.before);
  const after = values.get(sublayer.stream);
  const residual = values.get(`${sublayer.name}.residual`);
  const partsOf = sublayer.kind === "SSRU" ? ssruPartsByKey(context, sublayer) : partsByKey(context, sublayer, before.shape[1]);
  return Array.from({ length: before.shape[0] }, (_, row) => {
    let parts = join(partsOf(row), rowOf(before, row), row);
    if (context.placement === "post") {
      const length = lengthOf(rowOf(residual, row), config);
      parts = parts.map((part) => normalizePart(part, length, sublayer.norm?.gain?.values ?? null, config));
    }
    return tokenContributions(parts, rowOf(after, row));
  });
}

/** For a position: what all heads together bring from each key, in the width of the model. */
function partsByKey({ values, config, edits }, sublayer, width) {
  const keys = values.get(`${sublayer.name}.heads.0.value`)?.shape[0] ?? 0;
  if (sublayer.isOff || keys === 0) {
    const count = sublayer.kind === "cross-attention" ? values.get("encoder.output").shape[0] : values.get(sublayer.before).shape[0];
    return () => Array.from({ length: count }, () => Array(width).fill(0));
  }
  const { weight } = sublayer.weights.output;
  const table = distancesOf({ config, edits }, sublayer);
  const heads = Array.from({ length: config.heads }, (_, head) => {
    const value = values.get(`${sublayer.name}.heads.${head}.value`);
    return {
      weights: values.get(`${sublayer.name}.heads.${head}.weights`),
      brought: projected(value, weight, head),
      distances: table && projected(table, weight, head),
      isOff: edits.off.has(`${sublayer.name}.heads.${head}`),
    };
  }).filter(({ isOff }) => !isOff);
  return (row) =>
    Array.from({ length: keys }, (_, key) => {
      const part = Array(width).fill(0);
      for (const { weights, brought, distances } of heads) {
        const share = weights.values[row * keys + key];
        if (share === 0) continue;
        add(part, brought, key, share);
        if (distances) add(part, distances, relativeDistance(row, key, config.relative_clip), share);
      }
      return part;
    });
}

/** For a position: what each position before it, and it itself, adds to the output of an SSRU. */
function ssruPartsByKey({ values }, { name, before, isOff }) {
  const [length, width] = values.get(before).shape;
  if (isOff) return () => Array.from({ length }, () => Array(width).fill(0));
  const [gates, candidates, cells] = ["gate", "candidate", "cell"].map((part) => values.get(`${name}.${part}`));
  return (row) => {
    const parts = Array.from({ length }, () => Array(width).fill(0));
    for (let at = 0; at < width; at += 1) {
      if (!(cells.values[row * width + at] > 0)) continue; // nothing passes ReLU
      let kept = 1; // the product of the gates after the key
      for (let key = row; key >= 0; key -= 1) {
        const gate = gates.values[key * width + at];
        parts[key][at] = (1 - gate) * kept * candidates.values[key * width + at];
        kept *= gate;
      }
    }
    return parts;
  };
}

/** Rows of one head through its slice of W^O: (rows, value_size) to (rows, d_model). */
function projected(rows, weight, head) {
  const [count, size] = rows.shape;
  const [outputs, width] = weight.shape;
  const out = new Float64Array(count * outputs);
  for (let row = 0; row < count; row += 1) {
    for (let at = 0; at < outputs; at += 1) {
      let sum = 0;
      for (let f = 0; f < size; f += 1) sum += rows.values[row * size + f] * weight.values[at * width + head * size + f];
      out[row * outputs + at] = sum;
    }
  }
  return { values: out, width: outputs };
}

function add(part, rows, row, factor) {
  for (let at = 0; at < part.length; at += 1) part[at] += factor * rows.values[row * rows.width + at];
}

// ---- the equations (pellucid/equations/attribution.py)

const isCentered = ({ norm_kind: kind }) => kind === "layer" || kind === "l2_centered";

function centered(x, config) {
  if (!isCentered(config)) return x;
  const mean = x.reduce((a, b) => a + b, 0) / x.length;
  return x.map((value) => value - mean);
}

/** What a norm divides the row `x` by. */
function lengthOf(x, config) {
  const squares = centered(x, config).reduce((sum, value) => sum + value * value, 0);
  const isMean = config.norm_kind === "layer" || config.norm_kind === "rms";
  return Math.sqrt((isMean ? squares / x.length : squares) + config.norm_eps);
}

/** The share of a part in the norm of a row, whose length is held. */
function normalizePart(part, length, gain, config) {
  return centered(part, config).map((value, at) => ((gain?.[at] ?? 1) * value) / length);
}

/** The direction before a norm: p · d′ = N(p) · d. */
function directionBeforeNorm(direction, x, gain, config) {
  const length = lengthOf(x, config);
  const scaled = direction.map((value, at) => (gain?.[at] ?? 1) * value);
  return centered(scaled, config).map((value) => value / length);
}

/** cⱼ = max(0, ‖y‖₁ - ‖y - pⱼ‖₁), divided by their sum; by lengths where all are zero. */
function tokenContributions(parts, whole) {
  const size = (x) => x.reduce((sum, value) => sum + Math.abs(value), 0);
  const norm = size(whole);
  const near = parts.map((part) => Math.max(0, norm - size(whole.map((value, at) => value - part[at]))));
  const shares = near.some((value) => value > 0) ? near : parts.map(size);
  const total = shares.reduce((a, b) => a + b, 0);
  return shares.map((value) => (total > 0 ? value / total : 0));
}

// ---- matrices as lists of rows

/** A row of a matrix as a list of doubles. */
const rowOf = ({ shape, values }, row) => Array.from(values.subarray(row * shape[1], (row + 1) * shape[1]));

function dot(x, y) {
  let sum = 0;
  for (let at = 0; at < y.length; at += 1) sum += x[at] * y[at];
  return sum;
}

const identity = (size) => Array.from({ length: size }, (_, row) => Array.from({ length: size }, (_, at) => Number(at === row)));

const times = (x, y) =>
  x.map((row) => Array.from({ length: y[0]?.length ?? 0 }, (_, at) => row.reduce((sum, value, key) => sum + value * y[key][at], 0)));
