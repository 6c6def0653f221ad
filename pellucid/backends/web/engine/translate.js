// Text to text: reads a line, searches, writes, and says which word comes from which.

import { softmax } from "./equations.js";
import { beam, drawing, greedy, lengthLimit, searchTogether } from "./search.js";
import { judged } from "./suspicious.js";
import { stack, tensor } from "./tensors.js";
import { isBlank } from "./tokenizers.js";
import { readEdits, Trace } from "./trace.js";
import { PAD_ID, BOS_ID, stepAttention, EOS_ID } from "./transformer.js";

/** The settings of a search: those of the file, and what a call asks for beside them. */
export function searchSettings(header, asked) {
  const settings = { ...header.decoding, n_best: 1, ...asked };
  return {
    ...settings,
    n_best: Math.min(settings.n_best, settings.beam_size),
    temperature: settings.temperature || 1, // 0: the likeliest, as if nothing were drawn
  };
}

/** What chooses each token: a search (null), or chance, if a temperature or a seed asks for it. */
const chooserOf = ({ temperature = 0, seed = null }) =>
  temperature > 0 || seed !== null ? drawing(seed ?? 0) : null;

const ROWS = 32; // hypotheses whose next tokens are computed at once

/**
 * The translation of a line, with all that the page shows of it.
 *
 * `options` are settings of the search, and: `prefix`, ids that it must begin with; `edits` of the
 * model; `onToken(text)` after every step. With a `temperature` above 0, or a `seed`, tokens are drawn
 * at random instead.
 */
export function translate(model, text, options) {
  return translateLines(model, [text], options)[0];
}

/**
 * The translations of lines, each as `translate` gives it. The searches of lines of about the same length
 * go on side by side, so that the weights of the model are read once for all of them.
 */
export function translateLines(model, texts, { edits = {}, prefix = [], onToken, ...asked } = {}) {
  const settings = searchSettings(model.header, asked);
  const trace = new Trace(null, readEdits(edits));
  const lines = texts.map((text) => readLine(model, text, settings));
  const watch = { onToken: (ids) => onToken?.(lines[0].restored(model.target.decode(ids))) };
  const said = lines.map((line) => ({ ...line.base, ...blank(line), truncated: false, warnings: [] }));
  const order = [...lines.keys()]
    .filter((at) => !lines[at].isBlank)
    .sort((a, b) => lines[a].source.length - lines[b].source.length);
  const together = Math.max(1, Math.floor(ROWS / settings.beam_size));
  for (let from = 0; from < order.length; from += together) {
    const chosen = order.slice(from, from + together);
    const sources = chosen.map((at) => lines[at].source);
    const start = startOf(model, sources, trace);
    const searches = sources.map((source) => {
      const limit = lengthLimit(source.length, settings, model.header.max_length);
      const rules = { settings, prefix, limit, kernel: model.kernel };
      return searchFor(rules, watch, chooserOf(asked));
    });
    const found = searchTogether(start.model, start.state, searches);
    chosen.forEach((at, row) => {
      const options = { memory: start.memories?.[row], settings, edits, isFree: prefix.length === 0 && chooserOf(asked) === null };
      said[at] = { ...lines[at].base, ...written(model, lines[at], found[row], options) };
    });
  }
  return said;
}

/** A line as the model reads it, with what its translation needs of it. */
function readLine(model, text, settings) {
  const { ids, tokens, ...read } = model.readSource(text, settings);
  const base = { source: text, source_ids: ids, source_tokens: tokens };
  return { ...read, base, source: ids, isBlank: ids.length === 0 || isBlank(read.spoken) };
}

/** What a search found, as texts, with the alignment of the best. */
function written(model, { base, source, spoken, restored, isTruncated, warnings }, found, { memory, settings, edits, isFree }) {
  const nBest = found.map(({ end, ...each }) => ({
    ...each,
    text: restored(model.target.decode(each.ids)),
    tokens: model.target.tokens(each.ids),
  }));
  const kept = memory !== undefined && !model.isRecurrent; // a step kept its weights
  const options = { edits, memory, end: kept ? found[0].end : null };
  const alignment = align(model, source, nBest[0].ids, settings, options);
  const why = judged({ ...base, ...nBest[0], source: spoken }, warnings, model, isFree);
  return { ...nBest[0], n_best: nBest, alignment, truncated: isTruncated, warnings: why };
}

/** The search that the settings ask for; it finds hypotheses, best first. */
function searchFor(rules, watch, choose) {
  if (choose !== null) return greedy(rules, { ...watch, choose });
  return rules.settings.beam_size === 1 ? greedy(rules, watch) : beam(rules, watch);
}

/** The translation of a line that is not searched: its own, or nothing. */
const blank = ({ isCopied, restored }) => {
  return { text: isCopied ? restored() : "", ids: [], tokens: [], log_probabilities: [], score: 0, n_best: [], alignment: [] };
};

/** What searches step through: the model itself, or one that reads the whole prefix at every step. */
function startOf(model, sources, trace) {
  if (trace.edits.mask || model.isRecurrent) {
    const memories = sources.map((source) => model.encode([...source, EOS_ID], trace));
    return { model, memories, state: model.start(memories, trace) };
  }
  // without the mask each new token changes the rows before it, so nothing can be kept (ER-36)
  const { edits } = trace;
  const recomputing = {
    step: (state, ids, parents) => {
      const read = ids.map((id, row) => {
        const { source, words } = state[parents[row]];
        return { source, words: [...words, id] };
      });
      const rows = read.map(({ source, words }) => {
        const logits = model.run({ source, target: words.slice(1), edits, keep: ["logits"] }).get("logits");
        const size = logits.shape[1];
        return tensor([1, size], logits.values.subarray(-size));
      });
      return [stack(rows), read];
    },
  };
  return { model: recomputing, state: sources.map((source) => ({ source, words: [] })) };
}

/**
 * For each token the source token with the most attention, without both stops: [source, target].
 *
 * `end` says where a search ended; its steps have computed the weights already, where they keep them.
 */
function align(model, source, target, settings, { edits, memory, end }) {
  const attentions = model.header.cross_attentions;
  if (attentions.length === 0 || target.length === 0) return [];
  // the last layer but one aligns best (Garg et al., 2019, §4)
  const layer = settings.align_layer ?? Math.max(0, attentions.length - 2);
  const name = `${attentions[layer]}.weights`;
  const weights = end
    ? stepAttention(end, layer, target.length)
    : model.run({ source, target, edits, memory, keep: [name] }).get(name);
  if (weights === undefined) return []; // the layer is switched off
  const [heads, rows, keys] = weights.shape;
  const chosen = settings.align_head === null ? [...Array(heads).keys()] : [settings.align_head];
  return target.map((_, row) => {
    let [best, most] = [0, -1];
    for (let key = 0; key < keys - 1; key++) {
      const sum = chosen.reduce((all, head) => all + weights.values[(head * rows + row) * keys + key], 0);
      if (sum > most) [best, most] = [key, sum];
    }
    return [best, row];
  });
}

/** The likeliest next tokens after a prefix, each with its best translation. */
export function alternatives(model, text, prefix, count, options = {}) {
  const settings = searchSettings(model.header, {});
  const source = model.readSource(text, settings).ids;
  const edits = options.edits ?? {};
  const logits = model.run({ source, target: prefix, edits, keep: ["logits"] }).get("logits");
  const size = logits.shape[1];
  const row = softmax(tensor([1, size], logits.values.subarray(-size))).values;
  row[PAD_ID] = row[BOS_ID] = 0;
  const ids = Array.from(row.keys())
    .sort((a, b) => row[b] - row[a])
    .filter((id) => row[id] > 0)
    .slice(0, count);
  return ids.map((id) => {
    const said = translate(model, text, { ...options, n_best: 1, prefix: [...prefix, id] });
    return { ...said, token: model.target.tokens([id])[0], probability: row[id] };
  });
}

/** The ids of a text with masks, for an encoder; the id of BOS stands for a mask there. */
export function readMasked(tokenizer, text) {
  return text.split("[MASK]").flatMap((part, index) => [
    ...(index > 0 ? [BOS_ID] : []),
    ...(part.trim() === "" ? [] : tokenizer.encode(part.trim())),
  ]);
}

/** The likeliest ordinary tokens for each mask of a text (an encoder's; EQ-137). */
export function fillMasks(model, text, count) {
  const { ids } = model.readSource(text);
  const logits = model.run({ source: ids, keep: ["logits"] }).get("logits");
  const size = logits.shape[1];
  const filled = [...ids];
  const masks = ids.flatMap((id, at) => {
    if (id !== BOS_ID) return [];
    // a mask stands for an ordinary token
    const ordinary = logits.values.subarray(at * size + 4, (at + 1) * size);
    const row = softmax(tensor([1, size - 4], ordinary)).values;
    const best = Array.from(row.keys()).sort((a, b) => row[b] - row[a]).slice(0, count);
    filled[at] = best[0] + 4;
    const tokens = model.target.tokens(best.map((id) => id + 4));
    return [{ at, candidates: tokens.map((token, k) => ({ token, probability: row[best[k]] })) }];
  });
  return { text: model.target.decode(filled), ids: filled, tokens: model.target.tokens(filled), masks };
}

/** A text continued by at most `newTokens` tokens (a decoder's; EQ-138). */
export function continueText(model, prompt, newTokens, { onToken, ...asked } = {}) {
  const own = searchSettings(model.header, asked);
  const prefix = model.target.encode(prompt);
  const longest = model.header.max_length;
  // the lengths of a search count the prompt too
  const least = Math.min(own.min_length, newTokens);
  const settings = { ...own, min_length: least ? prefix.length + least : 0 };
  const most = prefix.length + newTokens;
  const rules = { settings, prefix, limit: longest === null ? most : Math.min(most, longest - 1), kernel: model.kernel };
  const watch = { onToken: (ids) => onToken?.(model.target.decode(ids)) };
  const state = model.start([null], new Trace(null, readEdits({})));
  const [[{ end, ...found }]] = searchTogether(model, state, [searchFor(rules, watch, chooserOf(asked))]);
  return { ...found, text: model.target.decode(found.ids), tokens: model.target.tokens(found.ids), prompt_length: prefix.length };
}
