// A small assembler: WebAssembly functions as lines of its own text format, and their bytes.
//
// Only what kernel.js needs. Source of the encoding: WebAssembly Core Specification 2.0, §5.

const TYPES = { i32: 0x7f, f32: 0x7d, v128: 0x7b };

/** Instructions without operands. */
const BARE = {
  end: [0x0b],
  select: [0x1b],
  "i32.lt_u": [0x49],
  "i32.add": [0x6a],
  "i32.sub": [0x6b],
  "i32.mul": [0x6c],
  "i32.shl": [0x74],
  "f32.add": [0x92],
  "f32.max": [0x97],
  "i32x4.splat": [0xfd, 0x11],
  "f32x4.splat": [0xfd, 0x13],
  "f32x4.nearest": [0xfd, 0x6a],
  "i32x4.shl": [0xfd, 0xab, 0x01],
  "i32x4.add": [0xfd, 0xae, 0x01],
  "f32x4.add": [0xfd, 0xe4, 0x01],
  "f32x4.sub": [0xfd, 0xe5, 0x01],
  "f32x4.mul": [0xfd, 0xe6, 0x01],
  "f32x4.max": [0xfd, 0xe9, 0x01],
  "i32x4.trunc_sat_f32x4_s": [0xfd, 0xf8, 0x01],
  "f32x4.relaxed_madd": [0xfd, 0x85, 0x02],
};
const LOCALS = { "local.get": 0x20, "local.set": 0x21, "local.tee": 0x22 };
const BLOCKS = { block: 0x02, loop: 0x03 };
const JUMPS = { br: 0x0c, br_if: 0x0d };
const NO_RESULT = 0x40;

/**
 * The bytes of a module with one exported function, which works on an imported memory.
 *
 * `parameters` are the names of its i32 parameters, `locals` pairs of a name and a type. Every line
 * of `text` holds one instruction; `;` begins a comment, and labels name blocks.
 */
export function assemble(name, parameters, locals, text) {
  const names = [...parameters, ...locals.map(([local]) => local)];
  const body = [
    ...list(locals.map(([, type]) => [1, TYPES[type]])),
    ...instructions(text, names),
    0x0b,
  ];
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00], // "\0asm", version 1
    ...section(1, list([[0x60, ...list(parameters.map(() => [TYPES.i32])), 0]])),
    ...section(2, list([[...text8("page"), ...text8("memory"), 0x02, 0x00, 0x01]])),
    ...section(3, list([[0]])),
    ...section(7, list([[...text8(name), 0x00, 0]])),
    ...section(10, list([[...unsigned(body.length), ...body]])),
  ]);
}

function instructions(text, names) {
  const labels = [];
  return text.split("\n").flatMap((line) => {
    const [instruction, operand] = line.split(";")[0].trim().split(/\s+/);
    if (instruction === "") return [];
    if (instruction === "end") labels.pop();
    if (instruction in BARE) return BARE[instruction];
    if (instruction in LOCALS) return [LOCALS[instruction], names.indexOf(operand)];
    if (instruction in BLOCKS) {
      labels.push(operand);
      return [BLOCKS[instruction], NO_RESULT];
    }
    // a jump names its block by how many blocks lie between
    if (instruction in JUMPS) return [JUMPS[instruction], labels.length - 1 - labels.indexOf(operand)];
    switch (instruction) {
      case "i32.const":
        return [0x41, ...signed(Number(operand))];
      case "f32.const":
        return [0x43, ...new Uint8Array(Float32Array.of(Number(operand)).buffer)];
      case "v128.load": // aligned to four bytes, at an offset
        return [0xfd, 0x00, 2, ...unsigned(Number(operand))];
      case "v128.zero":
        return [0xfd, 0x0c, ...new Array(16).fill(0)];
      case "f32.store":
        return [0x38, 2, ...unsigned(Number(operand))];
      case "f32x4.extract_lane":
        return [0xfd, 0x1f, Number(operand)];
      default:
        throw new Error(`the assembler knows no ${instruction}`);
    }
  });
}

const section = (id, content) => [id, ...unsigned(content.length), ...content];

const list = (entries) => [...unsigned(entries.length), ...entries.flat()];

const text8 = (text) => list([...text].map((character) => [character.charCodeAt(0)]));

/** LEB128: seven bits to a byte, the lowest first. */
function unsigned(number) {
  const bytes = [];
  do {
    bytes.push((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
    number >>>= 7;
  } while (number > 0);
  return bytes;
}

function signed(number) {
  const bytes = [];
  for (;;) {
    const low = number & 0x7f;
    number >>= 7;
    // done when the sign bit of this byte says the rest
    if ((number === 0 && !(low & 0x40)) || (number === -1 && low & 0x40)) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}
