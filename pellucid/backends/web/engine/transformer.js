// The whole Transformer on one page, once more: pellucid/equations/transformer.py, text_models.py.
//
// A sentence is a matrix with a row for each token, so there is no padding and no batch. Every function
// takes `pass`: the config of the model and the trace, which keeps intermediates and holds the edits.
// tests/web holds each variant to Python: logits, captures, edits and cached steps.

import {
  activate,
  alibiSlopes,
  causalMask,
  gatedMean,
  jointPositions,
  learnedPositions,
  maskedSoftmax,
  networkEmbedding,
  normalize,
  oneHotPositions,
  relativeDistance,
  rotaryPositions,
  sigmoid,
  sinusoidalPositions,
  softmax,
  summedPositions,
} from "./equations.js";
import { add, dot, linear, map, scale, stack, tensor, zeros } from "./tensors.js";

// pellucid/core/special.py
export const PAD_ID = 0;
export const UNK_ID = 1;
export const BOS_ID = 2;
export const EOS_ID = 3;

// ---- embedding ----

/** X⁽⁰⁾ = √d_model · W_Embedding[ids] + P, the first id at position `start` (EQ-15, EQ-28, EQ-29). */
export function embedTokens(ids, weights, pass, side, { start = 0, startSymbol = "token" } = {}) {
  const { config, trace } = pass;
  const width = weights.weight.shape[1];
  const looked = zeros([ids.length, width]);
  ids.forEach((id, row) => {
    looked.values.set(weights.weight.values.subarray(id * width, (id + 1) * width), row * width);
  });
  trace.keep(`${side}.lookup`, looked);

  let x = scale(looked, config.scale_embeddings ? Math.sqrt(width) : 1);
  // the decoder of the Single Page starts from a zero vector (EQ-106)
  if (startSymbol === "zero" && ids.includes(BOS_ID)) {
    x = tensor(x.shape, x.values.slice());
    ids.forEach((id, row) => id === BOS_ID && x.values.fill(0, row * width, (row + 1) * width));
  }
  if (weights.network !== null) x = networkEmbedding(x, ...weights.network);
  trace.keep(`${side}.embedding`, x);
  return trace.keep(`${side}.input`, encodePositions(x, weights.positions, pass, side, start));
}

/** Positions of the kind that the config names (EQ-21 to EQ-24, EQ-29, EQ-30). */
function encodePositions(x, weights, { config, trace }, side, start) {
  const isOn = trace.edits.positions;
  const [length, width] = x.shape;
  switch (config.positions) {
    case "sinusoidal":
    case "sinusoidal_t2t":
    case "learned": {
      if (!isOn) return x;
      const rows =
        config.positions === "learned"
          ? learnedPositions(length, weights.table, start)
          : sinusoidalPositions(length, width, start + config.start_position, config.positions);
      return add(x, trace.keep(`${side}.positions`, rows));
    }
    case "one_hot":
      return oneHotPositions(x, weights.w, start, isOn);
    case "joint":
      return jointPositions(x, weights, start, isOn);
    case "summed":
      return summedPositions(x, weights, start, isOn);
    default:
      return x; // relative, rotary and alibi act inside attention, none nowhere
  }
}

// ---- attention ----

/** Rows cut into pieces, one per head: (length, heads · size) → (heads, length, size) (EQ-33). */
export function splitHeads(x, heads) {
  const [length, width] = x.shape;
  const size = width / heads;
  if (length === 1) return tensor([heads, 1, size], x.values); // the same numbers in the same order
  const split = zeros([heads, length, size]);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < length; row++) {
      const from = row * width + head * size;
      split.values.set(x.values.subarray(from, from + size), (head * length + row) * size);
    }
  }
  return split;
}

/** The heads' rows side by side; undoes `splitHeads` (EQ-34). */
export function mergeHeads(x) {
  const [heads, length, size] = x.shape;
  if (length === 1) return tensor([1, heads * size], x.values);
  const merged = zeros([length, heads * size]);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < length; row++) {
      const from = (head * length + row) * size;
      merged.values.set(x.values.subarray(from, from + size), row * heads * size + head * size);
    }
  }
  return merged;
}

/** The keys, or the values, of all heads for rows that are read: x W^K, and x W^V (EQ-78). */
export function project(x, weights, part, heads) {
  const { weight, bias } = weights[part];
  return splitHeads(linear(x, weight, bias), heads);
}

/**
 * Keys or values and where they lie: that of a head and a position begins at
 * `head · headStep + slot · slotStep`, with the position's slot, or the position itself.
 */
const rowsOf = ({ shape: [, length, size], values }) => ({
  values,
  size,
  headStep: length * size,
  slotStep: size,
  slots: null,
});

/**
 * S = Q Kᵀ / √dₖ, with positions where they act here (EQ-31, EQ-51, EQ-60).
 *
 * query is (heads, n, dₖ), its first row at position `offset`, and `keyCount` keys are read.
 */
function attentionScores(query, keyCount, key, weights, { config, trace }, offset) {
  const [heads, length, size] = query.shape;
  const kind = weights.isSelf && trace.edits.positions ? config.positions : "none";
  const slopes = kind === "alibi" ? alibiSlopes(heads) : null;
  const factor = config.scale_attention ? 1 / Math.sqrt(size) : 1;
  const table = kind === "relative" ? weights.keyDistances.values : null;
  const { slots, headStep, slotStep } = key;
  const [q, k] = [query.values, key.values];
  const scores = zeros([heads, length, keyCount]);
  for (let head = 0; head < heads; head++) {
    for (let i = 0; i < length; i++) {
      const from = (head * length + i) * size;
      for (let j = 0; j < keyCount; j++) {
        const at = head * headStep + (slots === null ? j : slots[j]) * slotStep;
        let sum = dot(q, from, k, at, size);
        if (table !== null) {
          // qᵢ · (kⱼ + aᴷ[j - i])
          sum += dot(q, from, table, relativeDistance(i + offset, j, config.relative_clip) * size, size);
        }
        sum *= factor;
        if (slopes !== null) sum -= slopes[head] * Math.abs(j - i - offset);
        scores.values[(head * length + i) * keyCount + j] = sum;
      }
    }
  }
  return scores;
}

/** head = A V: the mean of the values under the weights (EQ-50, EQ-55; EQ-31 for distances). */
function mix(weights, value, attention, { config, trace }, offset) {
  const [heads, length, keyCount] = weights.shape;
  const isRelative = attention.isSelf && trace.edits.positions && config.positions === "relative";
  const { size } = value;
  const mixed = zeros([heads, length, size]);
  for (let head = 0; head < heads; head++) {
    for (let i = 0; i < length; i++) {
      const row = head * length + i;
      const shares = weights.values.subarray(row * keyCount, (row + 1) * keyCount);
      mean(shares, value, head * value.headStep, mixed.values, row * size);
      if (!isRelative) continue;
      const distances = attention.valueDistances.values;
      shares.forEach((share, j) => {
        const a = relativeDistance(i + offset, j, config.relative_clip) * size; // + aⱽ[j - i]
        for (let f = 0; f < size; f++) mixed.values[row * size + f] += share * distances[a + f];
      });
    }
  }
  return mixed;
}

/** Σⱼ sharesⱼ vⱼ of one head, written to `to` at `out`; four features at a time. */
function mean(shares, { values, size, slots, slotStep }, start, to, out) {
  let f = 0;
  for (; f + 4 <= size; f += 4) {
    let a = 0, b = 0, c = 0, d = 0;
    for (let j = 0; j < shares.length; j++) {
      const at = start + (slots === null ? j : slots[j]) * slotStep + f;
      const share = shares[j];
      a += share * values[at];
      b += share * values[at + 1];
      c += share * values[at + 2];
      d += share * values[at + 3];
    }
    to[out + f] = a;
    to[out + f + 1] = b;
    to[out + f + 2] = c;
    to[out + f + 3] = d;
  }
  for (; f < size; f++) {
    let sum = 0;
    for (let j = 0; j < shares.length; j++) {
      sum += shares[j] * values[start + (slots === null ? j : slots[j]) * slotStep + f];
    }
    to[out + f] = sum;
  }
}

/**
 * Multi-head attention of whole sequences; self-attention if the queries are the memory itself.
 *
 *     MultiHead(Q, K, V) = Concat(head₁, …, head_h) W^O   (EQ-77, EQ-82, EQ-83, EQ-89)
 */
export function attend(x, memory, may, weights, pass, name) {
  const { config, trace } = pass;
  let query = project(x, weights, "query", config.heads);
  let key = project(memory, weights, "key", config.heads);
  if (weights.isSelf && config.positions === "rotary" && trace.edits.positions) {
    [query, key] = [rotaryPositions(query), rotaryPositions(key)];
  }
  const value = project(memory, weights, "value", config.heads);
  trace.keepHeads(name, "query", query);
  trace.keepHeads(name, "key", key);
  trace.keepHeads(name, "value", value);

  const scores = attentionScores(query, memory.shape[0], rowsOf(key), weights, pass, 0);
  trace.keepHeads(name, "scores", scores);
  if (!trace.isIdle) trace.keepHeads(name, "masked_scores", masked(scores, may));
  const attention = trace.withRows(name, maskedSoftmax(scores, may));
  trace.keepHeads(name, "weights", attention);

  const mixed = trace.withoutHeads(name, mix(attention, rowsOf(value), weights, pass, 0));
  const merged = mergeHeads(trace.keepHeads(name, "heads", mixed));
  trace.keep(`${name}.concatenation`, merged);
  return linear(merged, weights.output.weight, weights.output.bias);
}

/** The scores, -∞ where the mask hides a key (EQ-70, EQ-72). */
function masked(scores, may) {
  if (may === null) return scores;
  const [, queries, keys] = scores.shape;
  const values = scores.values.map((value, at) => {
    const query = Math.floor(at / keys) % queries;
    return may(query, at % keys) ? value : -Infinity;
  });
  return tensor(scores.shape, values);
}

// ---- blocks ----

/** FFN(x) = activation(x W₁ + b₁) W₂ + b₂ (EQ-100, EQ-101). */
export function feed(x, weights, { config, trace }, name) {
  const before = trace.keep(`${name}.preactivation`, linear(x, weights.w_1, weights.b_1));
  const hidden = trace.keep(`${name}.hidden`, activate(before, config.activation));
  return linear(hidden, weights.w_2, weights.b_2);
}

/** The norm of a config, with these weights. */
export function norm(x, weights, { config }) {
  return normalize(x, config.norm_kind, weights?.gain, weights?.bias, config.norm_eps);
}

/**
 * A sublayer with residual connection and norm around it.
 *
 *     post-norm:  LayerNorm(x + Sublayer(x))      pre-norm:  x + Sublayer(LayerNorm(x))   (EQ-95, EQ-96)
 */
export function sublayer(x, run, weights, pass, name) {
  const { trace } = pass;
  const change = (rows) =>
    trace.keep(`${name}.output`, trace.isOff(name) ? trace.nothing(rows) : run(rows));
  if (placement(pass) === "pre") {
    const normed = trace.keep(`${name}.norm`, norm(x, weights, pass));
    return trace.keep(`${name}.residual`, add(x, change(normed)));
  }
  const sum = trace.keep(`${name}.residual`, add(x, change(x)));
  return trace.keep(`${name}.norm`, norm(sum, weights, pass));
}

const placement = ({ config, trace }) => trace.edits.norm ?? config.norm;

/** The norm that closes a pre-norm stack; one without gain where post-norm left no weights for it. */
export function lastNorm(x, weights, pass) {
  return placement(pass) === "pre" ? norm(x, weights, pass) : x;
}

/** Self-attention, then feed-forward, each with Add & Norm (EQ-104; with a causal mask EQ-138). */
export function encoderBlock(x, may, weights, pass, name) {
  if (pass.trace.isOff(name)) return pass.trace.keep(`${name}.output`, x);
  const [attention, network] = [`${name}.self_attention`, `${name}.feed_forward`];
  x = sublayer(
    x,
    (rows) => attend(rows, rows, may, weights.selfAttention, pass, attention),
    weights.selfAttentionNorm,
    pass,
    attention,
  );
  x = sublayer(x, (rows) => feed(rows, weights.feedForward, pass, network), weights.feedForwardNorm, pass, network);
  return pass.trace.keep(`${name}.output`, x);
}

/** The gates of an SSRU and what each row adds to its cells: F = σ(Y W_f + b_f), N = Y W. */
function ssruInputs(rows, { w, w_f, b_f }, { trace }, name) {
  const before = trace.keep(`${name}.preactivation`, linear(rows, w_f, b_f));
  const gates = trace.keep(`${name}.gate`, map(before, sigmoid));
  return [gates, trace.keep(`${name}.candidate`, linear(rows, w, null))];
}

/** The SSRU over a sequence: ReLU of cells that begin at zero. */
function ssru(rows, weights, pass, name) {
  const [gates, candidates] = ssruInputs(rows, weights, pass, name);
  const [length, width] = rows.shape;
  const cells = zeros([length, width]);
  let cell = new Float32Array(width);
  for (let row = 0; row < length; row++) {
    cell = gatedMean(rowOf(gates, row), rowOf(candidates, row), cell);
    cells.values.set(cell, row * width);
  }
  return activate(pass.trace.keep(`${name}.cell`, cells), "relu");
}

const rowOf = ({ values, shape: [, width] }, row) => values.subarray(row * width, (row + 1) * width);

/** Masked self-attention or an SSRU, each with Add & Norm (EQ-108). */
function readBefore(y, may, weights, pass, name) {
  if (weights.ssru !== null) {
    const unit = `${name}.ssru`;
    return sublayer(y, (rows) => ssru(rows, weights.ssru, pass, unit), weights.ssruNorm, pass, unit);
  }
  const attention = `${name}.self_attention`;
  return sublayer(
    y,
    (rows) => attend(rows, rows, may, weights.selfAttention, pass, attention),
    weights.selfAttentionNorm,
    pass,
    attention,
  );
}

/** Masked self-attention or an SSRU, cross-attention and feed-forward, each with Add & Norm (EQ-108, EQ-109). */
export function decoderBlock(y, memory, may, weights, pass, name) {
  if (pass.trace.isOff(name)) return pass.trace.keep(`${name}.output`, y);
  const [cross, network] = ["cross_attention", "feed_forward"].map((part) => `${name}.${part}`);
  y = readBefore(y, may, weights, pass, name);
  y = sublayer(
    y,
    (rows) => attend(rows, memory, null, weights.crossAttention, pass, cross),
    weights.crossAttentionNorm,
    pass,
    cross,
  );
  y = sublayer(y, (rows) => feed(rows, weights.feedForward, pass, network), weights.feedForwardNorm, pass, network);
  return pass.trace.keep(`${name}.output`, y);
}

// ---- encoder, decoder, logits ----

/** X⁽⁰⁾ → X⁽¹⁾ → … → X⁽ᴺ⁾ (EQ-105). */
export function encode(model, source, trace) {
  const pass = { config: model.config, trace };
  let x = embedTokens(source, model.sourceEmbedding, pass, "encoder");
  model.encoder.forEach((weights, index) => {
    x = encoderBlock(x, null, weights, pass, `encoder.layers.${index}`);
  });
  return trace.keep("encoder.output", lastNorm(x, model.encoderNorm, pass));
}

/** Y⁽⁰⁾ → Y⁽¹⁾ → … → Y⁽ᴺ⁾, every block reading the same memory (EQ-90, EQ-110). */
export function decode(model, memory, target, trace) {
  const pass = { config: model.config, trace };
  const may = trace.edits.mask ? causalMask : null;
  let y = embedTokens(target, model.targetEmbedding, pass, "decoder", {
    startSymbol: model.config.start_symbol,
  });
  model.decoder.forEach((weights, index) => {
    const name = `decoder.layers.${index}`;
    y = model.encoder === null
      ? encoderBlock(y, may, weights, pass, name)
      : decoderBlock(y, memory, may, weights, pass, name);
  });
  return trace.keep("decoder.output", lastNorm(y, model.decoderNorm, pass));
}

/** Z = Y W^S + b^S, and their softmax (EQ-112, EQ-113). */
export function distribution(hidden, model, trace) {
  if (!trace.wants("logits") && !trace.wants("probabilities")) return null;
  const logits = trace.keep("logits", linear(hidden, model.output.weight, model.output.bias));
  if (trace.wants("probabilities")) trace.keep("probabilities", softmax(logits));
  return logits;
}

// ---- one token at a time ----

/**
 * The state of a decoder before the first tokens, with a row for each of `memories`: the keys and values of
 * the sources, computed once (EQ-90), and a pool of those of the targets, which all hypotheses share
 * (EQ-130). In a model without an encoder each memory is null.
 */
export function startDecoding(model, memories, trace) {
  const { d_model, heads } = model.config;
  const read = (weights, part) =>
    memories.map((memory) => memory && rowsOf(project(memory, weights.crossAttention, part, heads)));
  const layers = model.decoder.map((weights) => ({
    keys: weights.selfAttention && new Pool(heads * weights.selfAttention.keySize),
    values: weights.selfAttention && new Pool(heads * weights.selfAttention.valueSize),
    cells: weights.ssru && new Pool(d_model), // of an SSRU, after the token of each slot
    memoryKeys: read(weights, "key"),
    memoryValues: read(weights, "value"),
    attention: [], // by slot: the weights over the source
  }));
  return {
    layers,
    length: 0,
    used: 0,
    memoryLengths: memories.map((memory) => memory?.shape[0] ?? 0),
    memoryOf: memories.map((_, index) => index), // by row
    slots: memories.map(() => []), // by row
    trace,
  };
}

/** Rows that are only ever added. */
class Pool {
  constructor(width) {
    this.width = width;
    this.values = new Float32Array(32 * width);
  }

  write(slot, row) {
    if ((slot + 1) * this.width > this.values.length) {
      const larger = new Float32Array(2 * this.values.length);
      larger.set(this.values);
      this.values = larger;
    }
    this.values.set(row, slot * this.width);
  }

  /** The row in a slot. */
  row(slot) {
    return this.values.slice(slot * this.width, (slot + 1) * this.width);
  }

  /** The rows in these slots, cut into heads; called after the last of them is written. */
  rows(slots, size) {
    return { values: this.values, size, headStep: size, slotStep: this.width, slots };
  }
}

/**
 * Feed one token to each hypothesis: the logits of the next, and the new state.
 *
 * Row r continues row `parents[r]` of the state. A key and a value are written once; a hypothesis is
 * the list of its slots in the pool, so nothing is copied when beams are crossed.
 */
export function step(model, state, ids, parents) {
  const { config } = model;
  const { trace } = state;
  const pass = { config, trace };
  const slots = parents.map((parent, row) => [...state.slots[parent], state.used + row]);
  const memoryOf = parents.map((parent) => state.memoryOf[parent]);
  const next = { ...state, length: state.length + 1, used: state.used + ids.length, slots, memoryOf };
  // one by one: in a step all rows have the same position
  const place = { start: state.length, startSymbol: config.start_symbol };
  let y = stack(ids.map((id) => embedTokens([id], model.targetEmbedding, pass, "decoder", place)));
  model.decoder.forEach((weights, index) => {
    y = stepBlock(y, next, index, weights, pass);
  });
  const hidden = lastNorm(y, model.decoderNorm, pass);
  return [linear(hidden, model.output.weight, model.output.bias), next];
}

/** A block for the newest row of each hypothesis; the state counts it already. */
function stepBlock(y, { slots, memoryOf, memoryLengths, layers, length }, index, weights, pass) {
  const { config, trace } = pass;
  const name = `decoder.layers.${index}`;
  if (trace.isOff(name)) return y;
  const cache = layers[index];
  const position = length - 1;
  const { heads } = config;

  const attendToSelf = (rows) => {
    const self = weights.selfAttention;
    const turns = config.positions === "rotary" && trace.edits.positions;
    const query = linear(rows, self.query.weight, self.query.bias);
    const key = linear(rows, self.key.weight, self.key.bias);
    const value = linear(rows, self.value.weight, self.value.bias);
    const read = slots.map((own, row) => {
      const turn = (x) => (turns ? rotaryPositions(headsOf(x, row, heads), position) : headsOf(x, row, heads));
      cache.keys.write(own.at(-1), turn(key).values);
      cache.values.write(own.at(-1), headsOf(value, row, heads).values);
      const [keys, values] = [cache.keys.rows(own, self.keySize), cache.values.rows(own, self.valueSize)];
      return { query: turn(query), keys, values, count: length };
    });
    return stepHeads(read, self, pass, `${name}.self_attention`, position);
  };

  const readCells = (rows) => {
    const [gates, candidates] = ssruInputs(rows, weights.ssru, pass, `${name}.ssru`);
    const nothing = new Float32Array(rows.shape[1]);
    const after = slots.map((own, row) => {
      const before = own.length > 1 ? cache.cells.row(own.at(-2)) : nothing;
      const cell = gatedMean(rowOf(gates, row), rowOf(candidates, row), before);
      cache.cells.write(own.at(-1), cell);
      return tensor([1, cell.length], cell);
    });
    return activate(stack(after), "relu");
  };

  const attendToMemory = (rows) => {
    const cross = weights.crossAttention;
    const query = linear(rows, cross.query.weight, cross.query.bias);
    const read = memoryOf.map((memory, row) => ({
      query: headsOf(query, row, heads),
      keys: cache.memoryKeys[memory],
      values: cache.memoryValues[memory],
      count: memoryLengths[memory],
    }));
    const keep = (attention, row) => {
      cache.attention[slots[row].at(-1)] = attention;
    };
    return stepHeads(read, cross, pass, `${name}.cross_attention`, position, keep);
  };

  y = weights.ssru !== null
    ? sublayer(y, readCells, weights.ssruNorm, pass, `${name}.ssru`)
    : sublayer(y, attendToSelf, weights.selfAttentionNorm, pass, `${name}.self_attention`);
  if (weights.crossAttention !== null) {
    y = sublayer(y, attendToMemory, weights.crossAttentionNorm, pass, `${name}.cross_attention`);
  }
  return sublayer(
    y,
    (rows) => feed(rows, weights.feedForward, pass, `${name}.feed_forward`),
    weights.feedForwardNorm,
    pass,
    `${name}.feed_forward`,
  );
}

/** Row `row` of a projection, cut into its heads: (heads, 1, size). */
function headsOf(x, row, heads) {
  const width = x.shape[1];
  return tensor([heads, 1, width / heads], x.values.subarray(row * width, (row + 1) * width));
}

/** Attention of the newest row of each hypothesis; `read` has its query, keys and values. */
function stepHeads(read, weights, pass, name, position, keep = () => {}) {
  const { trace } = pass;
  const joined = read.map(({ query, keys, values, count }, row) => {
    const scores = attentionScores(query, count, keys, weights, pass, position);
    const attention = trace.withRows(name, maskedSoftmax(scores, null), position);
    keep(attention.values, row);
    return mergeHeads(trace.withoutHeads(name, mix(attention, values, weights, pass, position)));
  });
  return linear(stack(joined), weights.output.weight, weights.output.bias);
}

/**
 * The weights over the source, (heads, count, source), with which a layer chose the first `count` tokens
 * of the hypothesis in a row of a state; undefined if its cross-attention is switched off.
 */
export function stepAttention({ state: { layers, slots, memoryOf, memoryLengths, trace }, row }, layer, count) {
  const name = `decoder.layers.${layer}`;
  if (trace.isOff(name) || trace.isOff(`${name}.cross_attention`)) return undefined;
  const kept = slots[row].slice(0, count).map((slot) => layers[layer].attention[slot]);
  const keys = memoryLengths[memoryOf[row]];
  const heads = kept[0].length / keys;
  const weights = zeros([heads, count, keys]);
  kept.forEach((values, at) => {
    for (let head = 0; head < heads; head++) {
      weights.values.set(values.subarray(head * keys, (head + 1) * keys), (head * count + at) * keys);
    }
  });
  return weights;
}
