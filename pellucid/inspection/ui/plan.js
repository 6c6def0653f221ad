// Which towers a model has, which blocks they are made of, and where a name of a capture stands in them.

/**
 * The towers for the pages of a walk: `{ side, title, about, blocks }`; a block is `{ name, title, columns }`,
 * and a column one page: `{ name, kind, title, page, parts, stream, weight }`. `parts` are the steps that
 * leave a matrix, `stream` the name of what the column hands on.
 */
export function towersOf(pages) {
  const towers = [];
  const hasDecoder = pages.some((page) => page.name.startsWith("decoder"));
  for (const page of pages) {
    const side = page.name.startsWith("encoder") || !hasDecoder ? "encoder" : "decoder";
    let tower = towers.find((each) => each.side === side);
    if (!tower) {
      tower = { side, ...SIDES[side], blocks: [] };
      towers.push(tower);
    }
    const name = /^(en|de)coder\.layers\.\d+/.exec(page.name)?.[0] ?? page.name;
    let block = tower.blocks.find((each) => each.name === name);
    if (!block) {
      block = { name, title: blockTitle(page, name), columns: [] };
      tower.blocks.push(block);
    }
    block.columns.push(columnOf(page));
  }
  if (!hasDecoder) towers[0].blocks.at(-1).columns.at(-1).title = "Word here";
  if (towers.length === 1) towers[0].about = hasDecoder ? "from the words to the next word" : "from the words to a word at each place";
  return towers;
}

const SIDES = {
  encoder: { title: "Encoder", about: "reads the source" },
  decoder: { title: "Decoder", about: "writes the translation, word by word" },
};

/** Each kind of page: the title of its column where the page has none, and the share of the width that it takes. */
const KINDS_OF_COLUMN = {
  embedding: { title: "Embedding", weight: 2.2 },
  "self-attention": { weight: 4 },
  "cross-attention": { weight: 4 },
  "feed-forward": { weight: 2.4 },
  ssru: { weight: 4 },
  norm: { title: "Norm", weight: 1 },
  recurrent: { title: "States", weight: 3 },
  described: { title: "Inside", weight: 4 },
  output: { title: "Next word", weight: 4.5 },
};

function columnOf(page) {
  const { title, weight } = KINDS_OF_COLUMN[page.kind];
  const parts = page.steps
    .map((step) => ({ step, matrix: step.symbols.at(-1)?.matrix ?? null }))
    .filter(({ matrix }) => matrix !== null);
  const stream = parts.at(-1)?.matrix ?? null;
  return { name: page.name, kind: page.kind, title: page.heading || title, weight, page, parts, stream };
}

function blockTitle(page, name) {
  const layer = /layers\.(\d+)$/.exec(name);
  if (layer) return `Layer ${layer[1]}`;
  return page.kind === "embedding" ? "Words to vectors" : "";
}

/** The steps of a matrix of weights or scores have a row and a column for words. */
export const isSquare = (part) => /\.(masked_scores|scores|weights)$/.test(part.matrix);

/** Keys and values of cross-attention have a row for each word of the source. */
export const isOfSource = (column, part) =>
  column.kind === "cross-attention" && /\.(key|value)$/.test(part.matrix);

/** The name of a part's matrix for a head. */
export const ofHead = (name, head) => name?.replaceAll("{head}", String(head)) ?? null;

/**
 * Where a name stands: `{ tower, block, column, head, step }`; what the name leaves open is null. Names are
 * those of a capture, of heads, of sublayers, of blocks, and the two sides.
 */
export function find(towers, name) {
  const columns = towers.flatMap((tower) =>
    tower.blocks.flatMap((block) => block.columns.map((column) => ({ tower, block, column }))),
  );
  const heads = /\.heads\.(\d+)(?=\.|$)/.exec(name);
  const head = heads ? Number(heads[1]) : null;
  for (const place of columns) {
    const part = place.column.parts.find(({ matrix }) => ofHead(matrix, head ?? 0) === name);
    if (part) return { ...place, head, step: part.step.name };
  }
  const [stem, step] = name.split("/");
  const bare = stem.replace(/\.heads\.\d+.*$/, "");
  const found = columns.find(({ column }) => column.name === bare);
  if (found) {
    const isStep = found.column.page.steps.some((each) => each.name === step);
    return { ...found, head, step: isStep ? step : null };
  }
  const within = columns.find(({ block }) => block.name === stem);
  if (within) return { ...within, column: null, head: null, step: null };
  const tower = towers.find(({ side }) => side === stem);
  if (tower) return { tower, block: null, column: null, head: null, step: null };
  // `encoder.layers.0.output` and the like: the last thing that its block computes
  const owner = columns.filter(({ block }) => stem.startsWith(`${block.name}.`)).at(-1);
  if (owner) return { ...owner, head, step: owner.column.parts.at(-1)?.step.name ?? null };
  if (/^(logits|probabilities|lookup)/.test(stem)) return find(towers, "output");
  return null;
}
