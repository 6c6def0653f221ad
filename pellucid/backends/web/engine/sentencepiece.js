// sentencepiece: normalization, and text cut into pieces by merges (BPE) or by the likeliest cut (unigram).
//
// The algorithms are those of normalizer.cc, bpe_model.cc, unigram_model.cc and sentencepiece_processor.cc
// in its repository; tests/web/test_web_tokenizers.py holds them to the package.

const SPACE_MARK = "\u2581";
const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const BYTE = 6;
const UNKNOWN_PENALTY = 10; // unigram_model.cc: below the lowest score of a piece
const round = Math.fround; // scores are added in float32

const toBytes = new TextEncoder();
const toText = new TextDecoder("utf-8", { ignoreBOM: true });

export class SentencePiece {
  constructor(model) {
    this.model = model;
    this.pieces = model.pieces;
    this.ids = new Map();
    this.byteIds = new Array(256);
    this.unknownId = model.types.indexOf(UNKNOWN);
    this.longest = 0;
    model.pieces.forEach((piece, id) => {
      if (model.types[id] === NORMAL) {
        this.ids.set(piece, id);
        this.longest = Math.max(this.longest, piece.length);
      }
      if (model.types[id] === BYTE) this.byteIds[Number.parseInt(piece.slice(3, 5), 16)] = id;
    });
    const scores = model.scores.filter((_, id) => model.types[id] === NORMAL);
    this.unknownScore = round(scores.reduce((a, b) => Math.min(a, b), Infinity) - UNKNOWN_PENALTY);
    this.charsmap = model.charsmap === "" ? null : new CharacterMap(model.charsmap);
  }

  /** The pieces of a text with their ids: `[piece, id]`; what has no piece is spelled in bytes. */
  encode(text) {
    const normalized = this.normalize(text);
    const cut = this.model.model_type === "bpe" ? this.merge(normalized) : this.likeliest(normalized);
    return this.model.byte_fallback ? this.spellUnknown(cut) : joinUnknown(cut, this.unknownId);
  }

  spellUnknown(cut) {
    return cut.flatMap(([piece, id]) => {
      if (id !== this.unknownId) return [[piece, id]];
      return [...toBytes.encode(piece)].map((byte) => [this.pieces[this.byteIds[byte]], this.byteIds[byte]]);
    });
  }

  // ---- normalization: normalizer.cc ----

  normalize(text) {
    const { add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces } = this.model;
    let parts = this.charsmap === null ? [...text] : this.charsmap.map(text);
    if (remove_extra_whitespaces) {
      const first = parts.findIndex((part) => part !== " ");
      parts = first < 0 ? [] : parts.slice(first);
    }
    if (parts.length === 0) return "";
    const space = escape_whitespaces ? SPACE_MARK : " ";
    let normalized = add_dummy_prefix ? space : "";
    let isAfterSpace = remove_extra_whitespaces;
    for (const part of parts) {
      const kept = isAfterSpace ? part.replace(/^ +/, "") : part;
      if (kept !== "") {
        normalized += escape_whitespaces ? kept.replaceAll(" ", SPACE_MARK) : kept;
        isAfterSpace = kept.endsWith(" ");
      }
      if (!remove_extra_whitespaces) isAfterSpace = false;
    }
    if (remove_extra_whitespaces) {
      while (normalized.endsWith(space)) normalized = normalized.slice(0, -1);
    }
    return normalized;
  }

  // ---- BPE: bpe_model.cc ----

  /**
   * Merge the two neighbors with the highest score until no two make a piece; of equal scores the
   * leftmost (EQ-09).
   *
   * A word is merged at a time where no piece crosses a space: the merges of one word do not depend on
   * the others.
   */
  merge(text) {
    return this.words(text).flatMap((word) => this.mergeWord(word));
  }

  words(text) {
    this.crosses ??= [...this.ids.keys()].some((piece) => piece.indexOf(SPACE_MARK, 1) > 0);
    if (this.crosses || text === "") return text === "" ? [] : [text];
    return text.match(/\u2581?[^\u2581]+|\u2581/gu) ?? [];
  }

  mergeWord(word) {
    this.known ??= new Map();
    const found = this.known.get(word);
    if (found !== undefined) return found;

    const symbols = [...word];
    for (;;) {
      let best = -1;
      let score = -Infinity;
      for (let at = 0; at + 1 < symbols.length; at++) {
        const id = this.ids.get(symbols[at] + symbols[at + 1]);
        if (id !== undefined && this.model.scores[id] > score) {
          best = at;
          score = this.model.scores[id];
        }
      }
      if (best < 0) break;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
    }
    const cut = symbols.map((symbol) => [symbol, this.ids.get(symbol) ?? this.unknownId]);
    if (this.known.size > 20_000) this.known.clear();
    this.known.set(word, cut);
    return cut;
  }

  // ---- unigram: EncodeOptimized in unigram_model.cc ----

  /** The cut with the largest sum of scores (Viterbi); of equal sums the one that was found first. */
  likeliest(text) {
    if (text === "") return [];
    const size = text.length;
    const best = new Float32Array(size + 1);
    const from = new Int32Array(size + 1).fill(-1);
    const ids = new Int32Array(size + 1);
    const offer = (start, end, id, score) => {
      const sum = round(score + best[start]);
      if (from[end] >= 0 && sum <= best[end]) return;
      [best[end], from[end], ids[end]] = [sum, start, id];
    };
    for (let start = 0; start < size; ) {
      const single = start + String.fromCodePoint(text.codePointAt(start)).length;
      let hasSingle = false;
      for (let end = start + 1; end <= Math.min(size, start + this.longest); end++) {
        const id = this.ids.get(text.slice(start, end));
        if (id === undefined) continue;
        offer(start, end, id, this.model.scores[id]);
        hasSingle ||= end === single;
      }
      if (!hasSingle) offer(start, single, this.unknownId, this.unknownScore);
      start = single;
    }
    const cut = [];
    for (let end = size; end > 0; end = from[end]) cut.push([text.slice(from[end], end), ids[end]]);
    return cut.reverse();
  }

  // ---- decoding: sentencepiece_processor.cc ----

  /** The text of pieces, given with their ids; a run of bytes becomes characters, U+FFFD where it is none. */
  decode(pieces) {
    const { add_dummy_prefix, remove_extra_whitespaces, unk_surface } = this.model;
    let text = "";
    let isStart = true;
    let bytes = [];
    const flush = () => {
      if (bytes.length > 0) text += decodeBytes(bytes);
      bytes = [];
    };
    for (const [piece, id] of pieces) {
      const type = id < 0 ? UNKNOWN : this.model.types[id];
      if (type === BYTE) {
        bytes.push(Number.parseInt(piece.slice(3, 5), 16));
        isStart = false;
        continue;
      }
      flush();
      if (type === CONTROL) continue;
      let surface = piece;
      if (type === UNKNOWN) surface = piece === this.pieces[this.unknownId] ? unk_surface : piece;
      else {
        if (isStart && (add_dummy_prefix || remove_extra_whitespaces) && surface.startsWith(SPACE_MARK)) {
          surface = surface.slice(1);
          if (!remove_extra_whitespaces) isStart = false;
        }
        surface = surface.replaceAll(SPACE_MARK, " ");
      }
      if (surface !== "") isStart = false;
      text += surface;
    }
    flush();
    return text;
  }
}

/** Neighbors that have no piece are one unknown piece together. */
function joinUnknown(cut, unknownId) {
  const joined = [];
  let wasUnknown = false;
  for (const [piece, id] of cut) {
    if (id === unknownId && wasUnknown) joined.at(-1)[0] += piece;
    else joined.push([piece, id]);
    wasUnknown = id === unknownId;
  }
  return joined;
}

/** Characters of UTF-8, each byte that begins none as U+FFFD. */
function decodeBytes(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at];
    const size = lead < 0x80 ? 1 : lead >> 5 === 6 ? 2 : lead >> 4 === 14 ? 3 : lead >> 3 === 30 ? 4 : 1;
    const one = toText.decode(Uint8Array.from(bytes.slice(at, at + size)));
    const isWhole = [...one].length === 1 && one !== "\ufffd";
    text += isWhole || isReplacement(bytes, at) ? one : "\ufffd";
    at += isWhole || isReplacement(bytes, at) ? size : 1;
  }
  return text;
}

const isReplacement = (bytes, at) => bytes[at] === 0xef && bytes[at + 1] === 0xbf && bytes[at + 2] === 0xbd;

/**
 * The compiled rules of normalization: a double-array trie over UTF-8 bytes, and the texts that its
 * leaves point to. Source: Builder::EncodePrecompiledCharsMap of sentencepiece; darts-clone's units.
 */
class CharacterMap {
  constructor(encoded) {
    const blob = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    const view = new DataView(blob.buffer);
    const size = view.getUint32(0, true);
    this.units = Uint32Array.from({ length: size / 4 }, (_, at) => view.getUint32(4 + 4 * at, true));
    this.texts = blob.subarray(4 + size);
  }

  /** The text in parts: the replacement of each longest prefix that has one, else a character. */
  map(text) {
    const bytes = toBytes.encode(text);
    const parts = [];
    for (let at = 0; at < bytes.length; ) {
      const [length, value] = this.longestPrefix(bytes, at);
      if (length > 0) {
        parts.push(toText.decode(this.texts.subarray(value, this.texts.indexOf(0, value))));
        at += length;
      } else {
        const lead = bytes[at];
        const width = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        parts.push(toText.decode(bytes.subarray(at, at + width)));
        at += width;
      }
    }
    return parts;
  }

  longestPrefix(bytes, start) {
    let [length, value] = [0, 0];
    let node = offsetOf(this.units[0]);
    for (let at = start; at < bytes.length; at++) {
      node ^= bytes[at];
      const unit = this.units[node];
      if (unit === undefined || (unit & 0x800000ff) !== bytes[at]) break; // another label
      node ^= offsetOf(unit);
      if ((unit >>> 8) & 1) [length, value] = [at + 1 - start, this.units[node] & 0x7fffffff];
    }
    return [length, value];
  }
}

const offsetOf = (unit) => (unit >>> 10) << ((unit & (1 << 9)) >>> 6);
