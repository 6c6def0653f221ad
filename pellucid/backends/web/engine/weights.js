// The parameters of a file, and each kind of model as the pages of equations take it (model/clear.py).

import { slice, zeros } from "./tensors.js";
import { makeKernel } from "./kernel.js";

/** Every parameter by its name in the bundle, in float32; in the kernel's memory where there is one. */
export function readParameters(header, bytes, { isPlain = false } = {}) {
  const count = header.tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
  const kernel = isPlain ? null : makeKernel(count);
  const parameters = new Map();
  for (const { name, shape, dtype, start, scales } of header.tensors) {
    const size = shape.reduce((a, b) => a * b, 1);
    const values = kernel === null ? new Float32Array(size) : kernel.take(size);
    READERS[dtype](bytes, start, values, { scales, width: shape.at(-1) });
    parameters.set(name, { shape, values, kernel });
  }
  return parameters;
}

const READERS = { float32: readFloat32, float16: readFloat16, int8: readInt8 };

/** `count` numbers of a kind from a byte on: as they lie there, little-endian as all browsers are. */
function view(Kind, bytes, start, count) {
  const from = bytes.byteOffset + start;
  const size = Kind.BYTES_PER_ELEMENT;
  if (from % size === 0) return new Kind(bytes.buffer, from, count);
  return new Kind(bytes.slice(start, start + count * size).buffer);
}

function readFloat32(bytes, start, values) {
  values.set(view(Float32Array, bytes, start, values.length));
}

function readFloat16(bytes, start, values) {
  const numbers = view(Uint16Array, bytes, start, values.length);
  const table = halves();
  for (let i = 0; i < values.length; i++) values[i] = table[numbers[i]];
}

/** Rows of whole numbers from -127 to 127, each row with a scale. */
function readInt8(bytes, start, values, { scales, width }) {
  const numbers = view(Int8Array, bytes, start, values.length);
  const factors = view(Float32Array, bytes, scales, values.length / width);
  for (let row = 0; row * width < values.length; row++) {
    const scale = factors[row];
    for (let i = row * width; i < (row + 1) * width; i++) values[i] = scale * numbers[i];
  }
}

let table = null;

/** Every number of sixteen bits: sign, five bits of exponent, ten of fraction (IEEE 754 binary16). */
function halves() {
  if (table !== null) return table;
  table = new Float32Array(1 << 16);
  for (let bits = 0; bits < 1 << 16; bits++) {
    const exponent = (bits >> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    const sign = bits >> 15 ? -1 : 1;
    if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 0x1f) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return table;
}

/** The weights of a model by their places in its equations. */
export function arrange(config, parameters) {
  // a shared matrix is stored once: that of a tied output under the output's name
  const names = { "target_embedding.weight": "output_weight", "embedding.weight": "output_weight" };
  const get = (name) => parameters.get(name) ?? parameters.get(names[name]) ?? null;
  switch (config.kind) {
    case "transformer":
      return arrangeTransformer(config, get);
    case "encoder":
    case "decoder":
      return arrangeText(config, get);
    case "rnn":
    case "rnn-attention":
      return arrangeRecurrent(config, get);
    default:
      throw new Error(`this file holds a model of a kind that is not known here: ${config.kind}`);
  }
}

function arrangeTransformer(config, get) {
  const target = embedding(get, "target_embedding");
  // of unshared embeddings both add the same positions, stored with the first
  const source = config.share_embeddings
    ? target
    : { ...embedding(get, "source_embedding"), positions: target.positions };
  const stack = (side, count) =>
    Array.from({ length: count }, (_, index) => block(config, get, `${side}.layers.${index}`));
  return {
    sourceEmbedding: source,
    targetEmbedding: target,
    encoder: stack("encoder", config.encoder_layers),
    decoder: stack("decoder", config.decoder_layers),
    encoderNorm: norm(get, "encoder.last_norm"),
    decoderNorm: norm(get, "decoder.last_norm"),
    output: output(config, get, target),
  };
}

function arrangeText(config, get) {
  const words = embedding(get, "embedding");
  const isEncoder = config.kind === "encoder";
  const count = isEncoder ? config.encoder_layers : config.decoder_layers;
  const stem = isEncoder ? "encoder." : "";
  const blocks = Array.from({ length: count }, (_, index) => block(config, get, `${stem}layers.${index}`));
  const last = norm(get, `${stem}last_norm`);
  return {
    sourceEmbedding: words,
    targetEmbedding: words,
    encoder: isEncoder ? blocks : null,
    decoder: isEncoder ? null : blocks,
    encoderNorm: last,
    decoderNorm: last,
    output: output(config, get, words),
  };
}

function output(config, get, target) {
  return { weight: config.tie_output ? target.weight : get("output_weight"), bias: get("output_bias") };
}

function embedding(get, stem) {
  const w_x = get(`${stem}.w_x`);
  const positions = { table: get(`${stem}.positions.learned`) };
  for (const name of ["w", "w_x", "w_e", "w_z", "w_zx", "w_ze"]) {
    positions[name] = get(`${stem}.positions.matrices.${name}`);
  }
  return {
    weight: get(`${stem}.weight`),
    network: w_x === null ? null : [w_x, get(`${stem}.w_zx`)],
    positions,
  };
}

const norm = (get, stem) => ({ gain: get(`${stem}.gain`), bias: get(`${stem}.bias`) });

function block(config, get, stem) {
  const cross = `${stem}.cross_attention`;
  return {
    selfAttention: get(`${stem}.self_attention.w_o`) && attention(config, get, `${stem}.self_attention`, true),
    selfAttentionNorm: norm(get, `${stem}.self_attention_norm.norm`),
    ssru: get(`${stem}.ssru.candidate.weight`) && {
      w: get(`${stem}.ssru.candidate.weight`),
      w_f: get(`${stem}.ssru.gate.weight`),
      b_f: get(`${stem}.ssru.gate.bias`),
    },
    ssruNorm: norm(get, `${stem}.ssru_norm.norm`),
    crossAttention: get(`${cross}.w_o`) && attention(config, get, cross, false),
    crossAttentionNorm: norm(get, `${cross}_norm.norm`),
    feedForward: {
      w_1: get(`${stem}.feed_forward.inner.weight`),
      b_1: get(`${stem}.feed_forward.inner.bias`),
      w_2: get(`${stem}.feed_forward.outer.weight`),
      b_2: get(`${stem}.feed_forward.outer.bias`),
    },
    feedForwardNorm: norm(get, `${stem}.feed_forward_norm.norm`),
  };
}

/** The packed matrix cut into W^Q, W^K and W^V of all heads, with their biases. */
function attention(config, get, stem, isSelf) {
  const keySize = config.d_k ?? Math.floor(config.d_model / config.heads);
  const valueSize = config.d_v ?? Math.floor(config.d_model / config.heads);
  const packed = config.projection === "two_stage" ? twoStage(get, stem) : get(`${stem}.w_qkv`);
  const bias = get(`${stem}.b_qkv`);
  const ends = [0, keySize, 2 * keySize, 2 * keySize + valueSize].map((end) => end * config.heads);
  const part = (number) => ({
    weight: slice(packed, ends[number], ends[number + 1]),
    bias: bias && slice(bias, ends[number], ends[number + 1]),
  });
  return {
    isSelf,
    keySize,
    valueSize,
    query: part(0),
    key: part(1),
    value: part(2),
    output: { weight: get(`${stem}.w_o`), bias: get(`${stem}.b_o`) },
    keyDistances: get(`${stem}.positions.keys`),
    valueDistances: get(`${stem}.positions.values`),
  };
}

/** Wᵢ^Q = W_q W_q⁽ⁱ⁾, transposed and stacked, then the same for keys and values (EQ-87). */
function twoStage(get, stem) {
  const rows = ["query", "key", "value"].flatMap((name) => {
    const shared = get(`${stem}.two_stage.shared.${name}`); // (d_model, size)
    const each = get(`${stem}.two_stage.per_head.${name}`); // (heads, size, size)
    const [width, size] = shared.shape;
    const row = (head, column) => {
      const values = new Float32Array(width);
      for (let i = 0; i < width; i++) {
        for (let k = 0; k < size; k++) {
          values[i] += shared.values[i * size + k] * each.values[(head * size + k) * size + column];
        }
      }
      return values;
    };
    return Array.from({ length: each.shape[0] * size }, (_, at) => row(Math.floor(at / size), at % size));
  });
  const packed = zeros([rows.length, rows[0].length]);
  rows.forEach((row, at) => packed.values.set(row, at * row.length));
  return packed;
}

function arrangeRecurrent(config, get) {
  const cell = (stem, suffix) => ({
    w_ih: get(`${stem}.network.weight_ih_l0${suffix}`),
    w_hh: get(`${stem}.network.weight_hh_l0${suffix}`),
    b_ih: get(`${stem}.network.bias_ih_l0${suffix}`),
    b_hh: get(`${stem}.network.bias_hh_l0${suffix}`),
  });
  const hasAttention = config.kind === "rnn-attention";
  const suffixes = hasAttention ? ["", "_reverse"] : [""];
  const layers = (side, count, each) =>
    Array.from({ length: count }, (_, index) => each.map((suffix) => cell(`${side}.layers.${index}`, suffix)));
  const target = { weight: get("target_embedding.weight") };
  const part = (name) => get(`decoder.cross_attention.${name}`);
  return {
    sourceEmbedding: config.share_embeddings ? target : { weight: get("source_embedding.weight") },
    targetEmbedding: target,
    encoder: layers("encoder", config.encoder_layers, suffixes),
    decoder: layers("decoder", config.decoder_layers, [""]).map(([only]) => only),
    attention: hasAttention
      ? { w_query: part("w_query"), w_key: part("w_key"), v: part("v"), w_c: part("w_output") }
      : null,
    output: output(config, get, target),
  };
}
