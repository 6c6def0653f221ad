// The towers of a model as one picture: words on the left, a column for each sublayer, words on the right.
// A row is a word all the way through. A column opens in place and shows the matrices inside it.

import { onSchemeChange } from "./colors.js";
import { formula, make, moved, percent } from "./dom.js";
import { glow, makePixels, paintPixels } from "./paint.js";
import { isOfSource, isSquare, ofHead } from "./plan.js";
import { drawChain, drawRibbons } from "./ribbons.js";
import { Matrix } from "./matrices.js";
import { isResting } from "./pointer.js";
import { makeSheet } from "./sheet.js";

const STRIP = 28;
const HIDDEN = 48;
const ROUND = 6;
const WIDE = 64;
const ROW_HEIGHT = { least: 13, most: 26, all: 300 };
const RIBBON_COLORS = { "self-attention": "--self", "cross-attention": "--cross" };

/**
 * The picture of one tower. `acts` has what the parts of the picture do: `open(name)`, `point(side, row)`,
 * `pick(row)`, `word(side, row)`. Returns its element, the slot below it, and functions to paint and arrange it.
 */
export function makeTower(tower, acts) {
  const words = make("div", { class: "words" });
  const band = make("div", { class: "row-band", "aria-hidden": "true" });
  const flow = make("div", { class: "flow" }, wordColumn(tower, words));
  const columns = [];
  const sheet = makeSheet(flow, () => columns.flatMap((column) => column.pictures()));
  const view = { state: null, row: null, off: new Set(), redraw: sheet.soon };
  const blocks = tower.blocks.map((block) => makeBlock(block, columns, view, acts));
  flow.append(...blocks.map(({ element }) => element), sheet.element, band);
  sheet.follow(columns.map(({ element }) => element));
  const slot = make("div", { class: "card-slot" });
  const about = make("p", { class: "side-name" }, make("b", {}, tower.title), make("span", {}, ` ${tower.about}`));
  const element = make(
    "section",
    { class: `tower ${tower.side}`, "aria-label": tower.title, "data-side": tower.side },
    about,
    flow,
    slot,
  );
  rove(words, ".word");
  rove(flow, ".block-name button, .column > .name");

  const place = () => {
    const rows = rowCount(tower, view.state);
    const height = Math.max(ROW_HEIGHT.least, Math.min(ROW_HEIGHT.most, ROW_HEIGHT.all / Math.max(1, rows)));
    element.style.setProperty("--row", `${height}px`);
    element.style.setProperty("--rows", rows);
  };
  const paint = (state, before) => {
    const isFirst = view.state === null;
    view.state = state;
    place();
    fillWords(tower, words, state, acts);
    for (const column of columns) column.paint(state, isFirst ? null : before);
    point(view.row);
  };
  const point = (row) => {
    view.row = row;
    const isRow = row !== null && row < rowCount(tower, view.state);
    band.classList.toggle("on", isRow);
    if (isRow) element.style.setProperty("--at", row);
    for (const column of columns) column.redraw();
  };
  onSchemeChange(() => view.state && columns.forEach((column) => column.paint(view.state, null)));
  listenToRows(flow, tower, view, acts);

  return {
    tower,
    element,
    slot,
    columns,
    paint,
    point,
    /** Which column is open, for which head, and at which step. */
    arrange(opened) {
      for (const block of blocks) block.arrange(opened);
      for (const column of columns) column.arrange(opened);
      element.classList.toggle("is-open", opened?.tower === tower && Boolean(opened.column?.parts.length));
    },
    /** Which parts are switched off, and which are stressed. */
    mark(off, stressed) {
      view.off = off;
      for (const block of blocks) block.mark(off, stressed);
      for (const column of columns) column.mark(off, stressed);
    },
    /** How strongly each word of this tower is attended to; null ends it. */
    tint(shares) {
      for (const [row, word] of [...words.children].entries()) {
        word.style.setProperty("--share", shares?.[row] ?? 0);
      }
    },
  };
}

function rowCount(tower, state) {
  if (!state) return 1;
  return (tower.side === "encoder" ? state.words.source : state.words.says).length || 1;
}

function wordColumn(tower, words) {
  const label = tower.side === "encoder" ? "source" : "so far";
  return make(
    "div",
    { class: "word-column" },
    make("div", { class: "block-name" }, ""),
    make("p", { class: "name plain" }, label),
    words,
  );
}

function fillWords(tower, words, state, acts) {
  const labels = tower.side === "encoder" ? state.words.source : state.words.reads;
  const told = labels.join("\n");
  if (words.dataset.words === told) return;
  words.dataset.words = told;
  words.replaceChildren(
    ...labels.map((label, row) => {
      const word = make("button", { type: "button", class: "word", tabindex: row ? -1 : 0 }, make("bdi", {}, label));
      word.addEventListener("click", () => acts.word(tower.side, row));
      word.addEventListener("focus", () => acts.point(tower.side, row));
      return word;
    }),
  );
}

function makeBlock(block, columns, view, acts) {
  const button = make("button", { type: "button", "data-part": block.name }, block.title);
  button.addEventListener("click", () => acts.open(block.name));
  const own = block.columns.map((column) =>
    column.kind === "output" ? makeOutput(column, acts) : makeColumn(column, view, acts),
  );
  columns.push(...own);
  const element = make(
    "div",
    { class: "block", "data-block": block.name },
    make("div", { class: "block-name" }, /layers\.\d+$/.test(block.name) ? button : block.title),
    make("div", { class: "columns" }, ...own.map((each) => each.element)),
  );
  const weight = block.columns.reduce((sum, column) => sum + column.weight, 0);
  element.style.flexGrow = weight;
  return {
    element,
    arrange(opened) {
      const isHere = opened?.block === block;
      const isWhole = isHere && opened.column === null;
      element.classList.toggle("is-open", isWhole);
      const growth = !isHere ? 1 : isWhole ? 3 : 1;
      element.style.flexGrow = growth * weight + (isHere && opened.column ? OPENED : 0);
    },
    mark(off, stressed) {
      element.classList.toggle("off", off.has(block.name));
      element.classList.toggle("stressed", stressed?.has(block.name) ?? false);
    },
  };
}

const OPENED = 34;

function makeColumn(column, view, acts) {
  const body = make("div", { class: "column-body" });
  const heads = make("div", { class: "head-row" });
  const name = make("button", { type: "button", class: "name", "data-part": column.name, title: column.page.title }, column.title);
  name.setAttribute("aria-label", `${column.page.title}: open`);
  name.addEventListener("click", () => acts.open(column.name));
  const element = make("div", { class: `column ${column.kind}`, "data-column": column.name }, name, body, heads);
  element.style.flexGrow = column.weight;

  const self = { column, element, shown: [], opened: false, head: null, hovered: null, step: null, isOff: false, isDim: false };
  const build = () => {
    self.shown = self.opened ? openParts(column, view, self, acts) : closedParts(column, view, self, acts);
    body.replaceChildren(...self.shown.map((part) => part.element));
    view.redraw();
  };
  build();
  self.thumbs = makeThumbs(column, heads, view, self, acts);

  self.pictures = () => [...self.shown.map(({ picture }) => picture), ...self.thumbs.pictures()];

  self.paint = (state, before) => {
    self.thumbs.paint(state, before);
    for (const part of self.shown) part.paint(state, before);
  };
  /** Draw the ribbons again, or all pictures. */
  self.redraw = (isWhole = false) => {
    for (const picture of self.pictures()) if (isWhole || picture.followsRow) picture.isDirty = true;
    view.redraw();
  };
  self.arrange = (opened) => {
    const isOpen = opened?.column === column;
    self.head = isOpen ? opened.head : null;
    self.step = isOpen ? opened.step : null;
    element.style.flexGrow = isOpen ? column.weight + OPENED : column.weight;
    element.classList.toggle("is-open", isOpen);
    name.setAttribute("aria-expanded", String(isOpen));
    self.thumbs.press(self.head);
    if (isOpen || self.opened) {
      self.opened = isOpen;
      build();
      if (view.state) for (const part of self.shown) part.paint(view.state, null);
    }
  };
  self.mark = (off, stressed) => {
    const isOff = off.has(column.name) || off.has(blockOf(column.name));
    element.classList.toggle("off", isOff);
    element.classList.toggle("stressed", stressed?.has(column.name) ?? false);
    self.isOff = isOff;
    self.isDim = stressed !== null && ![...stressed].some((each) => isWithin(column, each));
    name.setAttribute("aria-label", `${column.page.title}${isOff ? ", switched off" : ""}: open`);
    self.thumbs.mark(off, stressed);
    self.redraw(true);
  };
  return self;
}

const blockOf = (name) => /^.*layers\.\d+/.exec(name)?.[0] ?? name;

/** Whether a stressed part is this column, a head of it, or the block that it stands in. */
const isWithin = (column, stressed) =>
  stressed === column.name || stressed === blockOf(column.name) || stressed.startsWith(`${column.name}.heads.`);

const PALE = { off: 0.13, dim: 0.28 }; // as in explorer.css

/** How strongly a picture in a column is drawn; what is switched off is hardly seen. */
const strengthIn = (self, isOff) => (isOff ? PALE.off : 1) * (self.isDim ? PALE.dim : 1);

/** A matrix in a frame, one pixel a number. */
function makeFrame(matrixName, most, view, self, { className = "", isOff = () => false } = {}) {
  const isSparse = /\.hidden$/.test(matrixName);
  const element = make("div", { class: `frame ${className}` });
  const redraw = () => {
    picture.isDirty = true;
    view.redraw();
  };
  const pixels = makePixels(redraw);
  const radius = className === "hidden-units" ? ROUND : 2; // as in explorer.css
  const picture = { element, draw: pixels.draw, strength: () => strengthIn(self, isOff()), isDirty: true, radius };
  return {
    element,
    picture,
    paint(state, before) {
      const matrix = state.matrix(matrixName);
      element.classList.toggle("missing", !matrix);
      if (!matrix) return;
      const hasChanged = paintPixels(pixels, matrix, { most, isSparse, before: before?.matrix(matrixName) });
      element.classList.toggle("changed", hasChanged);
      redraw();
    },
  };
}

function closedParts(column, view, self, acts) {
  const frames = [];
  const frame = (name, most, className) =>
    makeFrame(name, most, view, self, { className, isOff: () => self.isOff && className === "hidden-units" });
  const stream = () => frame(ofHead(column.stream, 0), STRIP, "stream");
  switch (column.kind) {
    case "self-attention":
    case "cross-attention":
      frames.push(makeRibbons(column, view, self), stream());
      break;
    case "feed-forward": {
      const hidden = column.parts.find(({ matrix }) => matrix.endsWith(".hidden"));
      if (hidden) frames.push(frame(hidden.matrix, HIDDEN, "hidden-units"));
      frames.push(stream());
      break;
    }
    case "embedding":
      for (const { matrix } of column.parts) {
        if (!matrix.endsWith(".lookup") || column.parts.length < 2) frames.push(frame(matrix, STRIP));
      }
      break;
    case "ssru": {
      const cell = column.parts.find(({ matrix }) => matrix.endsWith(".cell"));
      frames.push(makeChain(column, view, self), frame(cell.matrix, HIDDEN), stream());
      break;
    }
    case "recurrent":
      frames.push(makeChain(column, view, self), frame(column.stream, HIDDEN));
      break;
    default:
      for (const { matrix } of column.parts.slice(-3)) frames.push(frame(ofHead(matrix, 0), STRIP));
  }
  for (const { element } of frames) element.addEventListener("click", () => acts.open(column.name));
  return frames;
}

/** A drawing that follows the row that is pointed at: `draw(context, width, height, style)` in the box of `element`. */
function makeDrawing(element, view, self, draw) {
  const picture = { element, draw, strength: () => strengthIn(self, self.isOff), isDirty: true, followsRow: true };
  return {
    element,
    picture,
    redraw() {
      picture.isDirty = true;
      view.redraw();
    },
  };
}

/** The weights of all heads together, or of the one that is pointed at. */
function makeRibbons(column, view, self) {
  const weights = column.parts.find(({ matrix }) => matrix.endsWith(".weights"))?.matrix;
  const count = Math.max(1, column.page.head_count);
  let shown = null;
  const element = make("div", { class: "ribbon-frame" });
  const drawing = makeDrawing(element, view, self, (context, width, height, style) => {
    const matrix = self.hovered === null ? shown?.mean : shown?.heads[self.hovered];
    if (!matrix) return;
    drawRibbons(context, width, height, matrix, {
      color: style.getPropertyValue(RIBBON_COLORS[column.kind]).split(" ").map(Number),
      line: style.getPropertyValue("--line"),
      ink: style.getPropertyValue("--soft"),
      font: style.fontFamily,
      row: view.row,
      labels: column.kind === "cross-attention" ? matrix.columnWords : null,
      keeps: column.kind === "self-attention",
    });
  });
  return {
    ...drawing,
    paint(state) {
      const isOn = (head) => !view.off.has(`${column.name}.heads.${head}`);
      const heads = Array.from({ length: count }, (_, head) => state.matrix(ofHead(weights, head)));
      const on = heads.filter((matrix, head) => matrix && isOn(head));
      shown = { heads, mean: on.length > 0 ? Matrix.meanOf(on) : null };
      drawing.redraw();
    },
  };
}

const BOTH_WAYS = 134; // the equation of an encoder that reads in both directions

/** The states of a recurrent layer: each is made of the word and of the state before it. */
function makeChain(column, view, self) {
  const hidden = column.stream;
  const isBothWays = column.page.steps[0].equations.includes(BOTH_WAYS);
  let shown = null;
  const element = make("div", { class: "ribbon-frame chain" });
  const drawing = makeDrawing(element, view, self, (context, width, height, style) => {
    if (!shown) return;
    drawChain(context, width, height, shown.rows, {
      isBothWays,
      color: style.getPropertyValue("--self").split(" ").map(Number),
      line: style.getPropertyValue("--line"),
      row: view.row,
    });
  });
  return {
    ...drawing,
    paint(state) {
      shown = state.matrix(hidden);
      drawing.redraw();
    },
  };
}

/** What is inside an open column: every matrix, its rows beside the words that they belong to. */
function openParts(column, view, self, acts) {
  return column.parts.map((part) => {
    const head = self.head ?? 0;
    const name = ofHead(part.matrix, head);
    const square = isSquare(part);
    const frame = makeFrame(name, square ? Infinity : WIDE, view, self);
    const letter = part.step.symbols.at(-1).letter;
    const isChosen = part.step.name === self.step;
    const button = make(
      "button",
      {
        type: "button",
        class: `part${square ? " square" : ""}${isOfSource(column, part) ? " of-source" : ""}`,
        "aria-pressed": String(isChosen),
        "data-part": name,
        "aria-label": part.step.title,
        title: part.step.title,
      },
      make("span", { class: "part-letter", "aria-hidden": "true" }, formula(letter, head)),
      frame.element,
    );
    let matrix = null;
    button.addEventListener("click", (event) => {
      acts.open(name, { from: column.name, head, step: part.step.name, ...cellUnder(event, frame.element, matrix) });
    });
    return {
      element: button,
      picture: frame.picture,
      paint(state, before) {
        frame.paint(state, before);
        matrix = state.matrix(name);
        button.style.flexGrow = square && matrix ? Math.max(5, Math.min(16, matrix.columns)) : 2;
      },
    };
  });
}

/** The number of a matrix that a click in its picture fell on; nothing for a click by the keyboard. */
function cellUnder(event, picture, matrix) {
  if (!matrix || event.detail === 0) return {};
  const box = picture.getBoundingClientRect();
  const part = (at, from, size, count) => Math.min(count - 1, Math.max(0, Math.floor(((at - from) / size) * count)));
  return {
    row: part(event.clientY, box.top, box.height, matrix.rows),
    column: part(event.clientX, box.left, box.width, matrix.columns),
  };
}

/** A small picture of each head's weights; pointing at one shows its ribbons. */
function makeThumbs(column, holder, view, self, acts) {
  const count = column.page.head_count;
  const weights = column.parts.find(({ matrix }) => matrix.endsWith(".weights"))?.matrix;
  if (count < 1 || !weights) return { pictures: () => [], paint() {}, press() {}, mark() {} };
  holder.setAttribute("role", "group");
  holder.setAttribute("aria-label", `Heads of ${column.page.title}`);
  const thumbs = Array.from({ length: count }, (_, head) => {
    const name = `${column.name}.heads.${head}`;
    const isOff = () => self.isOff || view.off.has(name);
    const frame = makeFrame(ofHead(weights, head), 32, view, self, { isOff });
    const label = `${column.page.title}, head ${head}`;
    const button = make(
      "button",
      { type: "button", class: "thumb", "aria-pressed": "false", "aria-label": label, title: `Head ${head}`, "data-part": name, tabindex: head ? -1 : 0 },
      frame.element,
    );
    button.addEventListener("click", () => acts.open(name));
    const point = (value) => {
      self.hovered = value;
      self.redraw();
    };
    button.addEventListener("pointerenter", () => point(head));
    button.addEventListener("pointerleave", () => point(null));
    button.addEventListener("focus", () => point(head));
    button.addEventListener("blur", () => point(null));
    holder.append(button);
    return { frame, button, name, label };
  });
  rove(holder, ".thumb");
  return {
    pictures: () => thumbs.map(({ frame }) => frame.picture),
    paint(state, before) {
      for (const { frame } of thumbs) frame.paint(state, before);
    },
    press(chosen) {
      for (const [head, { button }] of thumbs.entries()) button.setAttribute("aria-pressed", String(head === chosen));
    },
    mark(off, stressed) {
      for (const { button, name, label } of thumbs) {
        const isOff = off.has(name) || off.has(column.name) || off.has(blockOf(column.name));
        button.classList.toggle("off", isOff);
        button.classList.toggle("stressed", stressed?.has(name) ?? false);
        button.setAttribute("aria-label", isOff ? `${label}, switched off` : label);
      }
    },
  };
}

/** The right end: the token of each position and its probability. */
function makeOutput(column, acts) {
  const body = make("div", { class: "column-body said-words" });
  const name = make("button", { type: "button", class: "name", "data-part": "output", "aria-label": "Output: logits and words: open" }, column.title);
  name.addEventListener("click", () => acts.open("output"));
  const element = make("div", { class: "column output", "data-column": column.name }, name, body);
  element.style.flexGrow = column.weight;
  rove(body, ".said-word");
  let picked = null;
  const press = () => {
    [...body.children].forEach((row, index) => row.setAttribute("aria-pressed", String(index === picked)));
  };
  return {
    column,
    element,
    pictures: () => [],
    paint(state, before) {
      const { words, sentence, predictions } = state;
      body.replaceChildren(
        ...words.says.map((word, row) => {
          const share = sentence.confidences[row];
          const best = predictions[row]?.[0];
          const isBest = !best || best[2] === sentence.said_ids[row];
          const isNew = before && before.words.says[row] !== word;
          const button = make(
            "button",
            {
              type: "button",
              class: `said-word${isNew ? " new" : ""}`,
              tabindex: row ? -1 : 0,
              "aria-label": `${word}, ${percent(share)}${isBest ? "" : `; likelier: ${best[0]}, ${percent(best[1])}`}. Why this word?`,
            },
            make("i", { class: "share", "aria-hidden": "true" }),
            make("bdi", {}, word),
            isBest ? null : make("s", { class: "rival" }, best[0]),
            make("span", { class: "chance" }, percent(share)),
          );
          button.style.setProperty("--share", share);
          if (isNew) glow(button, (strength) => button.style.setProperty("--lit", strength));
          button.addEventListener("click", () => acts.pick(row));
          button.addEventListener("focus", () => acts.point("decoder", row));
          return button;
        }),
      );
      press();
    },
    redraw() {},
    arrange(opened) {
      element.classList.toggle("is-open", opened?.column === column);
    },
    mark(off, stressed) {
      element.classList.toggle("stressed", stressed?.has("output") ?? false);
    },
    press(position) {
      picked = position;
      press();
    },
  };
}

/** Pointing anywhere at a row points at its word, through the whole tower. */
function listenToRows(flow, tower, view, acts) {
  const rowAt = (event) => {
    const body = flow.querySelector(".words").getBoundingClientRect();
    const row = Math.floor((event.clientY - body.top) / (body.height / rowCount(tower, view.state)));
    return event.clientY >= body.top && row >= 0 && row < rowCount(tower, view.state) ? row : null;
  };
  flow.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || isResting(event)) return;
    const row = rowAt(event);
    if (row !== view.row) acts.point(tower.side, row);
  });
  flow.addEventListener("pointerleave", () => acts.point(tower.side, null));
}

/** One tab stop for many buttons; arrow keys, Home and End go from one to the next. */
export function rove(holder, selector) {
  const all = () => [...holder.querySelectorAll(selector)];
  const settle = (here) => {
    for (const each of all()) each.tabIndex = each === here ? 0 : -1;
  };
  settle(all()[0]);
  holder.addEventListener("focusin", (event) => {
    const here = event.target.closest?.(selector);
    if (here) settle(here);
  });
  holder.addEventListener("keydown", (event) => {
    const buttons = all();
    const index = buttons.indexOf(event.target.closest?.(selector));
    if (index < 0) return;
    const to = moved(event, index, buttons.length);
    if (to < 0) return;
    event.preventDefault();
    event.stopPropagation(); // arrow keys turn the pages of a report
    buttons[to].focus();
  });
}
