// The translators before the Transformer, once more: pellucid/equations/recurrent_translator.py.

import { gruCell, lstmCell, maskedSoftmax } from "./equations.js";
import { beside, linear, map, product, scale, stack, tensor, times, zeros } from "./tensors.js";

/** √d_model · W[id] (EQ-14, EQ-15). */
function embed(ids, weights, { config, trace }, side) {
  const width = weights.weight.shape[1];
  const looked = zeros([ids.length, width]);
  ids.forEach((id, row) => {
    looked.values.set(weights.weight.values.subarray(id * width, (id + 1) * width), row * width);
  });
  trace.keep(`${side}.lookup`, looked);
  return trace.keep(`${side}.embedding`, scale(looked, config.scale_embeddings ? Math.sqrt(width) : 1));
}

const rowOf = (x, row) => x.values.subarray(row * x.shape[1], (row + 1) * x.shape[1]);

const fromRows = (rows) => stack(rows.map((row) => tensor([1, row.length], row)));

/** The state of a layer before its first word: zeros for h, and for c in an LSTM. */
function startOf(cell, kind) {
  const size = cell.w_hh.shape[1];
  return kind === "lstm" ? [new Float32Array(size), new Float32Array(size)] : [new Float32Array(size)];
}

/** One layer over a sequence: h after every word, and the last state (EQ-131, EQ-132). */
function read(x, state, cell, kind) {
  const inputs = linear(x, cell.w_ih, cell.b_ih);
  const hidden = [];
  for (let row = 0; row < x.shape[0]; row++) {
    state = nextState(rowOf(inputs, row), state, cell, kind);
    hidden.push(state[0]);
  }
  return [fromRows(hidden), state];
}

function nextState(input, state, cell, kind) {
  const before = tensor([1, state[0].length], state[0]);
  const recurrent = linear(before, cell.w_hh, cell.b_hh).values;
  return kind === "lstm" ? lstmCell(input, recurrent, state[1]) : [gruCell(input, recurrent, state[0])];
}

/** The rows from the last to the first; with `stop` the last row stays where it is (EQ-134). */
function reversed(x, { stop = false } = {}) {
  const rows = Array.from({ length: x.shape[0] }, (_, row) => rowOf(x, row));
  const last = stop ? rows.splice(-1) : [];
  return fromRows([...rows.reverse(), ...last]);
}

/** The hidden states of the last layer at every word, and the last state of every layer (EQ-133, EQ-134). */
export function encodeRecurrent(model, source, trace) {
  const { config } = model;
  let x = embed(source, model.sourceEmbedding, { config, trace }, "encoder");
  const layers = model.encoder.map((directions, index) => {
    if (config.reverse_source) x = reversed(x, { stop: true });
    let [hidden, state] = read(x, startOf(directions[0], config.cell), directions[0], config.cell);
    if (directions.length === 2) {
      const start = startOf(directions[1], config.cell);
      const [backward, backState] = read(reversed(x), start, directions[1], config.cell);
      hidden = beside(hidden, reversed(backward));
      state = state.map((each, at) => Float32Array.of(...each, ...backState[at]));
    }
    x = config.reverse_source ? reversed(hidden, { stop: true }) : hidden;
    trace.keep(`encoder.layers.${index}.hidden`, x);
    return state;
  });
  return { states: trace.keep("encoder.output", x), layers };
}

/** The state before the first words, a row for each memory: each layer from the encoder's of the same number. */
export function startRecurrent(model, memories, trace) {
  const { attention, config } = model;
  const rows = memories.map(({ layers, states }) => {
    const summary = layers.at(-1)[0];
    const fed = config.feed_summary ? summary : new Float32Array(summary.length);
    return { layers, fed, keys: attention?.w_key ? times(states, attention.w_key) : states, values: states };
  });
  return { rows, trace };
}

/** Feed one token to each hypothesis; row r continues row `parents[r]` of the state. */
export function stepRecurrent(model, state, ids, parents) {
  const read = ids.map((id, row) => readWord(model, state.rows[parents[row]], id, state.trace));
  const outputs = fromRows(read.map(({ output }) => output));
  const rows = read.map(({ next }) => next);
  return [linear(outputs, model.output.weight, model.output.bias), { ...state, rows }];
}

function readWord(model, before, id, trace) {
  const { config } = model;
  const isFed = config.input_feeding || config.feed_summary;
  const word = embed([id], model.targetEmbedding, { config, trace }, "step");
  let x = isFed ? beside(word, tensor([1, before.fed.length], before.fed)) : word;
  const layers = model.decoder.map((cell, index) => {
    const input = linear(x, cell.w_ih, cell.b_ih).values;
    const next = nextState(input, before.layers[index], cell, config.cell);
    x = tensor([1, next[0].length], next[0]);
    return next;
  });
  const attended = model.attention === null ? null : attendToStates(x, before, model, trace);
  const output = attended === null ? x.values : attended.output.values;
  return {
    output,
    attended,
    embedding: word,
    hidden: layers.map(([hidden]) => hidden),
    next: { ...before, layers, fed: config.input_feeding ? output : before.fed },
  };
}

/** h̃ₜ = tanh([cₜ ; hₜ] W_c), cₜ = Σₛ softmaxₛ(score(hₜ, h̄ₛ)) h̄ₛ (EQ-135, EQ-136); hidden is one row. */
function attendToStates(hidden, { keys, values }, model, trace) {
  const { attention, config } = model;
  const scores = scoresOf(hidden, keys, attention, config.attention);
  const weights = maskedSoftmax(scores, null);
  const context = trace.isOff("decoder.cross_attention")
    ? zeros([1, values.shape[1]])
    : times(weights, values);
  const output = map(times(beside(context, hidden), attention.w_c), Math.tanh);
  return { scores, weights, context, output };
}

function scoresOf(hidden, keys, attention, kind) {
  switch (kind) {
    case "dot": // hₜ · h̄ₛ
      return tensor([1, keys.shape[0]], product(hidden.values, keys));
    case "general": // hₜᵀ W h̄ₛ
      return tensor([1, keys.shape[0]], product(times(hidden, attention.w_query).values, keys));
    default: { // additive: v · tanh(hₜ W_a + h̄ₛ U_a)
      const query = times(hidden, attention.w_query).values;
      const scores = zeros([1, keys.shape[0]]);
      keys.values.forEach((value, at) => {
        const feature = at % query.length;
        scores.values[Math.floor(at / query.length)] +=
          attention.v.values[feature] * Math.tanh(query[feature] + value);
      });
      return scores;
    }
  }
}

/** The decoder's outputs after each word of a known target, word by word (EQ-132, EQ-136). */
export function decodeRecurrent(model, memory, target, trace) {
  // each word is read by itself, and would be traced as such
  const silent = { isOff: (name) => trace.isOff(name), keep: (_, value) => value };
  embed(target, model.targetEmbedding, { config: model.config, trace }, "decoder");
  let [row] = startRecurrent(model, [memory], silent).rows;
  const words = target.map((id) => {
    const word = readWord(model, row, id, silent);
    row = word.next;
    return word;
  });
  model.decoder.forEach((_, index) => {
    trace.keep(`decoder.layers.${index}.hidden`, fromRows(words.map(({ hidden }) => hidden[index])));
  });
  if (model.attention !== null) {
    const name = "decoder.cross_attention";
    for (const part of ["scores", "weights"]) {
      const joined = stack(words.map(({ attended }) => attended[part]));
      trace.keepHeads(name, part, tensor([1, ...joined.shape], joined.values)); // as one head
    }
    for (const part of ["context", "output"]) {
      trace.keep(`${name}.${part}`, stack(words.map(({ attended }) => attended[part])));
    }
  }
  return trace.keep("decoder.output", fromRows(words.map(({ output }) => output)));
}
