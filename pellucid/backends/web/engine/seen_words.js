// The words and signs of the training text, so that others can be named (pellucid/text/seen_words.py).

import { normalizer } from "./normalization.js";

const WORD = /[\p{L}\p{Nl}\p{No}][\p{L}\p{N}\p{M}_]*/gu;
const SIGN = /^[\p{P}\p{S}]$/u;
// Thai, Lao, Burmese, Khmer, Chinese and Japanese have no spaces between words
export const SPACELESS = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]/u;

/** Words without case; null where the model was made without them. */
export function openSeenWords(description) {
  return description === null ? null : new SeenWords(description);
}

class SeenWords {
  constructor({ words, signs, normalization }) {
    this.read = normalizer(normalization);
    this.signs = new Set(signs);
    this.words = new Set(words.map(withoutCase)); // in the other case of Cherokee, as below
  }

  /** The words of a text that are not among these, each once, as it stands there first. */
  unseen(text) {
    const found = new Map();
    for (const word of this.wordsOf(text)) {
      const plain = folded(word);
      if (!this.words.has(plain) && !found.has(plain)) found.set(plain, word);
    }
    return [...found.values()];
  }

  /** The punctuation marks and symbols of a text that are not among these, if these are known. */
  rareSigns(text) {
    return this.signs.size === 0 ? [] : [...text].filter((one) => SIGN.test(one) && !this.signs.has(one));
  }

  /** The unseen words of a source that do not stand in its translation. */
  notCopied(source, translation) {
    const unseen = this.unseen(source);
    if (unseen.length === 0) return unseen;
    const copied = new Set(this.wordsOf(translation).map(folded));
    return unseen.filter((word) => !copied.has(folded(word)));
  }

  wordsOf(text) {
    return (this.read(text).match(WORD) ?? []).filter((word) => !SPACELESS.test(word));
  }
}

const folded = (word) => withoutCase(word.normalize("NFC"));

const ALONE = new Map([["\u0131", "i"], ["\u0130", "i"], ["\u1e9e", "ss"]]); // the two of Turkish; capital sharp s

/** As Python's casefold, but for Cherokee, of which both sides of a comparison are in the other case. */
function withoutCase(word) {
  return [...word].map((one) => ALONE.get(one) ?? one.toUpperCase().toLowerCase()).join("").replaceAll("i\u0307", "i");
}
