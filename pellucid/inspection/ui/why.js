// Why this word and not that one: the difference of two logits as bars, one for each part of the model.
//
// `mountWhy(explorer, asker)` fills the explorer's panel "why". An asker says which other words there are and
// explains: `others(position)` gives `[{ id, label, probability }]`, `ask(position, id)` promises what
// `pellucid.why` computes or null, and `find(text, position)` promises `{ id, label, position }` for any other
// word, or null, or is null.

import { make } from "./dom.js";
import { unpack } from "./matrices.js";

const SHOWN = 10;
const WORDS_BEHIND = 3;
const PAD = 0; // no model ever generates it, nor the start
const SPECIAL_COUNT = 4;
const SPACE = "▁"; // begins a token before which a space stands
const MARKS_ONLY = /^\p{P}+$/u; // may stand without a space where a word stands

/** What a report has stored: each word of its translation against a few others. */
export function storedWhy(stored) {
  const opened = ({ parts, positions }, position, pair) => {
    const values = unpack(pair.values);
    const attended = [...unpack(pair.attended)];
    const list = parts.map(([name, kind, count], index) => ({ name, kind, value: values[index], attended: attended.splice(0, count) }));
    const source = [...unpack(positions[position].source)];
    const prefix = [...unpack(positions[position].prefix)];
    const { word, rival, difference } = pair;
    return whole({ position, word, rival, difference, parts: list, source_contributions: source, prefix_contributions: prefix });
  };
  return {
    method: stored.method,
    others: (position) => stored.positions[position]?.pairs.map(({ rival }) => rival) ?? [],
    async ask(position, id) {
      const pair = stored.positions[position]?.pairs.find(({ rival }) => rival.id === id);
      return pair ? opened(stored, position, pair) : null;
    },
    find: null,
  };
}

function whole(found) {
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  return {
    ...found,
    total: sum(found.parts.map(({ value }) => value)),
    source_share: sum(found.source_contributions),
    prefix_share: sum(found.prefix_contributions),
  };
}

/** What a live model computes, as it is now: with parts switched off, rows held, without mask. */
export function liveWhy(explorer, method) {
  const { model } = explorer.provider.live;
  const { reads, start } = explorer.provider.plan;
  return {
    method,
    others(position) {
      const said = explorer.state.sentence.said_ids[position];
      const others = explorer.state.predictions[position].filter(([, , id]) => ![said, start, PAD].includes(id));
      return others.map(([label, probability, id]) => ({ label, probability, id }));
    },
    ask(position, rival) {
      const { source_ids: source, read_ids: read } = explorer.state.sentence;
      const target = reads === "source" ? [] : read.slice(1);
      const word = explorer.state.sentence.said_ids[position];
      return model.explain({ source: source.slice(0, -1), target, edits: explorer.edits, position, word, rival });
    },
    /** Where a word parts from the word of the target, and its token there, as `_readings` and `_choose` of why.py find them. */
    async find(text, position) {
      const { said_ids: said } = explorer.state.sentence;
      const [here] = await model.tokens([said[position]]);
      const read = await model.readTarget(text);
      const bare = await glued(model, read);
      const isLikelier = () => {
        const { shape, values } = explorer.state.capture.get("logits");
        return values[position * shape[1] + bare[0]] > values[position * shape[1] + read.ids[0]];
      };
      const isGlued = !here.startsWith(SPACE) && said[position] >= SPECIAL_COUNT;
      const isFree = MARKS_ONLY.test(text) && position > 0 && said[position] !== read.ids[0];
      const ids = isGlued || (isFree && (read.tokens[0] === SPACE || isLikelier())) ? bare : read.ids;
      const at = ids.findIndex((id, place) => id !== said[position + place]);
      if (at === -1 || position + at >= said.length) return null;
      const [token] = await model.tokens([ids[at]]);
      return { id: ids[at], label: ids.length === 1 ? text : token.replace(SPACE, "") || SPACE, position: position + at };
    },
  };
}

/** The ids of a word where no space stands before it; those given if it has no others. */
async function glued(model, { ids, tokens }) {
  if (tokens[0] === SPACE && ids.length > 1) return ids.slice(1);
  if (!tokens[0]?.startsWith(SPACE)) return ids;
  try {
    return [...(await model.idsOf([tokens[0].slice(SPACE.length)])), ...ids.slice(1)];
  } catch {
    return ids; // the vocabulary has no such token
  }
}

/** Fill the panel; returns a function that compares a position with another word: `(position, id)`. */
export function mountWhy(explorer, asker) {
  const panel = explorer.panel("why");
  const now = { position: null, rival: null, turn: 0 };
  const body = make("div", { class: "why-body" });
  panel.replaceChildren(make("section", { class: "why", "aria-label": "Why this word" }, body));
  hint();

  function hint() {
    body.replaceChildren(make("p", { class: "why-hint" }, "Pick a word at the right edge of the picture to see why the model chose it and not another."));
  }

  async function show() {
    const turn = (now.turn += 1);
    const { position } = now;
    const others = position === null || explorer.state.frame ? [] : asker.others(position);
    if (others.length === 0) return hint();
    const named = others.find(({ id }) => id === now.rival?.id) ?? now.rival ?? others[0];
    const found = await asker.ask(position, named.id);
    if (turn !== now.turn) return;
    if (!found) return hint();
    body.replaceChildren(...view(found, named, others));
  }

  function view(found, rival, others) {
    const { words } = explorer.state;
    const said = words.says[found.position];
    const label = rival.label ?? `#${rival.id}`;
    return [
      make(
        "h3",
        {},
        "Why ",
        make("q", {}, make("bdi", {}, said)),
        " and not ",
        rivalChoice(rival, others),
        "?",
      ),
      make("p", { class: "why-sum" }, ...verdict(found, said, label)),
      kindStrip(found),
      partBars(found, said, label),
      shareBar(found, words),
    ];
  }

  function rivalChoice(rival, others) {
    const isKnown = others.some(({ id }) => id === rival.id);
    const select = make("select", { "aria-label": "The other word", class: "why-rival" });
    for (const each of isKnown ? others : [rival, ...others]) {
      select.append(make("option", { value: each.id, selected: each.id === rival.id }, each.label ?? `#${each.id}`));
    }
    select.addEventListener("change", () => {
      now.rival = others.find(({ id }) => id === Number(select.value)) ?? rival;
      show().then(() => panel.querySelector(".why-rival")?.focus());
    });
    if (!asker.find) return select;
    const field = make("input", { class: "why-word", placeholder: "or any word", "aria-label": "Compare with any word", size: 10 });
    field.addEventListener("input", () => field.setCustomValidity(""));
    const form = make("form", {}, field);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = field.value.trim();
      const found = text ? await asker.find(text, now.position) : null;
      field.setCustomValidity(found === null ? "A word that begins otherwise than the word of the target." : "");
      if (found === null) return void field.reportValidity();
      if (found.position !== now.position) explorer.pick(found.position);
      now.rival = found;
      await show();
      panel.querySelector(".why-word")?.focus();
    });
    return make("span", { class: "why-choice" }, select, form);
  }

  function partBars(found, said, label) {
    const largest = [...found.parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const shown = largest.slice(0, SHOWN);
    const rest = largest.slice(SHOWN);
    const extent = Math.max(...shown.map(({ value }) => Math.abs(value)), 1e-9);
    const list = make("ul", { class: "why-parts" });
    for (const part of shown) list.append(partRow(part, extent, found.position));
    const left = rest.reduce((sum, { value }) => sum + value, 0);
    return make(
      "div",
      { class: "why-table" },
      make("p", { class: "why-ends", "aria-hidden": "true" }, make("span", {}, "for ", make("bdi", {}, label)), make("span", {}, "for ", make("bdi", {}, said))),
      list,
      make(
        "dl",
        { class: "why-total" },
        total(`the other ${rest.length} parts`, left),
        total("sum of all parts", found.total, "why-all"),
        total("difference of the logits", found.difference, "why-true"),
      ),
    );
  }

  function partRow(part, extent, position) {
    const behind = wordsBehind(part);
    const bar = make("span", { class: `why-bar ${part.value < 0 ? "against" : "for"}`, "aria-hidden": "true" }, make("i", {}));
    bar.style.setProperty("--share", String(Math.abs(part.value) / extent));
    const button = make(
      "button",
      { type: "button", "data-part": part.name, class: "why-part" },
      make("span", { class: "why-name" }, partInWords(part)),
      bar,
      make("span", { class: "why-value" }, signed(part.value)),
      behind.length > 0 ? make("span", { class: "why-behind" }, ...behind.flatMap(wordChip)) : null,
    );
    button.addEventListener("click", () => openPart(part, position));
    button.addEventListener("pointerenter", () => explorer.highlight([placeOf(part)]));
    button.addEventListener("pointerleave", () => explorer.highlight(null));
    return make("li", {}, button);
  }

  function wordsBehind({ kind, attended }) {
    const { words } = explorer.state;
    const labels = kind === "cross-attention" ? words.source : words.reads;
    return attended
      .map((value, at) => ({ label: labels[at], value }))
      .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
      .slice(0, WORDS_BEHIND)
      .filter(({ value }) => Math.abs(value) >= 0.005);
  }

  function openPart(part, position) {
    explorer.highlight(null);
    if (part.attended.length === 0) return explorer.open(placeOf(part));
    const most = part.attended.reduce((best, value, at) => (Math.abs(value) > Math.abs(part.attended[best]) ? at : best), 0);
    return explorer.open(part.name.replace(/\.output$/, ".weights"), { row: position, column: most });
  }

  const again = () => void show();
  explorer.on("pick", (position) => {
    now.position = position;
    now.rival = null;
    again();
  });
  explorer.on("state", again);
  return (position, id) => {
    explorer.pick(position);
    now.rival = asker.others(position).find((each) => each.id === id) ?? (id === null ? null : { id });
    return show();
  };
}

/** The part of the picture that a part of the difference belongs to. */
function placeOf({ name, kind }) {
  if (kind !== "bias") return name.replace(/(\.heads\.\d+)\.output$/, "$1").replace(/(layers\.\d+\.\w+)\.output$/, "$1");
  const side = name.startsWith("layers.") || name.startsWith("last_norm") ? `decoder.${name}` : name;
  if (side === "output_bias") return "output";
  return side.replace(/_norm\.norm\.bias$/, "").replace(/\.(outer\.bias|b_o)$/, "").replace(/\.last_norm\.bias$/, ".output");
}

/** `decoder.layers.1.feed_forward.output` as `layer 1, feed-forward`. */
export function partInWords({ name, kind }) {
  if (kind === "embedding") return name.startsWith("encoder") ? "embedding of the word here" : "embedding of the word before";
  if (kind === "positions") return "its position";
  if (name === "output_bias") return "bias of the output";
  if (/last_norm\.bias$/.test(name)) return "bias of the last norm";
  const [, layer, sublayer] = /layers\.(\d+)\.(\w+?)(?:_norm)?\./.exec(name);
  const head = /\.heads\.(\d+)\./.exec(name)?.[1];
  const words = [`layer ${layer}`, sublayer.replaceAll("_", "-")];
  if (head !== undefined) words.push(`head ${head}`);
  if (kind === "bias") words.push(name.includes("_norm.norm") ? "bias of the norm" : "bias");
  return words.join(", ");
}

/** What all parts of one kind add together. */
function kindStrip({ parts }) {
  const kinds = [...new Set(parts.map(({ kind }) => kind))].sort((one, other) => (one === "bias") - (other === "bias"));
  const sums = kinds.map((kind) => [kind, parts.filter((part) => part.kind === kind).reduce((sum, { value }) => sum + value, 0)]);
  const list = make("dl", { class: "why-kinds" });
  for (const [kind, value] of sums) {
    list.append(make("div", { class: value < 0 ? "against" : "for" }, make("dt", {}, kind === "bias" ? "biases" : kind), make("dd", {}, signed(value))));
  }
  return list;
}

function verdict({ word, rival, difference }, said, label) {
  const ahead = difference >= 0 ? "ahead" : "behind";
  return [
    make("bdi", {}, said),
    ` has ${shareInWords(word.probability)} and `,
    make("bdi", {}, label),
    ` ${shareInWords(rival.probability)}: its logit is ${Math.abs(difference).toFixed(2)} ${ahead}. Each bar is what one part of the model adds.`,
  ];
}

function shareBar(found, words) {
  if (found.source_contributions.length === 0) return null;
  const bar = make("div", { class: "why-shares", "aria-hidden": "true" }, make("span", { class: "from-source" }), make("span", { class: "from-prefix" }));
  bar.firstChild.style.setProperty("--share", String(found.source_share));
  const named = (values, labels) =>
    values
      .map((value, at) => ({ value, label: labels[at] }))
      .filter(({ value }) => value >= 0.005)
      .sort((a, b) => b.value - a.value)
      .slice(0, WORDS_BEHIND)
      .flatMap(({ value, label }) => [make("span", { class: "why-chip" }, make("bdi", {}, label), ` ${shareInWords(value)}`), " "]);
  return make(
    "div",
    { class: "why-origin" },
    make("p", {}, make("b", {}, shareInWords(found.source_share)), " of the last hidden state comes from the source ", ...named(found.source_contributions, words.source)),
    bar,
    make("p", {}, make("b", {}, shareInWords(found.prefix_share)), " from the words before ", ...named(found.prefix_contributions, words.reads)),
    make("p", { class: "why-method" }, "By ALTI+ (Ferrando et al., 2022): a share of the last hidden state, the same for every other word. A source word stands for its row of the encoder’s output."),
  );
}

const total = (name, value, style = "") => make("div", { class: style }, make("dt", {}, name), make("dd", {}, signed(value)));

const wordChip = ({ label, value }) => [make("span", { class: "why-chip" }, make("bdi", {}, label), ` ${signed(value)}`), " "];

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

function shareInWords(share) {
  if (share > 0 && share < 0.01) return "under 1%";
  return share > 0.99 && share < 1 ? "over 99%" : `${Math.round(100 * share)}%`;
}
