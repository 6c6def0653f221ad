// The fast twin of `product` in tensors.js: the same products, four numbers at a time.

import { assemble } from "./assembler.js";
import { logSumExpText, PARAMETERS as OF_A_ROW } from "./log_sum_exp.js";

const PAGE = 65536; // bytes of a page of WebAssembly memory
const SCRATCH = 1 << 20; // floats for the rows that go in and those that come out

const PARAMETERS = ["x", "w", "y", "rows", "inputs", "outputs"];

const add = (to, amount) => `local.get ${to}\n${amount}\ni32.add\nlocal.set ${to}\n`;
const times4 = (name) => `local.get ${name}\ni32.const 2\ni32.shl`;
const upTo = (count) => [...Array(count).keys()];

const TALL = 2; // rows of x that are taken at a time, where there are as many
const WIDE = 4; // rows of W
const DEEP = 4; // times four numbers of them, where they are so many

/**
 * y = x Wᵀ, as the locals and the text of a function that takes `tall` rows of x and four rows of W at
 * a time, so that each load serves several products.
 *
 * Addresses in bytes. `rows` is a multiple of `tall`, `inputs` one of 4 · `deep`, and `outputs` at least 4:
 * where that is no multiple of 4, the last rows of W overlap those before, and their products are written
 * twice. With `isFused` a product is added without being rounded before. Sums are the same for any `tall`
 * and `deep`, to the last bit.
 */
function kernelText(tall, deep, isFused) {
  const [lines, lanes] = [upTo(tall), upTo(WIDE)];
  const sums = lines.flatMap((line) => lanes.map((lane) => `sum${line}_${lane}`));
  const locals = [
    ...["j", "i", "first", "stride", "block", "row_end", "out", "place"].map((name) => [name, "i32"]),
    ...lines.map((line) => [`at${line}`, "i32"]),
    ...lanes.map((lane) => [`w${lane}`, "i32"]),
    ["weights", "v128"],
    ...lines.map((line) => [`x${line}`, "v128"]),
    ...sums.map((sum) => [sum, "v128"]),
  ];
  const text = `
    ${times4("inputs")}             ; stride = 4 · inputs, the bytes of a row of x or of W
    local.set stride
    i32.const 0
    local.set j
    loop each_block                 ; for (j = 0; j < outputs; j += WIDE)
      local.get outputs             ;   first = min(j, outputs - WIDE)
      i32.const ${WIDE}
      i32.sub
      local.get j
      local.get outputs
      i32.const ${WIDE}
      i32.sub
      local.get j
      i32.lt_u
      select
      local.set first
      local.get w                   ;   block = w + first · stride
      local.get first
      local.get stride
      i32.mul
      i32.add
      local.set block
      local.get y                   ;   out = y + 4 · first
      ${times4("first")}
      i32.add
      local.set out
      local.get x
      local.set row_end
      i32.const 0
      local.set i
      loop each_row                 ;   for (i = 0; i < rows; i += tall)
        ${lines.map((line) => `
          local.get row_end         ;     atₗ, where row i + l of x begins
          local.set at${line}
          ${add("row_end", "local.get stride")}`).join("")}
        local.get at0
        local.get stride
        i32.add
        local.set place             ;     the end of row i
        local.get block
        local.set w0
        ${lanes.slice(1).map((lane) => `local.get w${lane - 1}\nlocal.get stride\ni32.add\nlocal.set w${lane}\n`).join("")}
        ${sums.map((sum) => `v128.zero\nlocal.set ${sum}\n`).join("")}
        loop each_piece             ;     for (; at₀ < place; at += 16 · deep)
          ${upTo(deep).map((four) => `
            ${lines.map((line) => `
              local.get at${line}
              v128.load ${16 * four}
              local.set x${line}`).join("")}
            ${lanes.map((lane) => `
              local.get w${lane}
              v128.load ${16 * four}
              local.set weights
              ${lines.map((line) => addProduct(`sum${line}_${lane}`, `x${line}`, isFused)).join("")}`).join("")}`).join("")}
          ${lanes.map((lane) => add(`w${lane}`, `i32.const ${16 * deep}`)).join("")}
          ${lines.map((line) => add(`at${line}`, `i32.const ${16 * deep}`)).join("")}
          local.get at0
          local.get place
          i32.lt_u
          br_if each_piece
        end
        local.get out
        local.set place
        ${lines.map((line) => `
          ${lanes.map((lane) => `
            local.get place         ;     y[i + l, first + k] = the sum
            ${addUp(`sum${line}_${lane}`)}
            f32.store ${4 * lane}`).join("")}
          ${add("place", times4("outputs"))}`).join("")}
        local.get place
        local.set out
        ${add("i", `i32.const ${tall}`)}
        local.get i
        local.get rows
        i32.lt_u
        br_if each_row
      end
      ${add("j", `i32.const ${WIDE}`)}
      local.get j
      local.get outputs
      i32.lt_u
      br_if each_block
    end
  `;
  return [locals, text];
}

/** sum += x ⊙ weights, four numbers at a time. */
const addProduct = (sum, x, isFused) =>
  isFused
    ? `local.get ${x}\nlocal.get weights\nlocal.get ${sum}\nf32x4.relaxed_madd\nlocal.set ${sum}\n`
    : `local.get ${sum}\nlocal.get ${x}\nlocal.get weights\nf32x4.mul\nf32x4.add\nlocal.set ${sum}\n`;

/** The four numbers of a sum, added up. */
const addUp = (sum) =>
  `local.get ${sum}\nf32x4.extract_lane 0\n` +
  [1, 2, 3].map((part) => `local.get ${sum}\nf32x4.extract_lane ${part}\nf32.add\n`).join("");

/**
 * A memory for `count` floats of weights, and the kernel that multiplies by them; null where the
 * browser has no WebAssembly with SIMD, or is told not to run it.
 *
 * Law: tests/web/test_engine_equals_python.py, equal to the plain product.
 */
export function makeKernel(count) {
  try {
    const bytes = 4 * (count + SCRATCH) + 16;
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    const [any, deep] = [1, DEEP].map((fours) => [1, TALL].map((tall) => compileProduct(memory, tall, fours)));
    const sum = compile(memory, "logSumExp", OF_A_ROW, logSumExpText());
    return new Kernel(memory, { any, deep, sum }, count);
  } catch {
    return null;
  }
}

/** The function of `kernelText`, with fused products where the browser has them. */
function compileProduct(memory, tall, deep) {
  const tried = (isFused) => compile(memory, "product", PARAMETERS, kernelText(tall, deep, isFused));
  return tried(true) ?? tried(false);
}

/** A function of an assembled text; null if the browser does not know all of its instructions. */
function compile(memory, name, parameters, [locals, text]) {
  const bytes = assemble(name, parameters, locals, text);
  if (!WebAssembly.validate(bytes)) return null;
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { page: { memory } });
  return instance.exports[name];
}

class Kernel {
  constructor(memory, { any, deep, sum }, count) {
    this.floats = new Float32Array(memory.buffer);
    // each a pair of functions: for any number of rows, one at a time, and for a multiple of TALL
    this.any = any; // inputs are a multiple of 4
    this.deep = deep; // of 4 · DEEP
    this.runSum = sum;
    this.scratch = count + ((4 - (count % 4)) % 4);
    this.used = 0;
  }

  /** Room for `count` floats; they stay where they are. */
  take(count) {
    const start = this.used;
    this.used += count;
    return this.floats.subarray(start, start + count);
  }

  /** Whether the kernel can multiply rows by this matrix. */
  fits(weight) {
    const [outputs, inputs] = weight.shape;
    return (
      weight.values.buffer === this.floats.buffer &&
      inputs % 4 === 0 && inputs > 0 && outputs >= WIDE && inputs + outputs <= SCRATCH
    );
  }

  /** x Wᵀ as `product` in tensors.js gives it. */
  product(x, weight) {
    const [outputs, inputs] = weight.shape;
    const count = x.length / inputs;
    const y = new Float32Array(count * outputs);
    const [runOne, runMore] = inputs % (4 * DEEP) === 0 ? this.deep : this.any;
    const most = Math.floor(SCRATCH / (inputs + outputs)); // rows that fit at a time
    for (let row = 0; row < count; row += most) {
      const rows = Math.min(most, count - row);
      const [to, from] = [this.scratch, this.scratch + rows * inputs];
      this.floats.set(x.subarray(row * inputs, (row + rows) * inputs), to);
      const even = rows - (rows % TALL);
      const w = weight.values.byteOffset;
      if (even > 0) runMore(4 * to, w, 4 * from, even, inputs, outputs);
      if (even < rows) {
        runOne(4 * (to + even * inputs), w, 4 * (from + even * outputs), rows - even, inputs, outputs);
      }
      y.set(this.floats.subarray(from, from + rows * outputs), row * outputs);
    }
    return y;
  }

  /** log Σᵢ exp(xᵢ) of a row of numbers; null if it does not fit. */
  logSumExp(row) {
    const count = row.length + ((4 - (row.length % 4)) % 4);
    if (count === 0 || count + 2 > SCRATCH) return null;
    const out = this.scratch + count;
    this.floats.set(row, this.scratch);
    this.floats.fill(-Infinity, this.scratch + row.length, out);
    this.runSum(4 * this.scratch, count, 4 * out);
    return this.floats[out] + Math.log(this.floats[out + 1]);
  }
}
