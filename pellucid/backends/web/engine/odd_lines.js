// Lines that a model should not read as they are: with emoji, in capitals, without a word (decoding/odd_lines.py).

import { SPACE } from "./tokenizers.js";

const LETTER = /\p{L}/gu;
const ALPHABETIC = /\p{L}/u;
const LETTER_OR_NUMBER = /[\p{L}\p{N}]/u;
const FIRST = /[\p{L}\p{Nl}\p{No}]/u; // as Python's [^\W\d_]
const MARK = "(?![\u{e0100}-\u{e01ef}])\\p{M}"; // without variation selectors of Chinese characters, as in Python
// the letter or the Roman number of an item by itself
const ORDINAL = /^\(?(?:[A-Za-z]|(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3})|(?=[ivx])x{0,3}(?:ix|iv|v?i{0,3}))[.)]$/;
const UNIT = "(?<=\\p{Nd})[ \u00a0\u202f]?(?:[a-zµ]{1,3}|[km][A-Z][hz]?)(?:[²³]|/h)?(?![\\p{L}\\p{N}])";
// codes, which keep their case: CC(=O)O, an address, SN-4711-ABX, A4, NaCl, {name}, <b>, %s, 5 km
const CODE =
  `(?<code>(?<!(?!${SPACE})[^])(?:(?!${SPACE})[^])*(?:[=_@\\\\]|://)(?:(?!${SPACE})[^])*` +
  "|(?<![\\p{L}\\p{N}])(?:(?:[\\p{L}\\p{Nl}\\p{No}]{1,4}-)+\\p{Nd}+|[\\p{L}\\p{N}]*[\\p{L}\\p{Nl}\\p{No}]\\p{Nd}[\\p{L}\\p{N}]*)" +
  "(?:-(?:[\\p{L}\\p{Nl}\\p{No}]{1,4}|[\\p{L}\\p{N}]*\\p{Nd}[\\p{L}\\p{N}]*))*(?![\\p{L}\\p{N}])" +
  "|(?<![\\p{L}\\p{N}])(?=[A-Z]*[a-z])(?:[A-Z][a-z]?){2,}(?![\\p{L}\\p{N}])" +
  "|\\{[^{}]{1,60}\\}|&[a-z]{2,8};|</?[a-z][^<>]{0,200}>" +
  `|%(?:\\p{Nd}+\\$|\\([\\p{L}\\p{N}_]{1,60}\\))?[\\p{Nd}.]*l{0,2}[a-z](?![\\p{L}\\p{N}])|${UNIT})`;
const CODES = new RegExp(CODE, "gu");
const LETTERS = new RegExp(`${CODE}|(?:[\\p{L}\\p{Nl}\\p{No}](?:${MARK})*){2,}`, "gu");
const ANY_LETTERS = new RegExp(`${CODE}|(?:[\\p{L}\\p{Nl}\\p{No}](?:${MARK})*)+`, "gu");
const DIGIT = /\p{Nd}/u;
const CLOSING = /[\p{Pe}\p{Pf}\p{Pi}"']/u;
const MOST_MARKS = 8; // behind an emoji that are counted
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
const isMark = (character) => /\p{M}/u.test(character) && character !== "\ufe0e" && character !== "\ufe0f";
const DOTLESS = new Set(["az", "crh", "gag", "tr"]); // languages with two letters, i and ı (text/letter_case.py)
// letters of a word in capitals that is read in lower case: if it is alone, is one piece, is several
const [LEAST_ALONE, LEAST_WORD, LEAST_LONG_WORD] = [3, 4, 7];
const OPENS_BEHIND = new RegExp(`^(?:${SPACE}|[(\\[{—–-])$`, "u");

/** In lower case, with as many characters: İ alone would become two. */
function lower(text, language) {
  const dotless = DOTLESS.has(language) ? text.replaceAll("I", "ı") : text;
  return dotless.replaceAll("\u0130", "i").toLowerCase();
}

const upper = (text, language) => (DOTLESS.has(language) ? text.replaceAll("i", "\u0130") : text).toUpperCase();

/**
 * A text as `plain`, what the model reads of it, and `restored`, which makes the translation of the text from that
 * of `plain`. `model` has `source`, its tokenizer; `seen`, the words of its training text or null; and `header`.
 */
export function oddLine(text, settings, { source, seen, header }) {
  let plain = text;
  let signs = [];
  const { emoji, wide, final_marks: finalMarks, voiced } = header.characters;
  const { look_alikes: lookAlikes, languages } = header.odd_lines;
  const wideOne = new RegExp(`[${wide}]`, "u");
  const isWide = (character) => wideOne.test(character);
  if (settings.copy_symbols) {
    const copiesNumbers = !header.usual_warnings.includes("digits");
    const isMarker = copiesNumbers && ORDINAL.test(trim(text));
    const isOwn = isMarker || (trim(text) !== "" && !(copiesNumbers ? ALPHABETIC : LETTER_OR_NUMBER).test(text));
    if (isOwn) return { plain: "", isCopied: true, restored: () => trim(text) };
    [plain, signs] = withoutSigns(text, new RegExp(emoji, "gu"), finalMarks, isWide);
  }
  plain = withLookAlikes(plain, lookAlikes, voiced);
  let isUpper = false;
  const kept = [...plain.matchAll(CODES)].filter(([each]) => !isUpperCase(each));
  if (settings.recase !== false) {
    const { kind } = header.source_tokenizer ?? header.target_tokenizer;
    const model = { tokenizer: source, seen, kind, language: languages[0], hasSharpS: header.odd_lines.has_sharp_s };
    [plain, isUpper] = recased(plain, settings.recase, model);
  }
  const inCapitals = isUpper ? capitalsBeside(kept, languages[1]) : (found) => found;
  const restored = (found) => withSigns(inCapitals(found), signs, finalMarks, isWide);
  return { plain, isCopied: false, restored };
}

const patterns = new WeakMap();

/** The text with what stands for signs that the vocabulary lacks (text/look_alikes.py). */
function withLookAlikes(text, signs, voiced) {
  if (!patterns.has(signs)) {
    const listed = Object.keys(signs).join("").replace(/[\\\]^-]/g, "\\$&");
    patterns.set(signs, listed === "" ? /(?!)/gu : new RegExp(`[${listed}][${voiced}]?`, "gu"));
  }
  return text.replace(patterns.get(signs), (found, at) => {
    const [sign, mark] = found;
    if (mark !== undefined) return found.normalize("NFKC");
    const before = characters(text.slice(0, at)).at(-1);
    return signs[sign][before === undefined || OPENS_BEHIND.test(before) ? 0 : 1];
  });
}

/** Writes a text in capitals, but for the codes of its source. */
function capitalsBeside(codes, language) {
  const unit = new RegExp(`^${UNIT.slice("(?<=\\p{Nd})".length)}$`, "u");
  const isUnit = ({ 0: code, index, input }) => unit.test(code) && DIGIT.test(characters(input.slice(0, index)).at(-1));
  const literal = (code) => code.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const kept = codes.map((each) => (isUnit(each) ? UNIT : literal(each[0])));
  if (kept.length === 0) return (text) => upper(text, language);
  const pattern = new RegExp(`(${kept.join("|")})`, "gu");
  return (text) => text.split(pattern).map((part, at) => (at % 2 === 1 ? part : upper(part, language))).join("");
}

/** The text in the case to read it in, and whether its translation is in upper case. */
function recased(text, recase, { tokenizer, seen, kind, language, hasSharpS }) {
  const bare = text.replace(CODES, " ");
  const isUpper = isUpperLine(bare);
  const isWhole = isUpper || isTitle(text);
  if (recase === null && kind === "marian") return [text, false]; // it reads text as its own files say
  const cost = (word, isFirst = false) => {
    const ids = tokenizer.encode(word);
    // of tokens that are whole words, those of lower ids are more frequent
    const rank = isWhole && ids.length === 1 ? ids[0] : 0;
    // the first word of a text has a capital
    const isSmall = isFirst && /^\p{Lowercase}/u.test(word) ? 1 : 0;
    return [ids.filter((id) => id === UNK_ID).length, ids.length, isSmall, rank];
  };
  /** The first of those that cost least. */
  const cheapest = (words, isFirst) => {
    let [best, least] = [words[0], cost(words[0], isFirst)];
    for (const word of words.slice(1)) {
      const own = cost(word, isFirst);
      const at = own.findIndex((value, index) => value !== least[index]);
      if (at >= 0 && own[at] < least[at]) [best, least] = [word, own];
    }
    return best;
  };

  const begin = text.search(LETTER_OR_NUMBER);
  const made = text.replace(isWhole ? ANY_LETTERS : LETTERS, (word, code, at) => {
    if (code || !(isWhole || isInCapitals(word))) return word;
    // SS of capitals may be an ß
    const spellings = word.includes("SS") && hasSharpS ? [word, word.replaceAll("SS", "ß")] : [word];
    const small = spellings.map((each) => lower(each, language));
    if (recase && isWhole) return cheapest(small);
    if (seen !== null && seen.unseen(word).length > 0) return word;
    // the first of equals: a word that is known in upper case too stays as it is
    const [first] = word;
    const capitals = small.map((each) => first + characters(each).slice(1).join(""));
    const best = cheapest([word, ...small, ...capitals], at === begin);
    const isUnsure = seen === null && recase === null && !isWhole;
    const ofOnePiece = characters(word).length === letterCount(text) ? LEAST_ALONE : LEAST_WORD;
    const least = cost(best)[1] === 1 ? ofOnePiece : LEAST_LONG_WORD;
    return isUnsure && characters(word).length < least ? word : best;
  });
  return [made, recase && isWhole ? isUpper : made !== text && isInCapitals(bare)];
}

const isUpperCase = (text) => /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
const isUpperLine = (text) => words(text).filter((word) => letterCount(word) >= 2).length >= 2 && isInCapitals(text);

/** Whether four of five letters at least are capitals, and none but ß is small. */
function isInCapitals(text) {
  const bare = text.replaceAll("ß", "");
  const letters = bare.match(LETTER) ?? [];
  const capitals = letters.filter((letter) => /\p{Uppercase}/u.test(letter)).length;
  return isUpperCase(bare) && 5 * capitals >= 4 * letters.length;
}

function isTitle(text) {
  const firsts = words(text).flatMap((word) => word.match(FIRST)?.[0] ?? []);
  const beginsLower = words(text).some((word) => letterCount(word) >= 4 && /\p{Lowercase}/u.test(word.match(FIRST)[0]));
  const upper = firsts.filter((letter) => /\p{Uppercase}/u.test(letter)).length;
  return firsts.length >= 4 && !beginsLower && 5 * upper >= 4 * firsts.length;
}

/** The text without emoji, and these as they stand in it. */
function withoutSigns(text, emoji, finalMarks, isWide) {
  const found = text.match(emoji) ?? [];
  if (found.length === 0) return [text, []];
  const parts = text.split(emoji);
  const [plain, ends] = joined(parts, isWide);
  const length = Math.max(1, characters(plain).length);
  const signs = [];
  let isLast = true;
  let [finals, closers] = [0, 0];
  // counted from the end, so that each part is looked at once
  for (let number = found.length - 1; number >= 0; number--) {
    const [before, after] = parts.slice(number, number + 2);
    isLast &&= !LETTER_OR_NUMBER.test(after);
    for (const mark of after) {
      finals += Number(finalMarks.includes(mark));
      closers += Number(CLOSING.test(mark));
    }
    signs.push({
      text: found[number],
      before: before.slice(trimEnd(before).length),
      after: after.slice(0, after.length - trimStart(after).length),
      share: isLast && ends[number] > 0 ? 1 : ends[number] / length,
      finals: isLast ? Math.min(finals, MOST_MARKS) : 0,
      closers: isLast ? Math.min(closers, MOST_MARKS) : 0,
    });
  }
  return [plain, signs.reverse()];
}

/** The parts between emoji as one text, and where each part but the last ends in it. */
function joined(parts, isWide) {
  let [made, length, last] = ["", 0, ""];
  const add = (some) => {
    made += some;
    const added = characters(some);
    length += added.length;
    last = added.at(-1) ?? last;
  };
  add(trimEnd(parts[0]));
  let spaced = made !== parts[0];
  const ends = [];
  parts.slice(1).forEach((part, at) => {
    ends.push(length);
    const bare = at + 2 < parts.length ? trim(part) : trimStart(part);
    const [hasSpace, next] = [isSpace(characters(part)[0]), characters(bare)[0]];
    // one space where two words would touch; none at the ends, before a mark, and between wide characters
    if (made !== "" && bare !== "" && ((spaced && hasSpace) || isWord(next))) {
      const bothWide = isWide(last) && isWide(next);
      add(bothWide && !(spaced && hasSpace) ? "" : " ");
    }
    add(bare);
    spaced = bare !== "" ? isSpace(characters(part).at(-1)) : spaced || hasSpace;
  });
  return [made, ends];
}

/**
 * The text with emoji put in: at the ends as in the source, else at the gap nearest to their share of it; at its end
 * before as many marks as in the source. The space to the left is that of the source, but none stands beside a wide
 * character inside the text.
 */
function withSigns(text, signs, finalMarks, isWide) {
  if (signs.length === 0) return text;
  const all = characters(text);
  const bare = characters(trimEnd(text)).length;
  const inside = signs.some((sign) => sign.share > 0 && sign.share < 1) ? gaps(all.slice(0, bare), isWide) : [];
  const ends = new Map();

  const placed = signs.map((sign) => {
    if (bare === 0) return [0, sign.text];
    if (sign.share <= 0) {
      const needsSpace = isWord(all[0]) && !isWide(all[0]);
      return [0, sign.text + (sign.after || (needsSpace ? " " : ""))];
    }
    let position;
    if (sign.share >= 1 || inside.length === 0) {
      const marks = `${sign.finals} ${sign.closers}`;
      if (!ends.has(marks)) ends.set(marks, beforeMarks(all.slice(0, bare), sign, finalMarks));
      position = ends.get(marks);
    } else {
      position = nearest(inside, sign.share * all.length);
    }
    const [before, after] = all.slice(position - 1, position + 1);
    const needsNone = position < bare && !isSpace(after) && (isWide(before) || isWide(after));
    return [position, needsNone ? sign.text : sign.before + sign.text];
  });

  let made = "";
  let done = 0;
  for (const [position, inserted] of placed.sort(([a], [b]) => a - b)) {
    made += all.slice(done, position).join("") + inserted;
    done = position;
  }
  return made + all.slice(done).join("");
}

/** Where an emoji may stand inside a text: behind a word, and beside a wide character, but a number keeps its counter. */
function gaps(all, isWide) {
  const wide = all.map(isWide);
  return all.flatMap((after, at) => {
    if (at === 0 || isSpace(all[at - 1])) return [];
    const isBeside = wide[at - 1] || (wide[at] && !DIGIT.test(all[at - 1]));
    return isSpace(after) || (isBeside && !isMark(after)) ? [at] : [];
  });
}

/** The one of `positions`, which are in order, that is nearest to `wanted`; of two the first. */
function nearest(positions, wanted) {
  let [low, high] = [0, positions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  const near = positions.slice(Math.max(0, low - 1), low + 1);
  return near.reduce((best, each) => (Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best));
}

/** Where a text ends before so many final marks, one that is repeated counted once if need be, and so many closing. */
function beforeMarks(all, { finals, closers }, finalMarks) {
  let at = all.length;
  while (at > 0) {
    const mark = all[at - 1];
    if (finalMarks.includes(mark) && (finals > 0 || all[at] === mark)) finals = Math.max(0, finals - 1);
    else if (CLOSING.test(mark) && closers > 0) closers--;
    else if (!isSpace(mark)) break;
    at--;
  }
  return at || all.length;
}
