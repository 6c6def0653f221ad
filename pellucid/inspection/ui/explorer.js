// The whole model on one screen: both towers from words to words, opening in place down to one number.
//
// `mountExplorer(element, provider)` fills an element and returns the explorer. A provider is
// `{ plan, state, live }`: `plan.pages` are the pages of a walk, `state` one sentence inside the model
// (`{ sentence, words, predictions, matrix(name), config }`), and `live` is null or has
// `compute({ source, target, edits, search })`, which promises the next state.

import { makeBus } from "./bus.js";
import { makeCard } from "./card.js";
import { make } from "./dom.js";
import { experimentBar, NO_EDITS } from "./experiments.js";
import { holdView } from "./hold.js";
import { find, ofHead, towersOf } from "./plan.js";
import { makeTower } from "./towers.js";

const RESTING_HINT = "Point at a word to see what it attends to. Click a layer, a sublayer or a head to open it.";
const PANELS = ["tour", "film", "why"];

/**
 * Mount the explorer in `element`. Options: `onSource(text)` is told when something else than the host's
 * field changes the source; `onWord(text, row)` when a word of the source is clicked.
 */
export function mountExplorer(element, provider, options = {}) {
  const listeners = { state: new Set(), open: new Set(), edits: new Set(), pick: new Set() };
  const tell = (event, detail) => listeners[event].forEach((listener) => listener(detail));
  const now = {
    state: provider.state,
    untouched: provider.state,
    own: provider.state,
    place: null,
    name: null,
    picked: null,
    stressed: null,
    edits: NO_EDITS,
    search: {},
    source: provider.state?.sentence.source ?? "",
    target: null,
    translation: null,
    isCutting: false,
    turn: 0,
    opening: 0,
  };
  let card = null;

  const towers = towersOf(provider.plan.pages).map((tower) => makeTower(tower, actsOf()));
  const speaker = towers.at(-1).tower.side; // the tower that says the words
  const panels = new Map(PANELS.map((id) => [id, make("div", { class: `panel panel-${id}` })]));
  const bus = makeBus();
  const summary = make("p", { class: "attends", role: "status" });
  const bar = provider.live ? experimentBar(provider.plan.config, provider.live.search) : null;

  const explorer = {
    provider,
    isLive: Boolean(provider.live),
    ready: Promise.resolve(),
    get state() { return now.state; },
    get untouched() { return now.untouched; },
    get opened() { return now.name; },
    get picked() { return now.picked; },
    get edits() { return now.edits; },
    get search() { return now.search; },
    get towers() { return towers.map(({ tower }) => tower); },

    /** Open a part by its name; `detail` may name a `row` and a `column` of its matrix. */
    async open(name, detail = {}) {
      const place = find(explorer.towers, detail.from ?? name);
      if (!place) return false;
      if (detail.from) Object.assign(place, { head: detail.head ?? null, step: detail.step ?? null });
      const opened = withStep(place);
      // Of parts whose matrices arrive late only the last that was asked for is shown.
      const turn = (now.opening += 1);
      await prepare(opened);
      if (turn !== now.opening) return false;
      now.place = opened;
      now.name = name;
      arrange();
      showCard(detail);
      tell("open", name);
      await painted();
      if (card && detail.scrolls !== false) bringIntoView(card.element);
      return true;
    },
    /** Back to the whole model. */
    close() {
      const column = now.place?.column;
      now.opening += 1;
      now.place = null;
      now.name = null;
      arrange();
      showCard();
      tell("open", null);
      if (column) element.querySelector(`.column[data-column="${column.name}"] > .name`)?.focus();
    },
    /** Stress parts, which dims everything else; null or an empty list ends it. */
    highlight(names, { rows = null } = {}) {
      now.stressed = names?.length ? new Set(names) : null;
      element.classList.toggle("has-stress", now.stressed !== null);
      for (const tower of towers) {
        tower.mark(new Set(now.edits.off), now.stressed);
        if (rows) tower.point(rows[0] ?? null);
      }
    },
    /** Choose a word of the output by its position; null ends it. */
    pick(position) {
      const isWord = position !== null && position < (now.state?.words.says.length ?? 0);
      now.picked = isWord ? position : null;
      for (const tower of towers) for (const column of tower.columns) column.press?.(now.picked);
      point(speaker, now.picked);
      tell("pick", now.picked);
    },
    /** Translate another text; `translation` is the model's own, `{ ids, text }`, if someone has it already. */
    setSource(text, translation = null) {
      if (text !== now.source) options.onSource?.(text);
      now.source = text;
      now.target = null;
      now.translation = translation;
      return compute();
    },
    /** Read with this translation; null takes the model's own. */
    setTarget(text) {
      now.target = text;
      now.translation = null;
      return compute();
    },
    /** Other settings of the search, beside those that stay. */
    setSearch(search) {
      now.search = { ...now.search, ...search };
      return compute();
    },
    /** All interventions at once. */
    setEdits(edits) {
      now.edits = { ...NO_EDITS, ...edits };
      tell("edits", now.edits);
      return compute();
    },
    /** Switch a head, a sublayer or a block off, or on again. */
    switchOff(name, isOff = true) {
      const others = now.edits.off.filter((each) => each !== name);
      return explorer.setEdits({ ...now.edits, off: isOff ? [...others, name] : others });
    },
    /** Hold a row of attention weights; null lets it go. */
    hold(name, row, values) {
      const others = now.edits.rows.filter((each) => each.name !== name || each.row !== row);
      const rows = values ? [...others, { name, row, values: [...values] }] : others;
      return explorer.setEdits({ ...now.edits, rows });
    },
    /** Undo every intervention and every setting of the search. */
    reset() {
      now.search = {};
      return explorer.setEdits(NO_EDITS);
    },
    /** Paint a state that comes from elsewhere; null goes back to the explorer's own. */
    show(state) {
      paint(state ?? now.own);
    },
    /** Hear of `state`, `open`, `edits` or `pick`; returns a function that ends it. */
    on(event, listener) {
      listeners[event].add(listener);
      return () => listeners[event].delete(listener);
    },
    /** The element of a panel: `tour`, `film` or `why`; it is seen while it has children. */
    panel: (id) => panels.get(id),
    /** Clicking a part switches it off while this is on. */
    set isCutting(isOn) {
      now.isCutting = isOn;
      element.classList.toggle("is-cutting", isOn);
    },
    get isCutting() { return now.isCutting; },
  };

  function actsOf() {
    return {
      open(name, detail) {
        if (now.isCutting && !detail && isCuttable(towers, name)) {
          explorer.switchOff(name, !now.edits.off.includes(name));
        } else if (now.name === name && !detail) {
          explorer.close();
        } else {
          explorer.open(name, detail);
        }
      },
      close: () => explorer.close(),
      pick: (row) => explorer.pick(now.picked === row ? null : row),
      point,
      word(side, row) {
        if (side === "encoder" && options.onWord) options.onWord(now.state, row);
        else explorer.open(side === "encoder" ? "encoder.embedding/tokens" : "decoder.embedding/tokens");
      },
    };
  }

  /** Point at a row of a tower; the words that it attends to are tinted in the other. */
  function point(side, row) {
    const at = side === speaker ? (row ?? now.picked) : row;
    for (const tower of towers) {
      const isHere = tower.tower.side === side;
      tower.point(isHere ? at : tower.tower.side === speaker ? now.picked : null);
    }
    const shown = side === speaker ? at : now.picked;
    const shares = shown === null || shown === undefined ? null : sourceShares(shown);
    towers.find(({ tower }) => tower.side === "encoder")?.tint(shares);
    summary.textContent = shares ? attendsInWords(now.state, shown, shares) : RESTING_HINT;
  }

  /** The mean weights of the last cross-attention for a position. */
  function sourceShares(row) {
    const columns = towers.flatMap((tower) => tower.columns).map(({ column }) => column);
    const last = columns.filter(({ kind }) => kind === "cross-attention").at(-1);
    const weights = last?.parts.find(({ matrix }) => matrix.endsWith(".weights"))?.matrix;
    if (!weights || !now.state) return null;
    const rows = [];
    for (let head = 0; head < Math.max(1, last.page.head_count); head += 1) {
      const isOn = !now.edits.off.includes(`${last.name}.heads.${head}`);
      const matrix = now.state.matrix(ofHead(weights, head));
      if (isOn && matrix && row < matrix.rows) rows.push(matrix.row(row));
    }
    if (rows.length === 0) return null;
    return Array.from(rows[0], (_, index) => rows.reduce((sum, each) => sum + each[index], 0) / rows.length);
  }

  function arrange() {
    element.classList.toggle("has-open", now.place !== null);
    for (const tower of towers) tower.arrange(now.place?.block ? now.place : null);
  }

  /** Learned matrices of a step, which a live model hands out when they are asked for. */
  async function prepare({ column, step, head }) {
    const shown = column?.page.steps.find(({ name }) => name === step);
    const names = shown?.symbols.map(({ matrix }) => ofHead(matrix, head ?? 0)).filter(Boolean) ?? [];
    await provider.live?.prepare(names);
  }

  function showCard(detail = {}) {
    for (const tower of towers) tower.slot.replaceChildren();
    card = null;
    const place = now.place;
    if (!place?.column || !now.state) return;
    card = makeCard(place, now.state, actsOf(), (at, step, name) =>
      explorer.isLive && /\.heads\.\d+\.weights$/.test(name ?? "") ? holdView(explorer, name) : null,
    );
    towers.find(({ tower }) => tower === place.tower).slot.replaceChildren(card.element);
    for (const wide of card.element.querySelectorAll(".formula")) {
      if (wide.scrollWidth > wide.clientWidth) wide.setAttribute("tabindex", "0");
    }
    const cell = detail.row !== undefined ? [detail.row, detail.column ?? 0] : detail.cell ?? tellingCell();
    const matrix = card.name ? now.state.matrix(card.name) : null;
    if (card.pickCell && matrix && cell && cell[0] < matrix.rows && cell[1] < matrix.columns) card.pickCell(...cell);
    if (detail.focus) card.element.querySelector(detail.focus)?.focus();
  }

  /** The largest number in the row of the picked word, or of the first: there is something to read at once. */
  function tellingCell() {
    const matrix = card.name ? now.state.matrix(card.name) : null;
    if (!matrix) return null;
    const row = Math.min(now.picked ?? Math.min(1, matrix.rows - 1), matrix.rows - 1);
    return [row, matrix.farthest(row)];
  }

  function paint(state) {
    const before = now.state === state ? null : now.state;
    now.state = state;
    if (!state) return;
    if (now.picked !== null && now.picked >= state.words.says.length) now.picked = null;
    for (const tower of towers) {
      tower.mark(new Set(now.edits.off), now.stressed);
      tower.paint(state, before);
      for (const column of tower.columns) column.press?.(now.picked);
    }
    if (now.place?.column) {
      const active = document.activeElement;
      const isInside = card?.element.contains(active) && active.closest(".hold");
      // A row that is being dragged keeps its handles; everything else of the card is made again.
      if (!isInside) showCard({ cell: card?.cell() });
    }
    point(speaker, now.picked);
    bar?.update(explorer);
    tell("state", state);
  }

  /** Ask for the next state; of answers that come late only the last is shown. */
  async function compute() {
    if (!provider.live) return now.state;
    const turn = (now.turn += 1);
    const ask = { source: now.source, target: now.target, search: now.search };
    element.setAttribute("aria-busy", "true");
    const isTouched = isAnyEdit(now.edits);
    const given = now.translation ? { translation: now.translation } : {};
    try {
      const untouched = await provider.live.compute({ ...ask, ...given, edits: NO_EDITS, search: {} });
      const isSame = !isTouched && Object.keys(now.search).length === 0;
      const state = isSame ? untouched : await provider.live.compute({ ...ask, edits: now.edits });
      if (turn !== now.turn) return now.state;
      now.untouched = untouched;
      now.own = state;
      paint(state);
      return state;
    } finally {
      // The caller reports what failed; the last state stays, and can be worked with.
      if (turn === now.turn) element.setAttribute("aria-busy", "false");
    }
  }

  // The frame after the one in which ribbons are drawn.
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())));

  element.classList.add("explorer");
  element.classList.toggle("is-live", explorer.isLive);
  element.replaceChildren(
    panels.get("tour"),
    make("div", { class: "towers" }, ...towers.map((tower) => tower.element), bus.element),
    summary,
    ...(bar ? [bar.element] : []),
    panels.get("film"),
    panels.get("why"),
  );
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || now.place === null) return;
    event.preventDefault();
    explorer.close();
  });
  bus.follow(element.querySelector(".towers"));
  bar?.wire(explorer);
  if (now.state) paint(now.state);
  else if (provider.live && now.source) explorer.ready = compute();
  arrange();
  return explorer;
}

/** Whether a part can be switched off: a layer, a sublayer, a head, and any attention between the layers and the output. */
const isCuttable = (towers, name) =>
  /layers\.\d+(\.\w+(\.heads\.\d+)?)?$/.test(name) || find(towers.map(({ tower }) => tower), name)?.column?.kind === "cross-attention";

function isAnyEdit(edits) {
  return edits.off.length > 0 || edits.rows.length > 0 || edits.mask === false || edits.positions === false || edits.norm !== null;
}

const BELOW = 160; // pixels below the arithmetic that are to be seen of the matrices

/** Scroll, if need be, until the arithmetic of the card is seen, and as much of its tower as there is room for. */
function bringIntoView(card) {
  const line = card.querySelector(".inspector") ?? card;
  const bottom = line.getBoundingClientRect().bottom + BELOW;
  if (bottom <= window.innerHeight) return;
  const top = card.closest(".tower").getBoundingClientRect().top - 8;
  const isQuiet = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const by = Math.max(top, bottom - window.innerHeight);
  window.scrollBy({ top: by, behavior: isQuiet ? "instant" : "smooth" });
}

/** A column without a step opens at the one that tells most. */
function withStep(place) {
  if (!place.column || place.step) return place;
  const names = place.column.page.steps.map(({ name }) => name);
  const step = ["weights", "hidden", "words", "input"].find((each) => names.includes(each)) ?? names.at(-1);
  return { ...place, step };
}

function attendsInWords(state, row, shares) {
  const most = shares.indexOf(Math.max(...shares));
  const source = state.words.source[most];
  return `Before it generates “${state.words.says[row]}”, the decoder attends most to “${source}”: ${Math.round(100 * shares[most])}% of the last cross-attention, all heads together.`;
}
