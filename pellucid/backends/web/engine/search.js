// Searches over a model: greedy, beam, and drawing at random (pellucid/decoding/search).
//
// A search is a generator, so that those of several lines can go on side by side (`searchTogether`). It
// yields `{ ids, parents }`: a token for each hypothesis, and which hypothesis of the step before that
// continues. It is given the logits of each, and where each stands in the state; it returns what it found.

import { logSoftmax } from "./equations.js";
import { PAD_ID, BOS_ID, EOS_ID } from "./transformer.js";

const IMPOSSIBLE = -1e30; // replaces log 0 where a token is forced; finite, so that sums stay numbers
const MOST_TOKENS = 1 << 17;

/** The most tokens, without the stop, that a translation of `length` tokens may have. */
export function lengthLimit(length, settings, modelLimit) {
  if (settings.max_length !== null) {
    return modelLimit === null ? settings.max_length : Math.min(settings.max_length, modelLimit - 1);
  }
  const most = modelLimit === null ? MOST_TOKENS : modelLimit - 1;
  return Math.min(Math.trunc(length * settings.max_length_ratio) + settings.max_length_extra, most);
}

/** lp(Y) = ((5 + |Y|) / 6)^α, or |Y|^α; the stop is counted. */
export function lengthPenalty(length, settings) {
  const base = settings.length_penalty_kind === "power" ? length : (5 + length) / 6;
  return base ** settings.length_penalty;
}

/**
 * log p(next token), and -∞ for what the rules exclude (`Rules` in decoding/search/candidates.py).
 *
 * PAD and BOS are never generated; a forced prefix and the stop at the limit override every other rule.
 */
function nextLogProbs(logits, said, { settings, prefix, limit, kernel }) {
  const { temperature } = settings;
  const logProbs = logSoftmax(temperature === 1 ? logits : logits.map((each) => each / temperature), kernel);
  const length = said.length;
  const forced = length < prefix.length ? prefix[length] : length >= limit ? EOS_ID : null;
  if (forced !== null) {
    const isFree = settings.forced_stop === "free" && forced === EOS_ID && length >= limit;
    const kept = isFree ? 0 : Math.max(logProbs[forced], IMPOSSIBLE);
    logProbs.fill(-Infinity);
    logProbs[forced] = kept;
    return logProbs;
  }
  logProbs[PAD_ID] = logProbs[BOS_ID] = -Infinity;
  if (length < settings.min_length) logProbs[EOS_ID] = -Infinity;
  const n = settings.no_repeat_ngram;
  for (let at = 0; n > 0 && at + n <= length; at++) {
    const opening = length - (n - 1);
    if (said.slice(at, at + n - 1).every((id, k) => id === said[opening + k])) {
      logProbs[said[at + n - 1]] = -Infinity;
    }
  }
  return logProbs;
}

/**
 * A finished sequence of ids with its stop: score = Σ log p / penalty(length).
 *
 * `end` is the state after its last step and its row there.
 */
function hypothesis(ids, logProbs, settings, end) {
  const total = logProbs.reduce((a, b) => a + b, 0);
  if (!Number.isFinite(total)) throw new Error("the model gives no finite probability");
  return {
    ids: ids.slice(0, -1),
    log_probabilities: logProbs,
    score: total / lengthPenalty(ids.length, settings),
    end,
  };
}

const rowOf = (logits, row) => {
  const size = logits.shape[1];
  return logits.values.subarray(row * size, (row + 1) * size);
};

/**
 * What each of several searches finds. `start` is the state before their first tokens, with a row for each
 * search; every step feeds all their hypotheses to the model at once, so that its weights are read once.
 */
export function searchTogether(model, start, searches) {
  const found = searches.map(() => null);
  let state = start;
  // `first` is the row of a search's first hypothesis
  let live = searches.map((search, index) => ({ index, search, first: index, asked: search.next().value }));
  while (live.length > 0) {
    const ids = live.flatMap(({ asked }) => asked.ids);
    const parents = live.flatMap(({ asked, first }) => asked.parents.map((parent) => first + parent));
    let logits;
    [logits, state] = model.step(state, ids, parents);
    let row = 0;
    for (const each of live) {
      each.first = row;
      const rows = each.asked.ids.map(() => ({ logits: rowOf(logits, row), end: { state, row: row++ } }));
      const { done, value } = each.search.next(rows);
      if (done) found[each.index] = value;
      else each.asked = value;
    }
    live = live.filter(({ index }) => found[index] === null);
  }
  return found;
}

/** Append the likeliest token until it is the stop (EQ-123, EQ-125); of equal ones the first. */
export function* greedy(rules, { onToken = () => {}, choose = likeliest } = {}) {
  const ids = [];
  const logProbs = [];
  let [last, end] = [BOS_ID, null];
  while (last !== EOS_ID) {
    const [{ logits, ...next }] = yield { ids: [last], parents: [0] };
    const row = nextLogProbs(logits, ids, rules);
    last = choose(row);
    end = next.end;
    ids.push(last);
    logProbs.push(row[last]);
    if (last !== EOS_ID) onToken(ids);
  }
  return [hypothesis(ids, logProbs, rules.settings, end)];
}

export function likeliest(row) {
  let best = 0;
  for (let id = 1; id < row.length; id++) if (row[id] > row[best]) best = id;
  return best;
}

/** Draws a token by its probability, with a generator that a seed decides (mulberry32). */
export function drawing(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return (row) => {
    // the rules took away some tokens; the others share what is left
    const shares = row.map(Math.exp);
    let chance = next() * shares.reduce((a, b) => a + b, 0);
    let drawn = likeliest(row);
    for (let id = 0; id < shares.length; id++) {
      if (shares[id] <= 0) continue;
      drawn = id;
      chance -= shares[id];
      if (chance < 0) break;
    }
    return drawn;
  };
}

/**
 * Follow the `beam_size` likeliest prefixes; the `n_best` finished ones, best first (EQ-127, EQ-128).
 *
 * As decoding/search/beam.py: a stop finishes a hypothesis if it is among the `beam_size` best
 * candidates; the search ends when `patience · beam_size` have finished, or when no live hypothesis
 * can beat the worst that is kept.
 */
export function* beam(rules, { onToken = () => {} } = {}) {
  const { settings, limit } = rules;
  const { beam_size: width } = settings;
  const keptCount = settings.stop_bound === "current" ? width : settings.n_best;
  let live = [{ ids: [], logProbs: [], total: 0 }];
  let parents = [0];
  let finished = [];
  let count = 0;
  for (let length = 0; ; length++) {
    const read = yield { ids: live.map(({ ids }) => ids.at(-1) ?? BOS_ID), parents };
    const rows = live.map(({ ids }, row) => nextLogProbs(read[row].logits, ids, rules));
    const candidates = best(rows, live.map(({ total }) => total), 2 * width);

    const stopped = candidates.slice(0, width).filter(({ id, total }) => id === EOS_ID && total > -Infinity);
    count += stopped.length;
    const scored = stopped.map((each) => ({
      ...extended(live[each.row], each),
      score: Math.fround(each.total / lengthPenalty(length + 1, settings)),
      end: read[each.row].end,
    }));
    // sorting is stable: of equal scores the one that finished earlier stays ahead
    finished = [...finished, ...scored].sort((a, b) => b.score - a.score).slice(0, keptCount);

    const going = candidates.filter(({ id }) => id !== EOS_ID).slice(0, width);
    const bound = (going[0]?.total ?? -Infinity) / boundPenalty(length + 1, rules);
    const worst = finished.length < keptCount ? -Infinity : finished.at(-1).score;
    if (worst >= bound || count >= settings.patience * width || length >= limit) break;

    parents = going.map(({ row }) => row);
    live = going.map((each) => extended(live[each.row], each));
    onToken(live[0].ids);
  }
  if (finished.length === 0) throw new Error("the model rules out every translation");
  return finished.slice(0, settings.n_best).map(({ ids, logProbs, end }) => hypothesis(ids, logProbs, settings, end));
}

const extended = ({ ids, logProbs }, { id, logProb, total }) => ({
  ids: [...ids, id],
  logProbs: [...logProbs, logProb],
  total,
});

/** The divisor that bounds the score of a live hypothesis; log-probabilities only fall. */
function boundPenalty(length, { settings, limit }) {
  if (settings.stop_bound === "current") return lengthPenalty(length, settings);
  return lengthPenalty(settings.length_penalty >= 0 ? limit + 1 : length + 1, settings);
}

/** The `count` best continuations, best first; of equal ones that of the first row, then the lowest id. */
function best(rows, totals, count) {
  const found = [];
  rows.forEach((logProbs, row) => {
    for (let id = 0; id < logProbs.length; id++) {
      const total = Math.fround(totals[row] + logProbs[id]); // in float32, as the program adds
      if (total === -Infinity || (found.length === count && total <= found.at(-1).total)) continue;
      let at = found.length;
      while (at > 0 && found[at - 1].total < total) at--;
      found.splice(at, 0, { row, id, total, logProb: logProbs[id] });
      if (found.length > count) found.pop();
    }
  });
  return found;
}
