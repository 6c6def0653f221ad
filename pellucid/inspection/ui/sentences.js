// An answer of POST /v1/translate as sentences with words on both sides.

import { alignWords, confidence, toWords } from "./words.js";

/**
 * What there is to show: `{text, warnings, sentences}`.
 *
 * Each sentence has `words` (of the translation), `sourceWords` (positions in the whole source
 * text), `toSource`, `toTarget` and `confidences` for each word, null where unknown.
 */
export function readAnswer(source, translation) {
  let cursor = 0;
  const sentences = translation.sentences.map((sentence) => {
    const found = source.indexOf(sentence.source, cursor);
    const start = found < 0 ? cursor : found; // offsets of the server count code points
    cursor = start + sentence.source.length;
    return readSentence(sentence, start);
  });
  return { text: translation.text, warnings: translation.warnings, sentences };
}

function readSentence(sentence, start) {
  const sourceWords = toWords(sentence.source, sentence.source_tokens).map((word) => ({
    ...word,
    start: word.start + start,
    end: word.end + start,
  }));
  return {
    source: sentence.source,
    read: readText(sentence),
    before: sentence.before,
    after: sentence.after,
    score: sentence.score,
    sourceWords,
    ...translated(sentence.text, sentence, sourceWords),
  };
}

/** The source, behind a code of the text such as >>fra<<. */
function readText({ source, source_tokens: [first = ""] }) {
  const hasCode = /^>>[^<>\s]+<<$/.test(first) && !source.startsWith(first);
  return hasCode ? `${first} ${source}` : source;
}

function translated(text, { tokens, confidences, alignment }, sourceWords) {
  const words = toWords(text, tokens);
  return {
    text,
    tokens,
    words,
    pairs: alignment ?? [],
    tokenConfidences: confidences ?? [],
    confidences: words.map((word) => confidence(word, confidences)),
    ...alignWords(sourceWords, words, alignment),
  };
}

/** `sentence` said in another way; its words have numbers only where `said` brings them. */
export function saidOtherwise(sentence, said) {
  return { ...sentence, ...translated(said.text, said, sentence.sourceWords) };
}

/** All of `sentences` with the white space between them. */
export const joined = (sentences) =>
  sentences.map(({ before, text, after }) => before + text + after).join("");
