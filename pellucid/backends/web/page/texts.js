// A text as the sentences that a model translates, and what it answers as the page shows it.

import { SPACELESS } from "../ui/words.js";

const SPACE = "[\\s\\x1c-\\x1f\\x85]";
const AROUND = new RegExp(`^${SPACE}+|${SPACE}+$`, "gu");
const SOFT_BREAK = new RegExp(`[\\v\\f\\x1c-\\x1e\\x85\\u2028]${SPACE}*$`, "u");
const CODE = new RegExp(`^>>(?:(?!${SPACE})[^<>])+<<`, "u");
const LETTER_OR_NUMBER = /^[\p{L}\p{N}]$/u;
const SPACELESS_FIRST = new RegExp(`^${SPACELESS.source}`, "u");
const LATIN_STOP = new RegExp(`(?:^|(?!${SPACELESS.source}).)[.!?…]+[)\\]}"'”’»*†‡\\d]*$`, "u");

export const isBlank = (text) => text.replace(AROUND, "") === "";

/** The sentences of a text: `{ before, source, after, read }`; `read` is behind a code. */
export function sentencesOf(text, header) {
  let code = "";
  return text.split(/(\n+)/).flatMap((line) => {
    if (/^\n*$/.test(line)) return line === "" ? [] : [{ before: line, source: "", after: "", read: "" }];
    const own = (header.sentences.has_codes && CODE.exec(line)?.[0]) || "";
    code = own || code;
    return cut(line, header).map((part, at) => {
      const source = part.replace(AROUND, "");
      const start = part.indexOf(source);
      const before = part.slice(0, start).replaceAll("\ufeff", "");
      const read = code === "" || source === "" || (at === 0 && own !== "") ? source : `${code} ${source}`;
      return { before, source, after: part.slice(start + source.length), read };
    });
  });
}

function cut(line, { languages, sentences }) {
  if (!sentences.splits || typeof Intl.Segmenter !== "function") return [line];
  const locale = languages[0].code.replace("und", "en");
  const found = [];
  for (const { segment } of new Intl.Segmenter(locale, { granularity: "sentence" }).segment(line)) {
    if (found.length > 0 && goesOn(found.at(-1), segment, sentences)) found.push(found.pop() + segment);
    else found.push(segment);
  }
  return found;
}

const has = (words, word) => words.split(" ").includes(word);

/** Whether a sentence goes on where the browser ends it (text/sentence_ends.py has more rules). */
function goesOn(left, right, { titles, numbered, starts, ordinals }) {
  if (SOFT_BREAK.test(left)) return /^\p{Ll}/u.test(right);
  const word = left.replace(AROUND, "").split(new RegExp(`${SPACE}|[/([{,;:–—"'“”„«»‘’]`, "u")).at(-1);
  if (!word.endsWith(".") || !/^[\p{L}\p{N}]/u.test(right)) return false;
  const bare = word.slice(0, -1);
  const isStart = has(starts, right.match(/^[\p{L}\p{M}]*/u)[0].toLowerCase());
  if (/^\p{Nd}{1,2}$/u.test(bare)) return ordinals && !isStart;
  if (/^\p{Nd}/u.test(right)) return has(numbered, bare.toLowerCase());
  if (/^\p{L}$/u.test(bare) && /^\p{L}\./u.test(right)) return true;
  if (has(titles, bare)) return /^\p{Lu}/u.test(bare) || !isStart;
  return /^(?:\p{Lu}\.?-?)*\p{Lu}$/u.test(bare) && /^\p{Lu}[\p{L}\p{M}]*[\p{Ll}\p{M}]/u.test(right) && !isStart;
}

/** Sentences with the space that their translations need (decoding/sentences.py). */
export function spaced(sentences, wide) {
  const isWide = (character) => character !== undefined && new RegExp(`[${wide}]`, "u").test(character);
  return sentences.map((each, at) => {
    const next = sentences[at + 1];
    if (each.source === "" || next === undefined || next.source === "") return each;
    const [last, first] = [[...each.text].at(-1), [...next.text][0]];
    if (last === undefined || first === undefined) return { ...each, after: "" };
    if (isWide(last) || isWide(first)) return { ...each, after: each.after.replace(/^ +$/, "") };
    return { ...each, after: each.after.replaceAll("\u3000", " ") || spaceOfNone(each.source, next.source) };
  });
}

function spaceOfNone(before, behind) {
  const isOneWord = LETTER_OR_NUMBER.test([...before].at(-1)) && LETTER_OR_NUMBER.test([...behind][0]);
  return (LATIN_STOP.test(before) || isOneWord) && !SPACELESS_FIRST.test(behind) ? "" : " ";
}

/** A sentence as the page shows it, from what `translate` of the engine gave. */
export function asSentence(place, said) {
  return {
    ...place,
    text: said.text,
    tokens: said.tokens,
    source_tokens: said.source_tokens ?? [],
    confidences: said.tokens.map((_, at) => {
      const value = said.log_probabilities?.[at];
      return value === undefined || value === null ? null : Math.exp(Math.min(value, 0));
    }),
    alignment: said.alignment ?? [],
    score: said.score,
    warnings: said.warnings ?? [],
  };
}

/** Other translations at least a tenth as likely as the first, the likeliest first. */
export function otherWays(said, most) {
  const total = ({ log_probabilities }) => log_probabilities.reduce((a, b) => a + b, 0);
  const words = (text) => text.toLowerCase().split(/\s+/).map((word) => word.replace(/^\p{P}+|\p{P}+$/gu, "")).join(" ");
  const seen = new Set([words(said.text)]);
  const own = total(said);
  const likely = said.n_best
    .filter((each) => Math.exp(total(each) - own) >= 0.1)
    .sort((a, b) => total(b) - total(a));
  const ways = [];
  for (const { text } of likely) {
    if (seen.has(words(text))) continue;
    seen.add(words(text));
    ways.push(text);
  }
  return ways.slice(0, most);
}
