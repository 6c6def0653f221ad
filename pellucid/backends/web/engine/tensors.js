// Tensors: a shape and its numbers in a Float32Array, the last axis running fastest.
//
// Nothing is broadcast, and nothing is computed twice: a sentence is a matrix with a row for each
// token. `may` in comments is a mask, true where a query may attend.

export const tensor = (shape, values) => ({ shape, values });

export function zeros(shape) {
  let count = 1;
  for (const size of shape) count *= size;
  return tensor(shape, new Float32Array(count));
}

/** Rows `from` up to `to` of a matrix, or entries of a vector, without a copy. */
export function slice(matrix, from, to) {
  const width = matrix.values.length / matrix.shape[0];
  const values = matrix.values.subarray(from * width, to * width);
  return { ...matrix, shape: [to - from, ...matrix.shape.slice(1)], values };
}

/** The number of rows and their width, whatever the axes before the last. */
export function sizes(x) {
  const width = x.shape.at(-1);
  return [x.shape.slice(0, -1).reduce((a, b) => a * b, 1), width];
}

/** A new tensor of the same shape, each number mapped by itself. */
export function map(x, f) {
  const values = new Float32Array(x.values.length);
  for (let i = 0; i < values.length; i++) values[i] = f(x.values[i]);
  return tensor(x.shape, values);
}

/** x + y of equal shapes. */
export function add(x, y) {
  const values = new Float32Array(x.values.length);
  for (let i = 0; i < values.length; i++) values[i] = x.values[i] + y.values[i];
  return tensor(x.shape, values);
}

export function scale(x, factor) {
  return factor === 1 ? x : map(x, (value) => value * factor);
}

/** Matrices of equal width, one below the other. */
export function stack(parts) {
  if (parts.length === 1) return parts[0];
  const width = parts[0].shape[1];
  const joined = zeros([parts.reduce((sum, part) => sum + part.shape[0], 0), width]);
  let row = 0;
  for (const part of parts) {
    joined.values.set(part.values, row * width);
    row += part.shape[0];
  }
  return joined;
}

/** Rows of x beside those of y. */
export function beside(x, y) {
  const [rows, left] = sizes(x);
  const right = y.shape.at(-1);
  const joined = zeros([rows, left + right]);
  for (let row = 0; row < rows; row++) {
    joined.values.set(x.values.subarray(row * left, (row + 1) * left), row * (left + right));
    joined.values.set(y.values.subarray(row * right, (row + 1) * right), row * (left + right) + left);
  }
  return joined;
}

/** x Wᵀ of rows x, where W is (outputs, inputs) as torch.nn keeps it: plain loops. */
export function product(x, weight) {
  const [outputs, inputs] = weight.shape;
  const w = weight.values;
  const rows = x.length / inputs;
  const y = new Float32Array(rows * outputs);
  for (let row = 0; row < rows; row++) {
    for (let j = 0; j < outputs; j++) {
      let sum = 0;
      for (let k = 0; k < inputs; k++) sum += x[row * inputs + k] * w[j * inputs + k];
      y[row * outputs + j] = sum;
    }
  }
  return y;
}

/** x Wᵀ + b, by the kernel if the matrix lies in its memory. */
export function linear(x, weight, bias = null) {
  const [outputs] = weight.shape;
  const y = weight.kernel?.fits(weight)
    ? weight.kernel.product(x.values, weight)
    : product(x.values, weight);
  if (bias !== null) {
    for (let i = 0; i < y.length; i += outputs) {
      for (let j = 0; j < outputs; j++) y[i + j] += bias.values[j];
    }
  }
  return tensor([...x.shape.slice(0, -1), outputs], y);
}

/** Σ x[from + i] y[at + i] of `size` numbers; four sums, as each waits for the one before. */
export function dot(x, from, y, at, size) {
  let a = 0, b = 0, c = 0, d = 0;
  let i = 0;
  for (; i + 4 <= size; i += 4) {
    a += x[from + i] * y[at + i];
    b += x[from + i + 1] * y[at + i + 1];
    c += x[from + i + 2] * y[at + i + 2];
    d += x[from + i + 3] * y[at + i + 3];
  }
  for (; i < size; i++) a += x[from + i] * y[at + i];
  return a + b + c + d;
}

/** x W, where W is (inputs, outputs) as the paper writes it. */
export function times(x, weight) {
  const [rows, inputs] = sizes(x);
  const outputs = weight.shape[1];
  const y = zeros([...x.shape.slice(0, -1), outputs]);
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < inputs; k++) {
      const factor = x.values[row * inputs + k];
      if (factor === 0) continue;
      for (let j = 0; j < outputs; j++) {
        y.values[row * outputs + j] += factor * weight.values[k * outputs + j];
      }
    }
  }
  return y;
}
