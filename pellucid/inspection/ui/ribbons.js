// Attention as ribbons, from each word attended to, on the left, to the word that attends, on the right; and the
// states of recurrent layers as chains.

const FAINT = 0.02;
const LEVELS = 24;

/**
 * Draw the weights of `matrix` in a box of `width` by `height` pixels. Options: `color` (three
 * numbers), `line` (a CSS color), `row` (the row to stress, or null), `labels` (words of the left side),
 * `ink` (their color), `keeps` (whether rows on both sides are the same words).
 */
export function drawRibbons(context, width, height, matrix, options) {
  const { rows, columns } = matrix;
  const labelled = options.labels && width > 64;
  const left = labelled ? Math.min(70, width * 0.42) : 1;
  const yQuery = (row) => ((row + 0.5) * height) / rows;
  const yKey = (column) => ((column + 0.5) * height) / columns;
  if (options.keeps) drawStreams(context, rows, yQuery, left, width, options.line);

  const thickest = Math.min(9, Math.max(2, (0.5 * height) / Math.max(rows, columns)));
  const middle = left + (width - left) / 2;
  context.lineCap = "round";
  for (const [isStressed, part] of [[false, 0.08], [true, 1.6]]) {
    const isWhole = options.row === null || options.row === undefined;
    if (isWhole && isStressed) continue;
    const levels = bucketed(matrix, (row) => isWhole || (row === options.row) === isStressed);
    for (const [level, ends] of levels.entries()) {
      if (ends.length === 0) continue;
      const weight = (level + 0.5) / LEVELS;
      const alpha = Math.min(1, (isWhole ? 1 : part) * (0.06 + 0.8 * weight));
      context.strokeStyle = `rgba(${options.color.join(", ")}, ${alpha})`;
      context.lineWidth = Math.max(0.6, weight * thickest);
      context.beginPath();
      for (const [row, column] of ends) {
        context.moveTo(left, yKey(column));
        context.bezierCurveTo(middle, yKey(column), middle, yQuery(row), width, yQuery(row));
      }
      context.stroke();
    }
  }
  if (labelled) drawLabels(context, options, columns, yKey, left, height);
}

/** The (row, column) pairs of each level of weight: one stroke draws a level, as there may be thousands of ribbons. */
function bucketed(matrix, isWanted) {
  const levels = Array.from({ length: LEVELS }, () => []);
  const values = matrix.all();
  for (let row = 0; row < matrix.rows; row += 1) {
    if (!isWanted(row)) continue;
    for (let column = 0; column < matrix.columns; column += 1) {
      const weight = values[row * matrix.columns + column];
      if (weight > FAINT) levels[Math.min(LEVELS - 1, Math.floor(weight * LEVELS))].push([row, column]);
    }
  }
  return levels;
}

/** What a row keeps of itself past the sublayer: the residual connection. */
function drawStreams(context, rows, y, left, right, line) {
  context.strokeStyle = line;
  context.lineWidth = 1;
  for (let row = 0; row < rows; row += 1) {
    context.beginPath();
    context.moveTo(left, y(row));
    context.lineTo(right, y(row));
    context.stroke();
  }
}

function drawLabels(context, { labels, ink, font }, columns, y, left, height) {
  const size = Math.min(10, Math.max(7, (0.8 * height) / columns));
  context.font = `${size}px ${font}`;
  context.fillStyle = ink;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let column = 0; column < columns; column += 1) {
    context.fillText(shortened(context, labels[column] ?? "", left - 6), left - 4, y(column));
  }
}

function shortened(context, word, width) {
  let text = word;
  while (text.length > 1 && context.measureText(text).width > width) text = text.slice(0, -1);
  return text.length < word.length ? `${text.slice(0, -1)}…` : text;
}

/**
 * Draw the states of a recurrent layer: each row hands its state to the next, and with `isBothWays` a second lane
 * hands it to the row before.
 */
export function drawChain(context, width, height, rows, { isBothWays, color, line, row: stressed }) {
  const y = (row) => ((row + 0.5) * height) / rows;
  drawStreams(context, rows, y, 0, width, line);
  const [red, green, blue] = color;
  const lanes = isBothWays ? [[0.3, 1], [0.7, -1]] : [[0.5, 1]];
  for (const [share, step] of lanes) {
    const x = share * width;
    for (let row = 0; row < rows; row += 1) {
      const to = row + step;
      const isFaint = stressed !== null && stressed !== undefined && to !== stressed && row !== stressed;
      context.strokeStyle = context.fillStyle = `rgba(${red}, ${green}, ${blue}, ${isFaint ? 0.25 : 0.85})`;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y(row), Math.min(4, height / rows / 4), 0, 2 * Math.PI);
      context.fill();
      if (to < 0 || to >= rows) continue;
      const tip = y(to) - 5 * step;
      context.beginPath();
      context.moveTo(x, y(row));
      context.lineTo(x, tip);
      context.moveTo(x - 3, tip - 4 * step);
      context.lineTo(x, tip);
      context.lineTo(x + 3, tip - 4 * step);
      context.stroke();
    }
  }
}
