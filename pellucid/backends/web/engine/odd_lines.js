// Lines that a model should not read as they are: with emoji, in capitals, without a word (decoding/odd_lines.py).

import { SPACE } from "./tokenizers.js";

const LETTER = /\p{L}/gu;
const ALPHABETIC = /\p{L}/u;
const LETTER_OR_NUMBER = /[\p{L}\p{N}]/u;
const FIRST = /[\p{L}\p{Nl}\p{No}]/u; // as Python's [^\W\d_]
const LETTERS = /[\p{L}\p{Nl}\p{No}]{2,}/gu;
const ANY_LETTERS = /[\p{L}\p{Nl}\p{No}]+/gu;
const SPACES = new RegExp(`${SPACE}+`, "u");
const AT_START = new RegExp(`^${SPACE}+`, "u");
const AT_END = new RegExp(`${SPACE}+$`, "u");
const NO_SPACES = new RegExp(`(?:(?!${SPACE}).)+`, "gsu");
const UNK_ID = 1;

const words = (text) => text.split(SPACES).filter((word) => word !== "");
const letterCount = (word) => (word.match(LETTER) ?? []).length;
const characters = (text) => [...text];
const trimStart = (text) => text.replace(AT_START, "");
const trimEnd = (text) => text.replace(AT_END, "");
const trim = (text) => trimStart(trimEnd(text));
const isSpace = (character) => character !== undefined && SPACES.test(character);
const isWord = (character) => character !== undefined && LETTER_OR_NUMBER.test(character);

/**
 * A text as `plain`, what the model reads of it, and `restored`, which makes the translation of the text from that
 * of `plain`. `model` has `source`, its tokenizer; `seen`, the words of its training text or null; and `header`.
 */
export function oddLine(text, settings, { source, seen, header }) {
  let plain = text;
  let signs = [];
  const { emoji, wide } = header.odd_lines;
  const wideOne = new RegExp(`[${wide}]`, "u");
  const isWide = (character) => wideOne.test(character);
  if (settings.copy_symbols) {
    const copiesNumbers = !header.usual_warnings.includes("digits");
    const isOwn = trim(text) !== "" && !(copiesNumbers ? ALPHABETIC : LETTER_OR_NUMBER).test(text);
    if (isOwn) return { plain: "", isCopied: true, restored: () => trim(text) };
    [plain, signs] = withoutSigns(text, new RegExp(emoji, "gu"), isWide);
  }
  let isUpper = false;
  if (settings.recase !== false) {
    const { kind } = header.source_tokenizer ?? header.target_tokenizer;
    [plain, isUpper] = recased(plain, source, seen, settings.recase, kind);
  }
  const restored = (found) => withSigns(isUpper ? found.toUpperCase() : found, signs, isWide);
  return { plain, isCopied: false, restored };
}

/** The text in the case to read it in, and whether its translation is in upper case. */
function recased(text, tokenizer, seen, recase, kind) {
  const isUpper = isUpperLine(text);
  const isWhole = isUpper || isTitle(text);
  if (recase && isWhole) return [text.toLowerCase(), isUpper];
  // A Marian model reads text as its own files say. A single word of capitals may be a name, which only a list of
  // the words of the training text tells from others.
  if (recase === null && (kind === "marian" || (seen === null && !isWhole))) return [text, false];
  const cost = (word) => {
    const ids = tokenizer.encode(word);
    // of tokens that are whole words, those of lower ids are more frequent
    const rank = isWhole && ids.length === 1 ? ids[0] : 0;
    return [ids.filter((id) => id === UNK_ID).length, ids.length, rank];
  };
  const made = text.replace(isWhole ? ANY_LETTERS : LETTERS, (word) => {
    if (!(isWhole || isUpperCase(word)) || (seen !== null && seen.unseen(word).length > 0)) return word;
    const [first, ...rest] = word;
    // the first of equals: a word that is known in upper case too stays as it is
    let best = [word, cost(word)];
    for (const other of [word.toLowerCase(), first + rest.join("").toLowerCase()]) {
      const own = cost(other);
      const at = own.findIndex((value, index) => value !== best[1][index]);
      if (at >= 0 && own[at] < best[1][at]) best = [other, own];
    }
    return best[0];
  });
  return [made, made !== text && isUpperCase(text)];
}

const isUpperCase = (text) => /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
const isUpperLine = (text) => words(text).filter((word) => letterCount(word) >= 2).length >= 2 && isUpperCase(text);

function isTitle(text) {
  const firsts = words(text).flatMap((word) => word.match(FIRST)?.[0] ?? []);
  const beginsLower = words(text).some((word) => letterCount(word) >= 4 && /\p{Lowercase}/u.test(word.match(FIRST)[0]));
  const upper = firsts.filter((letter) => /\p{Uppercase}/u.test(letter)).length;
  return firsts.length >= 4 && !beginsLower && 5 * upper >= 4 * firsts.length;
}

/** The text without emoji, and these as they stand in it. */
function withoutSigns(text, emoji, isWide) {
  const found = text.match(emoji) ?? [];
  if (found.length === 0) return [text, []];
  const parts = text.split(emoji);
  const [plain, ends] = joined(parts, isWide);
  const length = Math.max(1, characters(plain).length);
  const signs = found.map((each, number) => {
    const [before, after] = [parts[number], parts[number + 1]];
    const rest = trim(parts.slice(number + 1).join(""));
    const isLast = !LETTER_OR_NUMBER.test(rest);
    return {
      text: each,
      before: before.slice(trimEnd(before).length),
      after: after.slice(0, after.length - trimStart(after).length),
      share: isLast && ends[number] > 0 ? 1 : ends[number] / length,
      tail: isLast ? rest : "",
    };
  });
  return [plain, signs];
}

/** The parts between emoji as one text, and where each part but the last ends in it. */
function joined(parts, isWide) {
  let made = trimEnd(parts[0]);
  let spaced = made !== parts[0];
  const ends = [];
  parts.slice(1).forEach((part, at) => {
    ends.push(characters(made).length);
    const bare = at + 2 < parts.length ? trim(part) : trimStart(part);
    const hasSpace = isSpace(characters(part)[0]);
    const first = characters(bare)[0];
    // one space where two words would touch; none at the ends, before a mark, and between wide characters
    if (made !== "" && bare !== "" && ((spaced && hasSpace) || isWord(first))) {
      const bothWide = isWide(characters(made).at(-1)) && isWide(first);
      made += bothWide && !(spaced && hasSpace) ? "" : " ";
    }
    made += bare;
    spaced = bare !== "" ? isSpace(characters(part).at(-1)) : spaced || hasSpace;
  });
  return [made, ends];
}

/** The text with emoji put in: at the ends as in the source, else behind the word nearest to their share of it. */
function withSigns(text, signs, isWide) {
  if (signs.length === 0) return text;
  const all = characters(text);
  const count = (units) => characters(text.slice(0, units)).length;
  let ends = [...text.matchAll(NO_SPACES)].map((word) => count(word.index + word[0].length));
  if (ends.length === 1 && isWide(all[ends[0] - 1])) ends = Array.from({ length: ends[0] }, (_, at) => at + 1);
  const bare = characters(trimEnd(text)).length;
  const placed = signs.map((sign) => {
    if (bare === 0) return [0, sign.text];
    if (sign.share <= 0) return [0, sign.text + (sign.after || " ")];
    if (sign.share >= 1) {
      // before the final marks only where the source has it there
      let marks = bare;
      while (sign.tail !== "" && marks > 0 && !isWord(all[marks - 1])) marks--;
      return [marks || bare, sign.before + sign.text];
    }
    const inner = ends.length > 1 ? ends.slice(0, -1) : ends;
    const distance = (end) => Math.abs(end - sign.share * all.length);
    const position = inner.reduce((best, end) => (distance(end) < distance(best) ? end : best));
    return [position, sign.before + sign.text];
  });
  let made = "";
  let done = 0;
  for (const [position, inserted] of placed.sort(([a], [b]) => a - b)) {
    made += all.slice(done, position).join("") + inserted;
    done = position;
  }
  return made + all.slice(done).join("");
}
