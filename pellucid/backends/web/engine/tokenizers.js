// Tokenizers: text to ids and back, by the rules of pellucid/text/tokenizers.

import { normalizer } from "./normalization.js";
import { SentencePiece } from "./sentencepiece.js";

const SPECIAL_COUNT = 4;
const UNK_ID = 1;
const SILENT_IDS = new Set([0, 2, 3]); // PAD, BOS and EOS spell no text
const SPACE_MARK = "\u2581";

// What Python means by \w and \s: letters, digits and "_"; JavaScript's own know ASCII alone.
const WORD = "[\\p{L}\\p{N}_]";
export const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
export const SPACE = `[${SPACES}]`;
const MARK = `(?!${SPACE})[^\\p{L}\\p{N}_]`;
const WORD_OR_MARK = new RegExp(`${WORD}+|${MARK}`, "gu");
const RULES = new RegExp(`${WORD}+(?=n['’]t)|n['’]t|${WORD}+|${MARK}`, "gu");
// The option "marks": a word keeps its vowel signs, accents and joiners, and a mark its accents.
const ACCENT = "(?:(?![\\u{20000}-\\u{10ffff}])\\p{M})";
const WHOLE = `${WORD}(?:[\\p{L}\\p{N}_\\u200c\\u200d]|${ACCENT})*`;
const WHOLE_OR_MARK = new RegExp(`${WHOLE}|${MARK}${ACCENT}*`, "gu");
const WHOLE_RULES = new RegExp(`${WHOLE}(?=n['’]t)|n['’]t|${WHOLE}|${MARK}${ACCENT}*`, "gu");
const WHITE = new RegExp(`${SPACE}+`, "u");
const ONE_SPACE = new RegExp(`^${SPACE}$`, "u");

const NO_SPACE_BEFORE = new Set([...".,;:!?%)]}…»'’-/", "n't", "n’t"]);
const NO_SPACE_AFTER = new Set("([{«¿¡'’-/");
const CONTINUATION = "##";
const LONGEST_PIECE = 256;
const CODE = new RegExp(`^>>[^<>${SPACES}]+<<`, "u");
const NO_SPACE = new RegExp(`[^${SPACES}]`, "u");

/** The tokenizer of a description that Python wrote (pellucid/backends/web/tokenizers.py). */
export function openTokenizer(description) {
  switch (description.kind) {
    case "bpe":
    case "unigram":
      return new SubwordTokenizer(description);
    case "marian":
      return new MarianTokenizer(description);
    case "wordpiece":
      return new WordPieceTokenizer(description);
    default:
      return new WordTokenizer(description);
  }
}

/** Whether a text is nothing but white space. */
export const isBlank = (text) => !NO_SPACE.test(text);

/** Half of a pair of surrogates stands for no character, and has no UTF-8. */
const wellFormed = (text) => text.replace(/\p{Cs}/gu, "\ufffd");

class Table {
  constructor(description) {
    this.kind = description.kind;
    this.options = description.options ?? {};
    this.read = normalizer(description.normalization);
    this.all = description.tokens;
    this.ids = new Map(this.all.map((token, id) => [token, id]).slice(SPECIAL_COUNT));
  }

  encode(text) {
    return this.split(this.read(wellFormed(text))).map((token) => this.ids.get(token) ?? UNK_ID);
  }

  tokens(ids) {
    return ids.map((id) => this.all[id]);
  }

  /** The words, pieces or characters of a text that are not in the table, in order. */
  unknownParts(text) {
    const unknown = this.split(wellFormed(text)).filter((piece) => !this.ids.has(piece));
    return unknown.map((piece) => piece.replace(/^\u2581+|\u2581+$/gu, "") || piece);
  }

  spelled(ids) {
    return this.tokens(ids.filter((id) => !SILENT_IDS.has(id)));
  }
}

/** Words and marks, in small letters if the options say so; the small letter of İ is a plain i. */
function wordsAndMarks(text, { lowercase, marks }) {
  const small = lowercase ? text.toLowerCase() : text;
  if (!marks) return small.match(WORD_OR_MARK) ?? [];
  return (lowercase ? small.replaceAll("i\u0307", "i") : small).match(WHOLE_OR_MARK) ?? [];
}

/** One splitting rule and one vocabulary (EQ-04 to EQ-08). */
class WordTokenizer extends Table {
  split(text) {
    switch (this.kind) {
      case "word":
        return text.split(WHITE).filter((word) => word !== "");
      case "punctuation":
        return wordsAndMarks(text, this.options);
      case "rules":
        return text.match(this.options.marks ? WHOLE_RULES : RULES) ?? [];
      case "character":
        return [...text].filter((one) => this.options.keep_spaces || !ONE_SPACE.test(one));
      default:
        throw new Error(`this file has a tokenizer of a kind that is not known here: ${this.kind}`);
    }
  }

  decode(ids) {
    const tokens = this.spelled(ids);
    if (this.kind === "word") return tokens.join(" ");
    return this.kind === "character" ? tokens.join("") : joinWords(tokens);
  }
}

/** Tokens joined with spaces, but for marks that have none around them in English. */
function joinWords(tokens) {
  let text = "";
  let isGlued = true;
  for (const token of tokens) {
    text += isGlued || NO_SPACE_BEFORE.has(token) ? token : ` ${token}`;
    isGlued = NO_SPACE_AFTER.has(token);
  }
  return text;
}

/** Words and marks, then the longest known piece from the front (EQ-10). */
class WordPieceTokenizer extends Table {
  constructor(description) {
    super(description);
    const lengths = this.all.slice(SPECIAL_COUNT).map((token) => [...token].length);
    this.longest = Math.min(LONGEST_PIECE, Math.max(0, ...lengths));
  }

  split(text) {
    return wordsAndMarks(text, this.options).flatMap((word) => this.longestMatch([...word]));
  }

  longestMatch(word) {
    const pieces = [];
    for (let start = 0; start < word.length; ) {
      const prefix = start === 0 ? "" : CONTINUATION;
      let end = Math.min(word.length, start + this.longest);
      while (end > start && !this.ids.has(prefix + word.slice(start, end).join(""))) end--;
      // a character with which no piece begins
      pieces.push(end > start ? prefix + word.slice(start, end).join("") : this.all[UNK_ID]);
      start = Math.max(end, start + 1);
    }
    return pieces;
  }

  /** Its pieces show an unknown character as [UNK], so the characters are looked up beside them. */
  unknownParts(text) {
    return wordsAndMarks(text, this.options).flatMap((word) => {
      const characters = [...word];
      let at = 0;
      return this.longestMatch(characters).flatMap((piece) => {
        const start = at;
        if (!this.ids.has(piece)) {
          at += 1;
          return [characters[start]];
        }
        at += [...piece].length - (start > 0 ? CONTINUATION.length : 0);
        return [];
      });
    });
  }

  decode(ids) {
    const words = [];
    for (const piece of this.spelled(ids)) {
      if (words.length > 0 && piece.startsWith(CONTINUATION) && piece !== CONTINUATION) {
        words.push(words.pop() + piece.slice(CONTINUATION.length));
      } else words.push(piece);
    }
    return joinWords(words);
  }
}

/** A sentencepiece model whose ids are those of its pieces, with byte fallback. */
class SubwordTokenizer {
  constructor(description) {
    this.read = normalizer(description.normalization);
    this.spellsBytes = true;
    this.all = description.tokens;
    this.model = new SentencePiece(description.sentencepiece);
    this.markIds = [0xe2, 0x96, 0x81].map((byte) => this.model.byteIds[byte]);
    this.bareCount = this.idsOf("\0").length;
  }

  idsOf(text) {
    return this.model.encode(text).map(([, id]) => id);
  }

  /** A U+2581 of the text is spelled in bytes: sentencepiece would take it for a space. */
  encode(text) {
    const [first, ...others] = this.read(wellFormed(text)).split(SPACE_MARK);
    const rest = others.flatMap((part) => [
      ...this.markIds,
      ...this.idsOf(`\0${part}`).slice(this.bareCount), // after a NUL no space is put in front
    ]);
    return [...this.idsOf(first), ...rest];
  }

  tokens(ids) {
    return ids.map((id) => this.all[id]);
  }

  decode(ids) {
    const kept = ids.filter((id) => !SILENT_IDS.has(id));
    return this.model.decode(kept.map((id) => [this.model.pieces[id], id]));
  }
}

/** Pieces by sentencepiece, ids by a table of its own; a language code in front is one token. */
class MarianTokenizer extends Table {
  constructor(description) {
    super(description);
    this.model = new SentencePiece(description.sentencepiece);
    this.pieceIds = new Map(this.model.pieces.map((piece, id) => [piece, id]));
    /** Those of target languages, such as >>fra<<, in order; a model for one language has none. */
    this.codes = this.all.filter((token) => CODE.exec(token)?.[0] === token).sort();
  }

  /** The code of a language that a text begins with; empty for none. */
  codeOf(text) {
    return (this.codes.length > 0 && CODE.exec(text)?.[0]) || "";
  }

  split(text) {
    const code = this.codeOf(text);
    const pieces = this.model.encode(text.slice(code.length)).map(([piece]) => piece);
    return code === "" ? pieces : [code, ...pieces];
  }

  decode(ids) {
    const pieces = this.spelled(ids).map((piece) => [piece, this.pieceIds.get(piece) ?? -1]);
    return this.model.decode(pieces).replaceAll(SPACE_MARK, " ").replace(/^ +| +$/g, "");
  }
}
