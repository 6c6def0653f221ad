// log Σ exp of a row of numbers, four at a time: the fast twin of what `logSoftmax` in equations.js sums.

const BIAS = 127; // of the exponent of a float32
const DEGREE = 6; // of the Taylor series of exp; what is beyond it is less than a digit of float32
const FACTORIALS = [1, 1, 2, 6, 24, 120, 720];
const CONSTANTS = {
  lowest: -87, // exp of less is no normal number
  log2_e: 1.4426950408889634,
  // ln 2 in two parts, the first with few digits, so that n · ln 2 is not rounded
  ln2: 0.693359375,
  ln2_rest: -2.1219444005469057e-4,
  ...Object.fromEntries(FACTORIALS.map((factorial, k) => [`term${k}`, 1 / factorial])),
};

export const PARAMETERS = ["x", "count", "out"];

/**
 * Locals and text of a function that writes to `out` the largest of `count` numbers at x, and Σ exp(xᵢ - largest).
 * Addresses in bytes; `count` is a multiple of 4 and not 0.
 *
 * exp(n ln 2 + r) = 2ⁿ exp(r), where |r| ≤ ln 2 / 2, and 2ⁿ is a matter of bits.
 */
export function logSumExpText() {
  const vectors = ["most", "sum", "d", "n", "bias", ...Object.keys(CONSTANTS)];
  const locals = [
    ...["at", "end"].map((name) => [name, "i32"]),
    ["highest", "f32"],
    ...vectors.map((name) => [name, "v128"]),
  ];
  const constants = Object.entries(CONSTANTS).map(
    ([name, value]) => `f32.const ${value}\nf32x4.splat\nlocal.set ${name}\n`,
  );
  // 1 + r (1 + r (1/2 + r (1/6 + …)))
  const series = Array.from({ length: DEGREE }, (_, k) => DEGREE - 1 - k).map(
    (k) => `local.get d\nf32x4.mul\nlocal.get term${k}\nf32x4.add\n`,
  );
  const lanes = (vector, operation) =>
    `local.get ${vector}\nf32x4.extract_lane 0\n` +
    [1, 2, 3].map((lane) => `local.get ${vector}\nf32x4.extract_lane ${lane}\n${operation}\n`).join("");
  const each = (label, body) => `
    local.get x
    local.set at
    loop ${label}                   ; for (at = x; at < end; at += 16)
      ${body}
      local.get at
      i32.const 16
      i32.add
      local.tee at
      local.get end
      i32.lt_u
      br_if ${label}
    end
  `;
  const text = `
    ${constants.join("")}
    i32.const ${BIAS}
    i32x4.splat
    local.set bias
    local.get x
    local.get count
    i32.const 2
    i32.shl
    i32.add
    local.set end
    local.get x
    v128.load 0
    local.set most
    ${each("each_for_most", `
      local.get most
      local.get at
      v128.load 0
      f32x4.max
      local.set most`)}
    ${lanes("most", "f32.max")}
    local.tee highest
    f32x4.splat
    local.set most
    ${each("each_for_sum", `
      local.get at                  ;   d = max(x - most, lowest)
      v128.load 0
      local.get most
      f32x4.sub
      local.get lowest
      f32x4.max
      local.tee d
      local.get log2_e              ;   n = round(d / ln 2)
      f32x4.mul
      f32x4.nearest
      local.set n
      local.get d                   ;   r = d - n ln 2
      local.get n
      local.get ln2
      f32x4.mul
      f32x4.sub
      local.get n
      local.get ln2_rest
      f32x4.mul
      f32x4.sub
      local.set d
      local.get term${DEGREE}       ;   exp(r)
      ${series.join("")}
      local.get n                   ;   2ⁿ has the exponent n + BIAS, and no fraction
      i32x4.trunc_sat_f32x4_s
      local.get bias
      i32x4.add
      i32.const 23
      i32x4.shl
      f32x4.mul
      local.get sum
      f32x4.add
      local.set sum`)}
    local.get out
    local.get highest
    f32.store 0
    local.get out
    ${lanes("sum", "f32.add")}
    f32.store 4
  `;
  return [locals, text];
}
