// The explorer's provider over a model that computes: every sentence becomes a state like a report's.
//
// `engine` reads texts, runs the model, translates and hands out tensors, by promises or at once:
// `readSource(text)` and `readTarget(text)` give `{ ids, tokens }`, `tokens(ids)` the pieces of a vocabulary,
// `run({ source, target, edits, keep })` a Map of tensors `{ shape, values }` by their names in a capture,
// `translate(text, { ...search, edits })` gives `{ ids, text }`, and `parameter(name)` a learned tensor.

import { Matrix } from "./matrices.js";

const STOP_MARK = "</s>";
const START_MARK = "<s>";
const SPACE = "▁";
const REMEMBERED = 8;
const SEEN = ["encoder.*", "decoder.*", "logits"]; // probabilities are few, and computed from these

/**
 * The provider for `engine` and the `plan` that Python wrote for its model. `search` are the settings that the
 * model is searched with if nobody changes them.
 */
export function liveProvider(engine, plan, search = {}) {
  const loaded = new Map(); // stored tensors that some matrix needed
  const requested = new Map(); // the promises to load them
  const known = new Map(); // states of the last sentences, which are asked for again at every intervention
  const live = {
    model: engine,
    search: { beam_size: 1, length_penalty: 1, temperature: 0, ...search },
    async compute(asked) {
      const key = JSON.stringify(asked);
      const state = once(known, key, () => stateOf(engine, plan, loaded, live.search, asked));
      if (known.size > REMEMBERED) known.delete(known.keys().next().value);
      return state;
    },
    /** Load what the learned matrices with these names are parts of. */
    async prepare(names) {
      const tensors = new Set(names.map((name) => plan.parameters[name]?.tensor).filter(Boolean));
      for (const name of tensors) {
        await once(requested, name, async () => loaded.set(name, (await engine.parameter(name)).values));
      }
    },
  };
  return { plan, state: null, live };
}

/** The promise of what `make` gives, made once for each key of a map; one that fails is forgotten. */
function once(map, key, make) {
  if (!map.has(key)) {
    const promise = Promise.resolve().then(make);
    const forget = () => map.get(key) === promise && map.delete(key);
    map.set(key, promise);
    promise.catch(forget);
  }
  return map.get(key);
}

async function stateOf(engine, plan, loaded, usual, { source, target, edits, search, translation }) {
  const read = await readingOf(engine, plan, source, translation);
  let said = { ids: [], text: source };
  if (plan.reads === "target") said = { ids: (await engine.readTarget(source)).ids, text: source };
  else if (plan.reads === "pairs" && target !== null) said = { ids: (await engine.readTarget(target)).ids, text: target };
  else if (plan.reads === "pairs") said = translation ?? (await engine.translate(source, { ...usual, ...search, edits }));
  const ids = said.ids.at(-1) === plan.stop ? said.ids.slice(0, -1) : said.ids;

  const capture = await engine.run({ source: read.ids, target: ids, edits, keep: SEEN });
  const logits = capture.get("logits");
  const likely = likeliest(logits, plan.shown);
  const saidIds = spokenIds(plan, ids, likely);
  const shown = [...new Set([...saidIds, ...likely.flatMap((row) => row.map(([id]) => id))])];
  const pieces = await piecesOf(engine, [...shown, ...ids], logits.shape[1]);
  const label = labelerOf(pieces);
  const words = new Map(shown.map((id, index) => [id, id === plan.stop ? STOP_MARK : label(pieces[index])]));
  const targetTokens = pieces.slice(shown.length);
  const saidTokens = saidIds.map((id) => pieces[shown.indexOf(id)]);
  const says = withCharacters(saidTokens, saidIds.map((id) => words.get(id)));

  const axes = axisWords(plan, read.tokens, targetTokens, says, shown, words);
  const sentence = {
    source,
    target: said.text,
    source_tokens: [...read.tokens, STOP_MARK],
    source_ids: [...read.ids, plan.stop],
    read_tokens: [START_MARK, ...targetTokens],
    read_ids: [plan.start, ...ids],
    said_tokens: [...targetTokens, STOP_MARK],
    said_ids: saidIds,
    confidences: saidIds.map((id, row) => shareOf(logits, likely, row, id)),
  };
  const predictions = likely.map((row) => row.map(([id, share]) => [words.get(id), share, id]));
  const matrix = matrixReader({ plan, capture, loaded, words: axes, shown, likely });
  return { sentence, words: axes, predictions, matrix, config: plan.config, entries: plan.entries, capture };
}

/** The ids and tokens of a source; a translation that is known brings them along, which saves asking a worker. */
async function readingOf(engine, plan, source, translation) {
  if (plan.reads === "target") return { ids: [], tokens: [] };
  const { source_ids: ids, source_tokens: tokens } = translation ?? {};
  return ids?.length > 0 ? { ids, tokens } : engine.readSource(source);
}

const vocabularies = new WeakMap(); // of engines, asked for once

/** The pieces of ids of a vocabulary of `size`. */
export async function piecesOf(engine, ids, size) {
  const all = await once(vocabularies, engine, () => engine.tokens([...Array(size).keys()]));
  return ids.map((id) => all[id]);
}

/** What each position says: the text itself, shifted; where nothing is given, what is likeliest. */
function spokenIds(plan, ids, likely) {
  if (plan.reads === "source") return likely.map(([[id]]) => id);
  if (plan.reads === "target") return [...ids, likely.at(-1)[0][0]];
  return [...ids, plan.stop];
}

/** The likeliest ids of each position with their probabilities, NaN last; `normalizer` is log Σ exp of the row. */
export function likeliest({ shape, values }, count) {
  const [rows, size] = shape;
  return Array.from({ length: rows }, (_, row) => {
    const logits = values.subarray(row * size, (row + 1) * size);
    let most = -Infinity;
    for (const logit of logits) if (logit > most) most = logit;
    let sum = 0;
    for (const logit of logits) sum += Math.exp(logit - most);
    const isAbove = (id, other) =>
      logits[id] > logits[other] || (Number.isNaN(logits[other]) && !Number.isNaN(logits[id]));
    const best = [];
    for (let id = 0; id < size; id += 1) {
      if (best.length === count && !isAbove(id, best[count - 1])) continue;
      let place = best.length;
      while (place > 0 && isAbove(id, best[place - 1])) place -= 1;
      best.splice(place, 0, id);
      if (best.length > count) best.pop();
    }
    const found = best.map((id) => [id, Math.exp(logits[id] - most) / sum]);
    found.normalizer = most + Math.log(sum);
    return found;
  });
}

function shareOf({ shape, values }, likely, row, id) {
  return Math.exp(values[row * shape[1] + id] - likely[row].normalizer);
}

/** The labels of each axis, as the report writes them. */
function axisWords(plan, sourceTokens, targetTokens, says, shown, words) {
  const source = labels([...sourceTokens, STOP_MARK]);
  const reads = labels([START_MARK, ...targetTokens]);
  const here = plan.reads === "source" ? source : reads;
  return {
    source,
    reads: here,
    says,
    steps: here.map((word, row) => stepLabel(word, says[row])),
    candidates: shown.map((id) => words.get(id)),
  };
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** The label of a position that reads one token and predicts another (`step_label` in steps.py). */
export function stepLabel(read, said) {
  return RIGHT_TO_LEFT.test(read + said) ? `\u200e\u2068${read}\u2069 ▸ \u2068${said}\u2069` : `${read} ▸ ${said}`;
}

/** The labels of the tokens of a text (`label_words` in steps.py). */
export const labels = (tokens) => withCharacters(tokens, tokens.map(labelerOf(tokens)));

const BYTE = /^<0x([0-9A-F]{2})>$/;
const byteOf = (token) => (BYTE.test(token ?? "") ? Number.parseInt(BYTE.exec(token)[1], 16) : null);

/** `labels` of `tokens`; bytes that spell a character together get it: `é 1/2` and `é 2/2`. */
function withCharacters(tokens, labels) {
  const bytes = tokens.map(byteOf);
  const found = [...labels];
  for (const [first, lead] of bytes.entries()) {
    const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    const run = bytes.slice(first, first + size);
    if (size === 1 || run.length < size || run.includes(null)) continue;
    try {
      const character = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(run));
      for (let part = 0; part < size; part += 1) found[first + part] = `${character} ${part + 1}/${size}`;
    } catch {
      continue; // no character
    }
  }
  return found;
}

// begins with a letter of Thai, Lao, Burmese, Khmer, Chinese or Japanese, as SPACELESS_LETTER of scripts.py
const SPACELESS = /^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]/u;

/**
 * `▁see` becomes `see`, a piece inside a word `-ing`, and the byte of a character of ASCII that character;
 * without marks for spaces, or in a script without spaces, nothing changes.
 */
function labelerOf(tokens) {
  if (!tokens.some((token) => token.startsWith(SPACE))) return (token) => token;
  return (token) => {
    if (token.startsWith(SPACE)) return token.slice(SPACE.length) || SPACE;
    const byte = byteOf(token);
    if (byte > 0x20 && byte < 0x7f) return String.fromCharCode(byte);
    const isMark = /^[<[].*[>\]]$/.test(token);
    const isInside = /^[\p{L}\p{N}]/u.test(token) && !SPACELESS.test(token);
    return isInside && !isMark ? `-${token}` : token;
  };
}

/** A function from names to matrices; each is made when it is first asked for. */
function matrixReader(held) {
  const made = new Map();
  return (name) => {
    if (!made.has(name)) {
      const matrix = name === null ? null : makeMatrix(name, held);
      if (matrix === null) return null; // a parameter may be loaded later
      made.set(name, matrix);
    }
    return made.get(name);
  };
}

function makeMatrix(name, held) {
  if (name in held.plan.parameters) return parameterMatrix(name, held);
  if (name === "log_normalizer") {
    const values = Float32Array.from(held.likely, (row) => row.normalizer);
    return matrixOf(name, [values.length, 1], values, ["steps", "log Σ exp"], "signed", held.words);
  }
  const axes = held.plan.axes[name.replace(/\.heads\.\d+\./, ".heads.{head}.")];
  if (name === "probabilities") return shownColumns(name, held, (row, logit) => Math.exp(logit - held.likely[row].normalizer));
  const tensor = held.capture.get(name);
  if (!axes || !tensor) return null;
  if (axes[1] === "vocabulary") return shownColumns(name, held, (_, logit) => logit);
  const scale = name.endsWith(".weights") ? "share" : "signed";
  const rows = axisName(axes[0], 0, held.plan);
  return matrixOf(name, tensor.shape, tensor.values, [rows, axisName(axes[1], 1, held.plan)], scale, held.words);
}

/** A position of the decoder both reads a word and predicts one. */
function axisName(axis, side, plan) {
  if (plan.reads === "source" && axis.startsWith("target")) return "source";
  return { "source token": "source", "target token": side === 0 ? "steps" : "says", "target input token": "reads" }[axis] ?? axis;
}

function shownColumns(name, { capture, shown, words }, numberOf) {
  const { shape, values } = capture.get("logits");
  const few = new Float32Array(shape[0] * shown.length);
  for (let row = 0; row < shape[0]; row += 1) {
    shown.forEach((id, column) => {
      few[row * shown.length + column] = numberOf(row, values[row * shape[1] + id]);
    });
  }
  const scale = name === "probabilities" ? "share" : "signed";
  return matrixOf(name, [shape[0], shown.length], few, ["steps", "candidates"], scale, words);
}

function parameterMatrix(name, { plan, loaded, words, shown }) {
  const { tensor, offset, shape, strides, axes } = plan.parameters[name];
  const stored = loaded.get(tensor);
  if (!stored) return null;
  const picks = axes[1] === "candidates" ? shown : null;
  const columns = picks ? picks.length : shape[1];
  const values = new Float32Array(shape[0] * columns);
  for (let row = 0; row < shape[0]; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const from = picks ? picks[column] : column;
      values[row * columns + column] = stored[offset + row * strides[0] + from * strides[1]];
    }
  }
  return matrixOf(name, [shape[0], columns], values, axes, axes[2], words);
}

function matrixOf(name, shape, values, [rows, columns], scale, words) {
  const matrix = new Matrix(name, { shape, of: shape, rows, columns, scale }, words, "");
  matrix.values = values;
  return matrix;
}
