// A text as the sentences that a model translates, and what it answers as the page shows it.

/**
 * The sentences of a text with the white space around them: `{ before, source, after }`.
 *
 * The model learned from single sentences. Where the browser knows none, a line is one.
 */
export function sentencesOf(text, language) {
  const lines = text.split(/(\n+)/);
  return lines.flatMap((line) => {
    if (/^\n*$/.test(line)) return line === "" ? [] : [{ before: line, source: "", after: "" }];
    return cut(line, language).map((part) => {
      const source = part.trim();
      const start = part.indexOf(source);
      return { before: part.slice(0, start), source, after: part.slice(start + source.length) };
    });
  });
}

function cut(line, language) {
  if (typeof Intl.Segmenter !== "function") return [line];
  const locale = language === "und" ? undefined : language;
  return Array.from(new Intl.Segmenter(locale, { granularity: "sentence" }).segment(line), ({ segment }) => segment);
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
