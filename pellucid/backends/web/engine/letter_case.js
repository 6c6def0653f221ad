// Lines in capitals, which a model reads in lower case (decoding/odd_lines.py).

const LETTER = /\p{L}/gu;
const FIRST = /[\p{L}\p{Nl}\p{No}]/u; // as Python's [^\W\d_]
const words = (text) => text.split(/\s+/u).filter((word) => word !== "");
const letterCount = (word) => (word.match(LETTER) ?? []).length;

/** The text to read, and whether all of it was in upper case. */
export function recased(text) {
  const isUpper = isUpperCase(text);
  return { plain: isUpper || isTitle(text) ? text.toLowerCase() : text, isUpper };
}

/** A translation in upper case, if its source is. */
export const inCase = (text, isUpper) => (isUpper ? text.toUpperCase() : text);

function isUpperCase(text) {
  const long = words(text).filter((word) => letterCount(word) >= 2);
  return long.length >= 2 && /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
}

function isTitle(text) {
  const firsts = words(text).flatMap((word) => word.match(FIRST)?.[0] ?? []);
  const beginsLower = words(text).some((word) => letterCount(word) >= 4 && /\p{Lowercase}/u.test(word.match(FIRST)[0]));
  const upper = firsts.filter((letter) => /\p{Uppercase}/u.test(letter)).length;
  return firsts.length >= 4 && !beginsLower && 5 * upper >= 4 * firsts.length;
}
