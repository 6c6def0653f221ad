// Matrices with the names of their rows and columns; a report's are unpacked when they are first shown.

/** One matrix with the names of its rows and columns. */
export class Matrix {
  constructor(name, entry, words, data) {
    this.name = name;
    this.rows = entry.shape[0];
    this.columns = entry.shape[1];
    this.wholeRows = entry.of[0];
    this.wholeColumns = entry.of[1];
    this.rowAxis = entry.rows;
    this.columnAxis = entry.columns;
    this.scale = entry.scale;
    this.rowWords = words[entry.rows] ?? null;
    this.columnWords = words[entry.columns] ?? null;
    this.data = data;
    this.values = null;
  }

  /** A matrix of shares from rows of numbers; `axes` and `words` name the rows, then the columns. */
  static ofRows(name, rows, axes, words) {
    const shape = [rows.length, rows[0].length];
    const entry = { shape, of: shape, rows: "rows", columns: "columns", scale: "share" };
    const matrix = new Matrix(name, entry, { rows: words[0], columns: words[1] }, "");
    [matrix.rowAxis, matrix.columnAxis] = axes;
    matrix.values = Float32Array.from(rows.flat());
    return matrix;
  }

  /** The mean of matrices of one shape, with the words of the first. */
  static meanOf(matrices) {
    const [first] = matrices;
    const mean = Object.assign(Object.create(Matrix.prototype), first);
    mean.values = Float32Array.from(first.all(), (_, index) =>
      matrices.reduce((sum, each) => sum + each.all()[index], 0) / matrices.length,
    );
    return mean;
  }

  /** The number in a row and a column. */
  at(row, column) {
    this.values ??= unpack(this.data);
    return this.values[row * this.columns + column];
  }

  /** All numbers of a row. */
  row(row) {
    this.values ??= unpack(this.data);
    return this.values.subarray(row * this.columns, (row + 1) * this.columns);
  }

  /** The column of the finite number of a row that is farthest from 0. */
  farthest(row) {
    const sizes = [...this.row(row)].map((value) => (Number.isFinite(value) ? Math.abs(value) : -1));
    return sizes.indexOf(Math.max(...sizes));
  }

  /** All numbers, row after row. */
  all() {
    this.values ??= unpack(this.data);
    return this.values;
  }

  get isCut() {
    return this.rows < this.wholeRows || this.columns < this.wholeColumns;
  }

  /** How large it is, in words. */
  get shape() {
    return `${axisSize(this.wholeRows, this.rowAxis)} × ${axisSize(this.wholeColumns, this.columnAxis)}`;
  }

  rowName(row) {
    return place(this.rowAxis, this.rowWords, row);
  }

  columnName(column) {
    return place(this.columnAxis, this.columnWords, column);
  }
}

/** Matrices by name; those that equal another share its numbers. */
export function openMatrices(report) {
  const opened = new Map();
  return (name) => {
    if (name === null || !(name in report.matrices)) return null;
    if (!opened.has(name)) {
      const entry = report.matrices[name];
      const data = entry.same_as ? report.matrices[entry.same_as].data : entry.data;
      opened.set(name, new Matrix(name, entry, report.words, data));
    }
    return opened.get(name);
  };
}

const AXES = {
  source: "source token",
  reads: "decoder input token",
  says: "target token",
  steps: "target position",
  candidates: "word",
  ends: "total",
  "head and feature": "feature of all heads",
};

/** What an axis counts: its words, or numbered features. */
export function axisNoun(axis) {
  return AXES[axis] ?? axis;
}

function axisSize(size, axis) {
  const noun = axisNoun(axis);
  if (noun === "learned" || noun.startsWith("log")) return `${size}`;
  return `${size.toLocaleString("en-US")} ${size === 1 ? noun : plural(noun)}`;
}

/** `features of all heads`, `target tokens`, `key features`. */
export function plural(noun) {
  return noun.replace(/^feature(?= )/, "features").replace(/^((?!features).*)$/, "$1s").replace(/([^aeiou])ys$/, "$1ies");
}

function place(axis, words, index) {
  const noun = axisNoun(axis);
  return words === null ? `${noun} ${index}` : `${noun} ${index} “${words[index]}”`;
}

/** Numbers as `pack_numbers` of matrices.py wrote them. */
export function unpack(text) {
  const bytes = atob(text);
  const bits = new Uint32Array(bytes.length / 3);
  for (let index = 0; index < bits.length; index += 1) {
    const start = 3 * index;
    bits[index] =
      (bytes.charCodeAt(start) << 8) |
      (bytes.charCodeAt(start + 1) << 16) |
      (bytes.charCodeAt(start + 2) << 24);
  }
  return new Float32Array(bits.buffer);
}
