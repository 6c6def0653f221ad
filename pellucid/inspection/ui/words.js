// Tokens are what a model reads and writes; words are what people click on.

const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;
const NAMED = /^(?:<[^<>\s]+>|\[(?:UNK|EOS|BOS|PAD)\])$/; // stand for text they do not spell
export const SPACELESS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const MARKS_ONLY = /^[\p{P}\p{S}]+$/u;
const FAR = 40; // characters that unknown tokens may cover

/** Whether a token steers the model or stands for something unknown, and spells no text. */
export const isSilent = (token) => token === "" || (NAMED.test(token) && !BYTE.test(token));

const SPECIAL = {
  "</s>": "end",
  "[EOS]": "end",
  "<s>": "start",
  "[BOS]": "start",
  "<unk>": "unknown",
  "[UNK]": "unknown",
};

/** A token as people read it. */
export function readable(token) {
  if (Object.hasOwn(SPECIAL, token)) return SPECIAL[token];
  const byte = BYTE.exec(token);
  const code = byte === null ? 0 : Number.parseInt(byte[1], 16);
  const text = code > 0x20 && code < 0x7f ? String.fromCharCode(code) : surface(token);
  return text.trim() === "" ? "␣" : text;
}

/** The text that a token spells: without the marks of its tokenizer. */
export function surface(token) {
  return token.replace(/^▁+/u, "").replace(/▁/gu, " ").replace(/^##|@@$|<\/w>$/gu, "");
}

/**
 * Where each token stands in `text`, as [start, end).
 *
 * Tokens that spell nothing (<unk>) get what lies between their neighbors; one that is found
 * nowhere gets an empty range. Case does not matter, as many models read lower-cased text.
 */
export function locate(text, tokens) {
  const lower = text.toLowerCase().length === text.length ? text.toLowerCase() : text;
  const ranges = tokens.map(() => [0, 0]);
  let cursor = 0;
  let waiting = [];
  const settle = (end) => {
    const covered = text.slice(cursor, end);
    const start = cursor + covered.length - covered.trimStart().length;
    const stop = start + covered.trim().length;
    for (const index of waiting) ranges[index] = [start, stop];
    waiting = [];
  };
  for (let index = 0; index < tokens.length; index++) {
    const spelled = spell(tokens, index);
    if (spelled.text === "") {
      if (spelled.unknown) waiting.push(index);
      else ranges[index] = [cursor, cursor];
      continue;
    }
    const at = find(text, lower, spelled.text, cursor, waiting.length > 0 ? FAR : 3);
    const last = index + spelled.count - 1;
    if (at < 0) {
      for (; index <= last; index++) waiting.push(index);
      index = last;
      continue;
    }
    settle(at);
    for (; index <= last; index++) ranges[index] = [at, at + spelled.text.length];
    index = last;
    cursor = at + spelled.text.length;
  }
  if (waiting.length > 0) settle(text.length);
  return ranges;
}

function spell(tokens, index) {
  const bytes = [];
  while (index + bytes.length < tokens.length) {
    const match = BYTE.exec(tokens[index + bytes.length]);
    if (match === null) break;
    bytes.push(Number.parseInt(match[1], 16));
  }
  if (bytes.length > 0) {
    const text = new TextDecoder().decode(new Uint8Array(bytes)).trim();
    return { text, count: bytes.length, unknown: false };
  }
  const unknown = isSilent(tokens[index]);
  return { text: unknown ? "" : surface(tokens[index]).trim(), count: 1, unknown };
}

function find(text, lower, spelled, cursor, reach) {
  let from = cursor;
  while (from < text.length && /\s/u.test(text[from])) from++;
  const exact = text.slice(0, from + reach + spelled.length).indexOf(spelled, from);
  if (exact >= 0) return exact;
  return lower.slice(0, from + reach + spelled.length).indexOf(spelled.toLowerCase(), from);
}

/**
 * The words of `text`, in order: `{start, end, text, tokens}` with the indices of their tokens.
 *
 * What no token stands for belongs to no word. Where a script has no spaces, each token is a word.
 */
export function toWords(text, tokens) {
  const words = [];
  locate(text, tokens).forEach(([start, end], index) => {
    if (start === end) {
      return;
    }
    const word = words.at(-1);
    if (word !== undefined && start < word.end) {
      word.end = Math.max(word.end, end);
      word.tokens.push(index);
    } else if (word !== undefined && start === word.end && belongs(text, word, start, end)) {
      word.end = end;
      word.tokens.push(index);
    } else {
      words.push({ start, end, tokens: [index] });
    }
  });
  return words.map((word) => ({ ...word, text: text.slice(word.start, word.end) }));
}

function belongs(text, word, start, end) {
  const before = text.slice(word.start, word.end);
  const next = text.slice(start, end);
  if (SPACELESS.test(next) || SPACELESS.test(before)) return false;
  return MARKS_ONLY.test(before) === MARKS_ONLY.test(next);
}

/** For each word of one side, the words of the other that it is aligned with. */
export function alignWords(sourceWords, targetWords, pairs) {
  const wordOf = (words) => {
    const found = new Map();
    words.forEach((word, index) => word.tokens.forEach((token) => found.set(token, index)));
    return found;
  };
  const sourceOf = wordOf(sourceWords);
  const targetOf = wordOf(targetWords);
  const toTarget = sourceWords.map(() => new Set());
  const toSource = targetWords.map(() => new Set());
  for (const [source, target] of pairs ?? []) {
    const s = sourceOf.get(source);
    const t = targetOf.get(target);
    if (s === undefined || t === undefined) continue;
    toTarget[s].add(t);
    toSource[t].add(s);
  }
  return { toTarget, toSource };
}

/** How probable a word is: the product over its tokens; null where a token has no number. */
export function confidence(word, confidences) {
  let product = 1;
  for (const token of word.tokens) {
    const value = confidences?.[token];
    if (typeof value !== "number") return null;
    product *= value;
  }
  return product;
}

/** From 3 (sure) to 0 (guessed), as in the legend: 60%, 30% and 10% part them. */
export function level(probability) {
  if (probability === null || probability >= 0.6) return 3;
  if (probability >= 0.3) return 2;
  return probability >= 0.1 ? 1 : 0;
}
