// Which intermediates of a pass to keep, and what to change on the way (model/trace.py).

import { tensor, zeros } from "./tensors.js";

/** What a pass is to change; see `readEdits`. */
const NOTHING = { off: [], rows: [], mask: true, positions: true, norm: null };

/** The edits of a call, with what is not named as it is in the model. */
export const readEdits = (edits) => ({ ...NOTHING, ...edits, off: new Set(edits?.off ?? []) });

/** Collects intermediates by name; `patterns` are names with `*`, null keeps nothing. */
export class Trace {
  constructor(patterns, edits) {
    this.edits = edits;
    this.values = new Map();
    this.isIdle = patterns === null;
    const sources = (patterns ?? []).map((pattern) =>
      pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*"),
    );
    this.wanted = new RegExp(`^(?:${sources.join("|")})$`);
  }

  wants(name) {
    return !this.isIdle && this.wanted.test(name);
  }

  /** Keep `value` as `name` if it is wanted; returns it. */
  keep(name, value) {
    if (this.wants(name)) this.values.set(name, value);
    return value;
  }

  /** As `keep`, and each head by a name of its own: `….heads.3.weights` is row 3 of `….weights`. */
  keepHeads(stem, name, value) {
    if (this.isIdle) return value;
    this.keep(`${stem}.${name}`, value);
    const [heads, ...shape] = value.shape;
    const size = value.values.length / heads;
    const last = name === "heads" ? "output" : name; // `….heads` is the stack of all outputs
    for (let head = 0; head < heads; head++) {
      const values = value.values.subarray(head * size, (head + 1) * size);
      this.keep(`${stem}.heads.${head}.${last}`, tensor(shape, values));
    }
    return value;
  }

  isOff(name) {
    return this.edits.off.has(name);
  }

  /** The outputs of all heads, (heads, position, size), with zeros for those that are off. */
  withoutHeads(stem, heads) {
    const [count, length, size] = heads.shape;
    for (let head = 0; head < count; head++) {
      if (this.isOff(`${stem}.heads.${head}`)) {
        heads.values.fill(0, head * length * size, (head + 1) * length * size);
      }
    }
    return heads;
  }

  /** The weights of attention with the rows that are held by hand; the first is that of `start`. */
  withRows(stem, weights, start = 0) {
    const [heads, length, keys] = weights.shape;
    for (const { name, row, values } of this.edits.rows) {
      for (let head = 0; head < heads; head++) {
        const at = row - start;
        if (name !== `${stem}.heads.${head}.weights` || at < 0 || at >= length) continue;
        for (let key = 0; key < keys; key++) {
          weights.values[(head * length + at) * keys + key] = values[key] ?? 0;
        }
      }
    }
    return weights;
  }

  /** What a part adds to the residual stream that is switched off: nothing. */
  nothing(x) {
    return zeros(x.shape);
  }
}
