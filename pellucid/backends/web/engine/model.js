// A model of a file: reads text, runs, translates.

import { explain } from "./attribution.js";
import { logSoftmax } from "./equations.js";
import { oddLine } from "./odd_lines.js";
import { openSeenWords } from "./seen_words.js";
import { sourceWarnings } from "./suspicious.js";
import { isBlank, openTokenizer } from "./tokenizers.js";
import { readEdits, Trace } from "./trace.js";
import {
  decode,
  distribution,
  encode,
  BOS_ID,
  startDecoding,
  step,
  EOS_ID,
  UNK_ID,
} from "./transformer.js";
import { alternatives, continueText, fillMasks, readMasked, translate, translateLines } from "./translate.js";
import { decodeRecurrent, encodeRecurrent, startRecurrent, stepRecurrent } from "./recurrent.js";
import { arrange, readParameters } from "./weights.js";

const SPECIAL_COUNT = 4;

/**
 * The model of a file: `header` is its JSON, `bytes` all of its weights.
 *
 * With `isPlain` every product is computed by the plain loops of tensors.js.
 */
export function openModel(header, bytes, options = {}) {
  const model = new Model(header, readParameters(header, bytes, options));
  check(model, header.check);
  return model;
}

/** Throws if the model gives other log-probabilities than the program that made the page did. */
function check(model, { source, target, log_probabilities: expected, tolerance }) {
  const isEncoder = model.config.kind === "encoder";
  const { shape, values } = model.run({ source, target, keep: ["logits"] }).get("logits");
  const ids = [...(isEncoder ? source : target), EOS_ID];
  const found = ids.map((id, row) => logSoftmax(values.slice(row * shape[1], (row + 1) * shape[1]))[id]);
  const largest = Math.max(1, ...expected.map(Math.abs));
  const distance = Math.max(...found.map((each, at) => Math.abs(each - expected[at])));
  if (!(distance <= tolerance * largest)) {
    throw new Error(
      `it computes other scores than the program that made this page (log-probabilities differ by` +
        ` ${distance.toPrecision(2)}); export the page again, or open it in another browser`,
    );
  }
}

class Model {
  constructor(header, parameters) {
    this.header = header;
    this.config = header.config;
    this.parameters = parameters;
    this.kernel = parameters.values().next().value?.kernel ?? null;
    this.weights = { config: header.config, ...arrange(header.config, parameters) };
    this.isRecurrent = header.config.kind.startsWith("rnn");
    this.target = openTokenizer(header.target_tokenizer);
    // one tokenizer of both sides stands in the file once
    this.source = header.source_tokenizer === null ? this.target : openTokenizer(header.source_tokenizer);
    this.seen = openSeenWords(header.seen_words);
  }

  /**
   * A text as the ids that the model reads, without the stop, and their tokens: no more than it numbers, and a text
   * in capitals in the case that it knows, unless `settings.recase` is false. `restored` makes the translation of the
   * text from what the model writes.
   */
  readSource(text, settings = this.header.decoding) {
    if (this.config.kind === "encoder") {
      const ids = readMasked(this.source, text);
      // an encoder has no BOS: its id stands for a mask
      const tokens = this.source.tokens(ids).map((token, at) => (ids[at] === BOS_ID ? "[MASK]" : token));
      return { ids, tokens, restored: (found) => found, isTruncated: false, warnings: [] };
    }
    // no step reads the code (decoding/rewriting.py)
    const code = this.source.codeOf?.(text) ?? "";
    const spoken = code === "" ? text : text.slice(code.length).replace(/^ /, "");
    const { plain: bare, isCopied, restored } = oddLine(spoken, settings, this);
    const plain = code === "" || isBlank(bare) ? bare : `${code} ${bare}`;
    const all = this.source.encode(plain);
    const longest = this.header.max_length;
    const most = Math.min(settings.max_source_tokens, longest === null ? Infinity : longest - 1);
    const ids = all.slice(0, most);
    const warnings = sourceWarnings(this.source, plain, all, most, this.seen, this.header.longest_source);
    return { ids, tokens: this.source.tokens(ids), isCopied, restored, spoken, isTruncated: all.length > most, warnings };
  }

  readTarget(text) {
    const ids = this.target.encode(text);
    return { ids, tokens: this.target.tokens(ids) };
  }

  /** The ids of tokens of the target, as `tokens` names them; a translation may have unknown words. */
  idsOf(tokens) {
    const all = this.target.all;
    return tokens.map((token) => {
      const id = all.indexOf(token, SPECIAL_COUNT);
      if (id !== -1) return id;
      if (token === all[UNK_ID]) return UNK_ID;
      throw new Error(`the vocabulary must hold each token of the prefix, got “${token}”`);
    });
  }

  /** The tokens of ids of the target's vocabulary. */
  tokens(ids) {
    return this.target.tokens(ids);
  }

  /** See `translate` in translate.js, and so for the others. */
  translate(text, options) {
    return translate(this, text, options);
  }

  translateLines(texts, options) {
    return translateLines(this, texts, options);
  }

  alternatives(text, prefix, count, options) {
    return alternatives(this, text, prefix, count, options);
  }

  fillMasks(text, count = 5) {
    return fillMasks(this, text, count);
  }

  continueText(prompt, newTokens, options) {
    return continueText(this, prompt, newTokens, options);
  }

  /** A parameter by its name in the bundle. */
  parameter(name) {
    const found = this.parameters.get(name);
    if (found === undefined) throw new Error(`this model has no parameter ${name}`);
    return { shape: found.shape, values: found.values };
  }

  /**
   * One pass with teacher forcing: every intermediate by the name that pellucid.inspect gives it.
   *
   * `source` are ids without the stop, `target` ids without start and stop; `keep` are patterns of
   * names. A model of plain text reads one of the two: an encoder `source`, a decoder `target`.
   * `memory` is what `encode` gave for the same source and edits, so that it is not read again.
   */
  run({ source = [], target = [], edits = {}, keep = ["*"], memory }) {
    const trace = new Trace(keep, readEdits(edits));
    const hidden = this.hidden(source, target, trace, memory);
    distribution(hidden, this.weights, trace);
    return trace.values;
  }

  /** Why a word and not another: the parts of the difference of their logits (`pellucid.why`). */
  explain(question) {
    return explain(this, question);
  }

  /** The last hidden states, from which the words are predicted. */
  hidden(source, target, trace, known) {
    const { kind } = this.config;
    if (kind === "encoder") return encode(this.weights, [...source, EOS_ID], trace);
    const memory = known ?? this.encode([...source, EOS_ID], trace);
    const decoder = this.isRecurrent ? decodeRecurrent : decode;
    return decoder(this.weights, memory, [BOS_ID, ...target], trace);
  }

  /** What the decoder reads of a source with its stop; nothing in a model of plain text. */
  encode(source, trace) {
    if (this.config.kind === "decoder") return null;
    return this.isRecurrent
      ? encodeRecurrent(this.weights, source, trace)
      : encode(this.weights, source, trace);
  }

  /** The state of searches before their first tokens, after what `encode` gave for each. */
  start(memories, trace) {
    return (this.isRecurrent ? startRecurrent : startDecoding)(this.weights, memories, trace);
  }

  /** Feed one token to each hypothesis: (logits of the next, state). */
  step(state, ids, parents) {
    return (this.isRecurrent ? stepRecurrent : step)(this.weights, state, ids, parents);
  }
}
