// Normalization of text, by the rule of pellucid/text/normalization.py; its characters come with the tokenizer.

const EMOJI_SIGN = "\ufe0f";
const KEYCAP = "\u20e3";
const BLACK_FLAG = "\u{1f3f4}";

/** A function that brings text into the form that a tokenizer reads; without a rule it changes nothing. */
export function normalizer(rule) {
  if (!rule) return (text) => text;
  const classes = Object.entries(rule.classes).map(([name, members]) => [name, new RegExp(`[${members}]`, "u")]);
  const is = Object.fromEntries(classes.map(([name, one]) => [name, (letter) => letter !== "" && one.test(letter)]));
  const oddRun = new RegExp(`[${rule.classes.odd}]+`, "gu");
  const directions = new RegExp(`[${rule.classes.directions}]`, "gu");
  const later = new RegExp(`([${rule.classes.later}])`, "u");

  const stays = (odd, previous, following) => {
    if (odd === previous) return false; // one is enough
    switch (odd) {
      case "\u200c": // zero-width non-joiner
        return is.joining(previous) || is.joining(following);
      case "\u200d": // zero-width joiner, also between the parts of an emoji
        if (is.joining(previous) || is.joining(following) || previous === EMOJI_SIGN) return true;
        return is.pictures(previous) || is.tags(previous);
      case "\ufe0e":
      case EMOJI_SIGN:
        return is.pictures(previous) || (following === KEYCAP && /^[0-9#*]$/.test(previous));
      case "\u115f":
        return is.vowel_jamo(following);
      case "\u1160":
        return is.leading_jamo(previous);
      default:
        if (odd >= "\u180b" && odd <= "\u180f") return is.mongolian(previous);
        return is.tags(odd) && (previous === BLACK_FLAG || is.tags(previous));
    }
  };

  const replaced = (run, offset, text) => {
    const odd = [...run];
    let previous = lastLetter(text.slice(Math.max(0, offset - 2), offset));
    let made = "";
    odd.forEach((letter, at) => {
      const following = odd[at + 1] ?? firstLetter(text, offset + run.length);
      let part = rule.plain[letter] ?? (is.spaces(letter) ? " " : "");
      if (part === "" && stays(letter, previous, following)) part = letter;
      made += part;
      if (part !== "") previous = lastLetter(part);
    });
    return made;
  };

  return (text) => {
    const directed = is.right_to_left(text) ? text : text.replace(directions, "");
    const parts = directed.replace(oddRun, replaced).split(later); // each second part is composed with nothing
    const composed = parts.map((part, number) => (number % 2 ? part : part.normalize("NFC"))).join("");
    return composed.replace(/ {2,}/g, " ").replace(/^ | $/g, "");
  };
}

const lastLetter = (text) => [...text].at(-1) ?? "";
const firstLetter = (text, at) => (at < text.length ? String.fromCodePoint(text.codePointAt(at)) : "");
