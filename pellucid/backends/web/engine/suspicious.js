// Why a translation should not be trusted, by the rules of pellucid/decoding/suspicious.py.

import { SPACELESS } from "./seen_words.js";
import { isBlank, SPACE, SPACES } from "./tokenizers.js";

const UNK = "[UNK]";
const SHORT_FROM = 8;
const SHORT = 4;
const LONG = 4;
const LONG_EXTRA = 10;
const LOOP_LENGTH = 8;
const LOOP_TIMES = 4;
const LOOP_TOKENS = 8;
const LEAST_DIGITS = 3;
const LEAST_CHANGED = 2;
const SPELLED_SHARE = 1 / 3;
const CERTAIN = 98;
const SHOWN = 3;
const LONGEST_SHOWN = 30;
const CODES_SHOWN = 30;

const LETTER = /\p{L}/u;
const LETTERS = /\p{L}/gu;
const BROKEN = "\ufffd";
const QUOTED = /“([^”]*)”/g;
// signs, of which those of ASCII are tokens that may have been learned, and letters of scripts without spaces
const SIGNS = new RegExp(`(?![\\0-\\x7f])(?:[\\p{P}\\p{S}\\p{N}]|${SPACELESS.source})`, "gu");
const LETTER_OR_NUMBER = /[\p{L}\p{N}]/u;
const NUMBER = /\p{Nd}+(?:[.,:/'’\u00a0\u202f\u2009\u066b\u066c ]\p{Nd}+)*/gu;
const WHOLE = /^(?:\p{Nd}+|\p{Nd}{1,3}(?:[.,'’\u00a0\u202f\u2009\u066c ]\p{Nd}{3})+)$/u;
const DATE =
  /^(?:(?:\p{Nd}{1,2}([./])\p{Nd}{1,2}\1\p{Nd}{4}|\p{Nd}{4}([./])\p{Nd}{1,2}\2\p{Nd}{1,2})\.?|(?:0?[1-9]|[12]\p{Nd}|3[01])\.(?:0?[1-9]|1[0-2])\.)$/u;
const SIDE_BY_SIDE =
  /^(?:\p{Nd}{1,2}\.\p{Nd}{1,2}\.\p{Nd}{2}|\p{Nd}{1,2}\/\p{Nd}{1,2}(?:\/\p{Nd}{2})?|\p{Nd}{1,2}[ \u00a0\u202f](?:19|20)\p{Nd}\p{Nd}|(?:19|20)\p{Nd}\p{Nd}[ \u00a0\u202f]\p{Nd}{1,2})\.?$/u;
const CLOCK = /^(\p{Nd}{1,2})(?:[.:](\p{Nd}{2}))?$/u;
// letters and words of languages that have words for a hundred thousand or for ten thousand
const OTHER_SCALES = /[\u0900-\u0dff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|(?:^|[^\p{L}\p{N}_])(?:lakh|crore)/iu;
// the same without letters of Chinese, Japanese and Korean that are in other words too
const OTHER_UNITS = /[万萬亿億만억\u0900-\u0dff]|(?:^|[^\p{L}\p{N}_])(?:lakh|crore)/iu;
const ALL_DIGITS = /^\p{Nd}+$/u;
const DECIMAL = /^\p{Nd}+[.,\u066b]\p{Nd}{1,2}$/u;
const CHINESE_DIGITS = "〇一二三四五六七八九";
const CHINESE_UNITS = { 十: 10, 百: 100, 千: 1000 };
const CHINESE_NUMBER = /[〇一二三四五六七八九○零两兩十百千萬万億亿]{2,20}/gu;
const ERAS = { 明治: 1867, 大正: 1911, 昭和: 1925, 平成: 1988, 令和: 2018, 民國: 1911, 民国: 1911 };
const ERA_YEAR = new RegExp(`(${Object.keys(ERAS).join("|")})${SPACE}?(\\p{Nd}{1,3}|元)${SPACE}?年`, "gu");
const THAI = /[\u0e00-\u0e7f]/u;
const BUDDHIST_YEAR = /(?<!\p{Nd})2[45]\p{Nd}\p{Nd}(?!\p{Nd})/gu;
const BUDDHIST_ERA = 543;
const MIXED = new RegExp(`(?<![\\p{Nd}/])(\\p{Nd}+)(?:${SPACE}?([½¼¾])| ([13]/[24])(?![\\p{Nd}/]))`, "gu");
const FRACTIONS = { "½": ".5", "1/2": ".5", "¼": ".25", "1/4": ".25", "¾": ".75", "3/4": ".75" };
// the number of a note or a source, which is never spelled out
const SUPERSCRIPT = "¹²³⁰⁴-⁹";
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const DIGITS_OR_SUPERSCRIPTS = new RegExp(`\\p{Nd}+|[${SUPERSCRIPT}]+`, "gu");
const REFERENCE = new RegExp(
  "\\[\\p{Nd}{1,3}(?:[,–-] ?\\p{Nd}{1,3})*\\]" + // Yes [1, 2].
    "|(?:(?<=[.!?…] )|(?<=[.!?…]))\\(\\p{Nd}{1,2}\\)(?![\\p{L}\\p{N}_])" + // Yes. (1)
    '|(?:(?<=[\\p{L}\\p{Nl}\\p{No}]{4}[.,;!?…])|(?<=[\\p{L}\\p{Nl}\\p{No}][.,;!?…][“”"’»)\\]]))' + // They came.1 “Yes.”2
    `(?:\\p{Nd}{1,3}(?![\\p{L}\\p{N}_%°]|[.,:]\\p{Nd})|[${SUPERSCRIPT}]{1,3})` +
    "|(?<=[\\p{L}\\p{Nl}\\p{No}]{5})" + // others³, and no km²
    `(?:\\p{Nd}{1,2}(?![\\p{L}\\p{N}_]|[.,:]\\p{Nd})|[${SUPERSCRIPT}]{1,3})`,
  "gu",
);
// the point of .5, which is 0.5
const BARE_POINT = /(?<![\p{L}\p{N}_.,])[.,](?=\p{Nd})/gu;
const GROUPED = /(?<=\p{Nd})[^\p{L}\p{N}_–-](?=\p{Nd}{3})/gu;
const HOUR_AND_MINUTE = new RegExp(
  `(?<!\\p{Nd})(\\p{Nd}{1,2})${SPACE}?(?:h|g|Uhr|uur|hod\\.?|godz\\.?|ч\\.?|час[\\p{L}\\p{N}_]*|год\\.?|giờ|時|时|點|点|시)${SPACE}?(\\p{Nd}{2})(?!\\p{Nd})`,
  "gu",
);
const [HALVES, QUARTERS] = ["30", "15|45"].map(
  (minutes) => new RegExp(`(?<![\\p{Nd}.,:])\\p{Nd}{1,2}[.:](?:${minutes})(?![\\p{Nd}:]|[.,]\\p{Nd})`, "gu"),
);
const SHORT_RANGE = /(?<![\p{Nd}–-])(\p{Nd}+)([–-])(\p{Nd}+)(?![\p{Nd}–-])/gu;
// half past 3 is "halb 4" in German
const HALF = /(?:^|[^\p{L}\p{N}_])(?:half|hal[bv]|p[oů]l|wpół|fél|puoli|пол|пів)/iu;
const QUARTER =
  /(?:^|[^\p{L}\p{N}_])(?:quarter|viertel|quart|cuarto|quarto|kwart|kvart|kwadrans|čtvrt|štvrť|četrt|četvrt|negyed|vart|sfert|çeyrek|τέταρτ|четверт|чверт)|刻|ربع|רבע/iu;
// a number of a unit that is a tenth or a hundredth of another: 1.50 m are 150 cm
const SMALL_UNIT = new RegExp(
  `\\p{Nd}${SPACE}?(?:(?:[cdm]m|[cd]l|[ck]?ct|p|см|мм)(?![\\p{L}\\p{N}_])|cent|zent|sent|cén|millim|milím|pence|¢|сант|миллим` +
    "|厘米|公分|毫米|センチ|ミリメ|센티|밀리미)",
  "iu",
);
const NEGATIVE = new RegExp(
  `(?<![^${SPACES}(\\[{"'“„«:;=<>≤≥~≈])(?<![\\p{Nd}%°][ \u00a0\u202f])(?<![°\\p{Nd}][CF] )` +
    "(?:[−－][ \u00a0\u202f]?|(?<!^)-|[-–](?=[€$£¥]|[\\p{Nd}.,]+[ \u00a0\u202f]?[°%‰€$£¥℃]))" +
    `[€$£¥]?(?<number>${NUMBER.source})`,
  "gu",
);
const BEHIND_A_MINUS = /[-‐‑–—−－﹣][ \u00a0\u202f]?[€$£¥]?[ \u00a0\u202f]?$/u;
const BEFORE_A_MINUS = /^[-−–](?!\p{Nd})/u;
const MINUS_IN_WORDS =
  /minus|miinus|mínusz|moins|meno|menys|minder|below|beneath|under|unter|sous|sotto|bajo|abaixo|onder|poniżej|alatt|alla|eksi|altında|âm|dưới|fall|fell|drop|down|loss|lost|decreas|negativ|gesunken|Rückgang|Verlust|baiss|perte|минус|мінус|ниже|нижче|μείον|[負负零]|マイナス|氷点下|영하|ناقص|تحت|سالب|מינוס|מתחת|माइनस|शून्य|ลบ|(?<![\p{L}\p{N}_])off(?![\p{L}\p{N}_])|discount|rabat|reduziert|remise|réduc|reduc|rebaja|descuento|desconto|scont|korting|sleva|zľava|zniżk|скидк|знижк|έκπτωσ|割引|値引|オフ|优惠|優惠|할인|خصم|تخفيض|הנחה/iu;
const BYTE = /^<0x([0-9A-F]{2})>$/;
const CODE_IN_FRONT = new RegExp(`^${SPACE}*(>>([^<>${SPACES}]*)<<)`, "u");
/** A code, and no quotation such as >>Ja<<, sagte er */
const MEANT_AS_CODE = new RegExp(`^${SPACE}*(>>[a-z]{2,3}([-_][\\p{L}\\p{N}_]+)*<<)(?![^${SPACES}])`, "u");

/** Whether a warning names words or letters that the model cannot read. It never saw them either. */
const namesWords = ({ kind, message }) =>
  kind === "unknown" && [...message.matchAll(QUOTED)].some(([, text]) => LETTER.test(text));
/** With commas between thousands. */
const grouped = (count) => count.toLocaleString("en-US");
const warning = (kind, message) => ({ kind, message });

/**
 * What a source shows by itself: `all` its ids, of which the first `most` are read. `seen` has the words and signs of
 * the training text, or is null; `longest` the tokens of its longest sources, or null.
 */
export function sourceWarnings(tokenizer, text, all, most, seen, longest) {
  const found = [];
  const plain = tokenizer.read(text);
  const codes = codesOf(tokenizer, text);
  const problem = codes === null || isBlank(text) ? null : codeFault(text, codes);
  if (problem !== null) found.push(warning("language_code", problem));
  if (all.includes(1)) {
    // a code that it does not know has a warning of its own
    const inFront = codes?.length > 0 ? CODE_IN_FRONT.exec(plain) : null;
    const code = inFront?.[2] ? inFront[1] : "";
    const unknown = tokenizer.unknownParts(plain).filter((each) => each !== code);
    if (unknown.length > 0) found.push(warning("unknown", `the model does not know ${named(unknown)}`));
  } else {
    const spelled = tokenizer.spellsBytes ? spelledInBytes(tokenizer.tokens(all)) : "";
    const letters = spelled.match(LETTERS) ?? [];
    const signs = [...(spelled.match(SIGNS) ?? []), ...(seen?.rareSigns(plain) ?? [])];
    if (letters.length > SPELLED_SHARE * (plain.match(LETTERS) ?? []).length) {
      found.push(warning("unknown", `the model hardly knows the script of ${named(letters)}`));
    } else if (signs.length > 0) {
      found.push(warning("unknown", `the model hardly knows ${named(signs)}`));
    }
  }
  if (all.length > most) {
    found.push(warning("truncated", `only the first ${grouped(most)} of its ${grouped(all.length)} tokens are read`));
  } else if (longest !== null && all.length > longest) {
    const sizes = `its ${grouped(all.length)} tokens are more than the ${grouped(longest)} of the longest lines`;
    found.push(warning("unsure", `${sizes} that the model learned from: parts of it may be lost`));
  }
  return found;
}

/**
 * Those of a translation, beside those of its source. `isFree` says that neither chance nor a prefix chose its words;
 * `model` has its `header` and `seen`, the words of its training text.
 */
export function judged(said, fromSource, { header, seen }, isFree) {
  const { source, text, source_tokens: read, tokens } = said;
  const found = [
    ...fromSource,
    ...compare(source, text, read, tokens).filter(({ kind }) => !header.usual_warnings.includes(kind)),
  ];
  if (text.includes(BROKEN) && !source.includes(BROKEN)) {
    found.push(warning("unknown", `the translation has “${BROKEN}”, bytes that are no whole character`));
  }
  if (tokens.includes(UNK) && text.includes(UNK)) {
    found.push(warning("unknown", `the translation has ${UNK} for words that the model cannot write`));
  }
  const unseen = seen === null || found.some(namesWords) ? [] : seen.notCopied(source, text);
  if (unseen.length > 0) {
    found.push(warning("unseen", `the training text never had ${named(unseen)}: what stands for it is a guess`));
  }
  // whoever reads why it is wrong needs not be told that it may be
  if (found.length === 0 && isFree && tokens.length > 0) found.push(...unsure(said, header.unsure_below));
  return found;
}

function unsure({ log_probabilities: all }, bound) {
  const mean = all.reduce((a, b) => a + b, 0) / all.length;
  if (bound === null || !(mean < bound)) return [];
  const percent = (value) => `${(100 * Math.exp(value)).toFixed(0)}%`;
  const usual = `those of ${CERTAIN}% of the validation text ${percent(bound)} or more`;
  return [warning("unsure", `the model is unsure of it: its tokens have a probability of ${percent(mean)} on average, ${usual}`)];
}

/** A text as the translation of a source: lengths, loops and numbers. */
export function compare(source, text, read, tokens) {
  if (LETTER_OR_NUMBER.test(source) && !LETTER_OR_NUMBER.test(text)) {
    return [warning("empty", "nothing is left of it: the translation has neither a letter nor a digit")];
  }
  const found = [];
  const sizes = `(${grouped(tokens.length)} token${tokens.length === 1 ? "" : "s"} from ${grouped(read.length)})`;
  if (read.length >= SHORT_FROM && SHORT * tokens.length < read.length) {
    found.push(warning("short", `the translation is suspiciously short ${sizes}`));
  }
  if (repeats(tokens) && !repeats(read)) {
    found.push(warning("loop", `the translation repeats itself ${sizes}`));
  } else if (tokens.length > LONG * read.length + LONG_EXTRA) {
    found.push(warning("long", `the translation is suspiciously long ${sizes}`));
  }
  const changed = changedNumbers(source, text);
  if (changed !== null) found.push(warning("digits", changed));
  return found;
}

/** Whether a few tokens come many times, one after the other. */
function repeats(tokens) {
  for (let length = 1; length <= LOOP_LENGTH; length++) {
    let run = 0; // tokens in a row that are as those `length` before them
    for (let at = length; at < tokens.length; at++) {
      run = tokens[at] === tokens[at - length] ? run + 1 : 0;
      // the first of n repetitions matches nothing: n - 1 of them are left to count
      if (run >= Math.max((LOOP_TIMES - 1) * length, LOOP_TOKENS - length)) return true;
    }
  }
  return false;
}

function changedNumbers(source, text) {
  const isReadOut = !LETTER.test(source) && LETTER.test(text);
  source = withPlainNumbers(source, text);
  text = withPlainNumbers(text, source);
  const [ours, theirs] = [numbers(source, text), numbers(text, source)];
  if (ours.length > 0 && isReadOut) {
    return "the text has no letters, and the translation has some";
  }
  const ways = [(own, others) => onlyIn(own, others, LEAST_CHANGED)];
  if (!HALF.test(source) || !HALF.test(text)) ways.push(digitOnlyIn);
  if (!OTHER_SCALES.test(source + text)) ways.push(scaledOnlyIn);
  const isConverted = SMALL_UNIT.test(source) !== SMALL_UNIT.test(text);
  if (!isConverted && !OTHER_UNITS.test(source + text)) ways.push(pointedOnlyIn);
  for (const way of ways) {
    const [missing, fresh] = [way(ours, theirs), way(theirs, ours)];
    if (missing.length > 0 && fresh.length > 0) {
      return `the text has ${named(missing)}, and the translation has ${named(fresh)} instead`;
    }
  }
  const missing = onlyIn(ours, theirs, LEAST_DIGITS);
  if (missing.length > 0) return `${named(missing)} of the text is not in the translation`;
  const fresh = onlyIn(theirs, ours, LEAST_DIGITS);
  if (fresh.length > 0) return `the translation has ${named(fresh)}, which the text does not have`;
  const positive = withoutMinus(source, text);
  if (positive.length > 0) return `${named(positive)} of the text has no minus in the translation`;
  const negative = withoutMinus(text, source);
  if (negative.length > 0) return `${named(negative)} of the translation has no minus in the text`;
  const written = new Set(partsOfReferences(text));
  const lost = (source.match(REFERENCE) ?? []).filter((each) => !partsOfReferences(each).every((one) => written.has(one)));
  return lost.length > 0 ? `${named(lost)} of the text is not in the translation` : null;
}

/** The negative numbers of a text that the other text has without a minus, before or behind it, and without a word for one. */
function withoutMinus(text, other) {
  const found = [...text.matchAll(NEGATIVE)];
  if (found.length === 0 || MINUS_IN_WORDS.test(other)) return [];
  const hasMinus = new Map();
  for (const { 0: written, index } of other.matchAll(NUMBER)) {
    const [digits, end] = [allDigitsOf(written), index + written.length];
    const isSigned = BEHIND_A_MINUS.test(other.slice(0, index)) || BEFORE_A_MINUS.test(other.slice(end));
    hasMinus.set(digits, hasMinus.get(digits) || isSigned);
  }
  return found.filter(({ groups }) => hasMinus.get(allDigitsOf(groups.number)) === false).map(([written]) => written);
}

/** The text with its numbers as `other` has them, where that is another way to write them. */
function withPlainNumbers(text, other) {
  text = text.replace(MIXED, (_, whole, sign, parts) => whole + FRACTIONS[sign ?? parts]).replace(BARE_POINT, "0.").replace(HOUR_AND_MINUTE, "$1:$2");
  if (HALF.test(other)) text = text.replace(HALVES, "");
  if (QUARTER.test(other)) text = text.replace(QUARTERS, "");
  const known = new Set(partsOf(other.replace(GROUPED, "")));
  if (known.size === 0) return text;
  const year = (written, number) => (known.has(String(number)) ? ` ${number} ` : written);
  const value = (digits) => Number(allDigitsOf(digits));
  // 123-5 is 123-125
  const inFull = (first, last) => characters(first).slice(0, -characters(last).length).join("") + last;
  text = text
    .replace(SHORT_RANGE, (found, first, dash, last) => (known.has(inFull(first, last)) ? first + dash + inFull(first, last) : found))
    .replace(ERA_YEAR, (found, era, count) => year(found, ERAS[era] + (count === "元" ? 1 : value(count))))
    .replace(CHINESE_NUMBER, (found) => year(found, chineseValue(found)));
  return THAI.test(text) ? text.replace(BUDDHIST_YEAR, (found) => year(found, value(found) - BUDDHIST_ERA)) : text;
}

/** The number that words or digits of Chinese name: 三百六十五 is 365, 二〇二四 2024. */
function chineseValue(written) {
  let [total, part, digit] = [0n, 0n, 0n];
  for (const letter of written) {
    if (letter in CHINESE_UNITS) {
      part += (digit || 1n) * BigInt(CHINESE_UNITS[letter]);
      digit = 0n;
    } else if ("萬万億亿".includes(letter)) {
      total = (total + part + digit) * ("萬万".includes(letter) ? 10n ** 4n : 10n ** 8n);
      part = digit = 0n;
    } else {
      // ○ and 零 are other zeros
      digit = 10n * digit + BigInt("两兩".includes(letter) ? 2 : Math.max(0, CHINESE_DIGITS.indexOf(letter)));
    }
  }
  return total + part + digit;
}

const characters = (text) => [...text];
const partsOf = (written) => written.match(/\p{Nd}+/gu) ?? [];

/** The numbers in digits, superscript ones too. */
const partsOfReferences = (text) =>
  (text.match(DIGITS_OR_SUPERSCRIPTS) ?? []).map((part) =>
    [...part].map((one) => (SUPERSCRIPTS.includes(one) ? SUPERSCRIPTS.indexOf(one) : digit(one))).join(""),
  );

/** Each number as it is written, and its digits without zeros at its ends; those of a date apart. */
function numbers(text, other) {
  const isWhole = (other.match(NUMBER) ?? []).some((each) => SIDE_BY_SIDE.test(each));
  const isDivided = (written) => DATE.test(written) || (!isWhole && SIDE_BY_SIDE.test(written));
  return [...text.matchAll(NUMBER)]
    .flatMap(({ 0: written, index }) => {
      const stop = text.startsWith(".", index + written.length) ? "." : "";
      return isDivided(written + stop) ? partsOf(written) : [written];
    })
    .map((written) => [written, digitsOf(written)]);
}

const allDigitsOf = (written) => Array.from(written.match(/\p{Nd}/gu) ?? [], digit).join("");
const digitsOf = (written) => allDigitsOf(written).replace(/^0+|0+$/g, "");

/** The digit of any script: those of one stand in a row from zero on, and some rows side by side. */
function digit(character) {
  const code = character.codePointAt(0);
  let first = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(first - 1))) first--;
  return (code - first) % 10;
}

function onlyIn(ours, others, least) {
  // all digits of the other text in a row: 10,000 may be two numbers there, or part of one
  const row = others.map(([, digits]) => digits).join("");
  const parts = others.flatMap(([written]) => partsOf(written));
  const isOfFour = (part) => [...part].length === 4;
  const endOf = (year) => [...year].slice(2).join("");
  const endsOfYears = new Set(parts.filter(isOfFour).map(endOf));
  const times = new Set(others.map(([written]) => timeOf(written)));
  const known = new Set(parts);
  const isYear = (part) => isOfFour(part) && /^[12]/.test(part) && known.has(endOf(part));
  const isKnown = (part) => isYear(part) || row.includes(digitsOf(part)) || endsOfYears.has(part);
  const found = ours.filter(([written, digits]) => {
    if (digits.length < least || row.includes(digits) || partsOf(written).every(isKnown)) return false;
    const time = timeOf(written);
    return time === null || !times.has(time);
  });
  return found.map(([written]) => written);
}

/** The numbers of a single digit that the other text does not have. */
const digitOnlyIn = (ours, others) => onlyIn(ours, others, 1).filter((each) => [...each].length === 1);

/** The whole numbers of which the other text has one with more or fewer zeros instead. */
function scaledOnlyIn(ours, others) {
  const [values, known] = [wholeNumbers(ours), new Set(wholeNumbers(others).map(([, value]) => value))];
  const own = new Set(values.map(([, value]) => value));
  const bare = (value) => value.replace(/0+$/, "");
  const lengths = new Map();
  for (const value of known) {
    if (!own.has(value)) lengths.set(bare(value), [...(lengths.get(bare(value)) ?? []), value.length]);
  }
  const isScaled = (value) => (lengths.get(bare(value)) ?? []).some((length) => (value.length - length) % 3 !== 0);
  return values.filter(([, value]) => !known.has(value) && isScaled(value)).map(([written]) => written);
}

/** The numbers of which the other text has one with the same digits, and one of the two has a decimal point: 2.5 and 25. */
function pointedOnlyIn(ours, others) {
  const known = new Set(byPoint(others).map(([, digits, isPointed]) => `${digits} ${isPointed}`));
  return byPoint(ours)
    .filter(([, digits, isPointed]) => !known.has(`${digits} ${isPointed}`) && known.has(`${digits} ${!isPointed}`))
    .map(([written]) => written);
}

/** Numbers as they are written, their digits, and whether they have a decimal point. */
const byPoint = (all) =>
  all
    .filter(([written, digits]) => digits !== "" && (ALL_DIGITS.test(written) || DECIMAL.test(written)))
    .map(([written]) => [written, allDigitsOf(written).replace(/^0+/, ""), !ALL_DIGITS.test(written)]);

/** Whole numbers as they are written, and their digits without zeros in front. */
const wholeNumbers = (all) =>
  all
    .filter(([written]) => WHOLE.test(written))
    .map(([written]) => [written, allDigitsOf(written).replace(/^0+/, "")])
    .filter(([, digits]) => digits !== "");

/** The hour of twelve and the minute, which 17.30 and 5:30 have in common; null for no time. */
function timeOf(written) {
  const found = CLOCK.exec(written);
  if (found === null) return null;
  const [hour, minute] = [found[1], found[2] ?? ""].map((digits) => Number(allDigitsOf(digits)));
  return hour > 24 ? null : `${hour % 12}:${minute}`;
}

/** The first few different parts in quotation marks, and how many others there are. */
function named(parts) {
  const different = [...new Set(parts)];
  const short = (part) => ([...part].length <= LONGEST_SHOWN ? part : `${[...part].slice(0, LONGEST_SHOWN).join("")}…`);
  const shown = different.slice(0, SHOWN).map((part) => `“${short(part)}”`).join(", ");
  return different.length > SHOWN ? `${shown} and ${different.length - SHOWN} more` : shown;
}

/** The characters of a text that its tokens spell byte by byte. */
function spelledInBytes(tokens) {
  if (!tokens.some((token) => BYTE.test(token))) return "";
  const bytes = tokens.map((token) => Number.parseInt(BYTE.exec(token)?.[1] ?? "20", 16));
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** The codes that the model knows; null for one that does not list them, and may know that with which a text begins. */
function codesOf(tokenizer, text) {
  if (tokenizer.codes !== undefined) return tokenizer.codes;
  const [, code, name] = CODE_IN_FRONT.exec(text) ?? [];
  if (!name) return null;
  const ids = tokenizer.encode(code);
  const isRead = !tokenizer.spellsBytes || tokenizer.tokens(ids).some((token) => token.includes(">>"));
  return isRead && !ids.includes(1) ? null : [];
}

/** What is wrong with the code of the target language in front of a text; null for nothing. */
function codeFault(text, codes) {
  const found = (codes.length > 0 ? CODE_IN_FRONT : MEANT_AS_CODE).exec(text);
  const listed = (some) => some.slice(0, CODES_SHOWN).join(", ") + (some.length > CODES_SHOWN ? ` and ${some.length - CODES_SHOWN} more` : "");
  if (codes.length === 0) {
    return found === null ? null : `this model translates into one language, and does not know ${found[1]}`;
  }
  if (found === null) {
    return `it must begin with the code of the language to translate into, such as ${codes[0]}; the model knows ${listed(codes)}`;
  }
  const [whole, code] = found;
  if (!codes.includes(code)) return `the model does not know the code ${code}; it knows ${listed(codes)}`;
  return whole === code ? null : `the code ${code} must be its first characters, and white space is before it`;
}
