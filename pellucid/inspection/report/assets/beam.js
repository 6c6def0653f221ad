// A beam search as a tree one can watch grow: step by step, what was kept, what was dropped and why.

import { digits, equationNames, make, makeSvg, percent, plainKey } from "../ui/dom.js";
import { scrolling } from "../ui/steps.js";

const COLUMN = 116;
const ROW = 34;
const BOX = { width: 96, height: 26 };
const PAUSE = 900;
const SHOWN_ENDS = 6;

/** The page of the search. */
export function beamPage(context) {
  const tree = context.report.search;
  const view = drawTree(context, tree);
  const { beam_size: width, diverse_groups: groups } = tree.settings;
  const kept = groups > 1 ? `${width / groups} in each of ${groups} groups` : width;
  const penalty = groups > 1 ? ", less a penalty for tokens that earlier groups have chosen" : "";
  return [
    make(
      "p",
      { class: "about" },
      `Each step extends every live hypothesis and keeps the best ${kept}. The number`,
      " of a candidate is the probability of its token given its prefix. Candidates are sorted by the sum",
      ` of their log-probabilities${penalty} (${equationNames(context.report.equations.search)}).`,
    ),
    key(),
    controls(view, tree),
    view.element,
    ends(tree),
    stepTable(tree),
  ];
}

function key() {
  const list = make("ul", { class: "beam-key", "aria-label": "What the boxes mean" });
  for (const [verdict, text] of [
    ["goes-on", "goes on"],
    ["finished", "finished"],
    ["pruned", "pruned"],
    ["ruled-out", "ruled out by a rule"],
    ["left", "still live at the end"],
    ["chosen", "on the way to the answer"],
  ]) {
    list.append(make("li", { class: `beam-box ${verdict}` }, text));
  }
  return list;
}

function placeNodes(tree) {
  const filled = new Map();
  return tree.nodes.map((node) => {
    const row = filled.get(node.length) ?? 0;
    filled.set(node.length, row + 1);
    return { ...node, x: node.length * COLUMN + 8, y: row * ROW + 8 };
  });
}

function chosenNodes(tree) {
  const chosen = new Set();
  let number = tree.ends[0];
  while (number !== null && number !== undefined) {
    chosen.add(number);
    number = tree.nodes[number].parent;
  }
  return chosen;
}

function drawTree(context, tree) {
  const nodes = placeNodes(tree);
  const chosen = chosenNodes(tree);
  const width = Math.max(...nodes.map((node) => node.x)) + BOX.width + 16;
  const height = Math.max(...nodes.map((node) => node.y)) + BOX.height + 16;
  const lines = makeSvg("svg");
  lines.setAttribute("width", width);
  lines.setAttribute("height", height);
  lines.setAttribute("aria-hidden", "true");
  const board = make("div", { class: "beam-board", role: "group", "aria-label": "The search tree. Arrow keys go from token to token." }, lines);
  board.style.width = `${width}px`;
  board.style.height = `${height}px`;
  const drawn = nodes.map((node) => {
    const line = node.parent === null ? null : connect(nodes[node.parent], node);
    const box = nodeBox(context, tree, node, chosen.has(node.number));
    if (line) {
      if (chosen.has(node.number)) line.classList.add("chosen");
      lines.append(line);
    }
    board.append(box);
    return { node, line, box };
  });
  board.addEventListener("keydown", (event) => walk(event, drawn));
  drawn[0].box.tabIndex = 0;
  const frame = make("div", { class: "beam-scroll" }, board);
  const show = (step, follow) => {
    for (const { node, line, box } of drawn) {
      const isSeen = node.length <= step;
      box.hidden = !isSeen;
      line?.classList.toggle("unseen", !isSeen);
      box.classList.toggle("newest", node.length === step);
    }
    // The box that Tab reaches must be there.
    const reached = drawn.find(({ box }) => box.tabIndex === 0).box;
    if (reached.hidden) {
      reached.tabIndex = -1;
      drawn[0].box.tabIndex = 0;
    }
    if (follow) frame.scrollTo({ left: (step + 1.5) * COLUMN - frame.clientWidth });
  };
  return { element: frame, show };
}

function connect(from, to) {
  const path = makeSvg("path");
  const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [x2, y2] = [to.x, to.y + BOX.height / 2];
  const middle = (x1 + x2) / 2;
  path.setAttribute("d", `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
  path.setAttribute("class", classOf(to));
  return path;
}

function classOf(node) {
  return node.verdict.replace(" ", "-");
}

function nodeBox(context, tree, node, isChosen) {
  const told = describe(node);
  const box = make(
    "button",
    {
      type: "button",
      tabindex: "-1",
      class: `beam-box ${classOf(node)}${isChosen ? " chosen" : ""}`,
      "aria-label": `${node.token || "start"}, ${told}`,
    },
    make("bdi", {}, node.token || "start"),
    node.parent === null ? null : make("span", { class: "chance" }, percent(Math.exp(node.log_prob))),
  );
  box.style.left = `${node.x}px`;
  box.style.top = `${node.y}px`;
  const tell = () => context.inspector.say(prefixOf(tree, node), told);
  box.addEventListener("pointerenter", tell);
  box.addEventListener("focus", tell);
  return box;
}

function prefixOf(tree, node) {
  const said = [];
  for (let at = node; at.parent !== null; at = tree.nodes[at.parent]) said.unshift(at.token);
  return said.join(" ") || "start";
}

function describe(node) {
  if (node.parent === null) return "nothing is generated yet";
  const parts = [
    `p ${percent(Math.exp(node.log_prob))}`,
    `log p ${digits(node.log_prob)}`,
    `sum ${digits(node.total)}`,
  ];
  if (node.score !== null) parts.push(`score ${digits(node.score)}`);
  parts.push(node.reason ? `${node.verdict}: ${node.reason}` : node.verdict);
  return parts.join(" · ");
}

function walk(event, drawn) {
  const key = plainKey(event);
  const at = drawn.findIndex(({ box }) => box === event.target.closest(".beam-box"));
  if (at < 0 || !key.startsWith("Arrow")) return;
  const here = drawn[at].node;
  const isSeen = ({ box }) => !box.hidden;
  const children = drawn.filter(({ node }) => node.parent === here.number).filter(isSeen);
  const column = drawn.filter(({ node }) => node.length === here.length).filter(isSeen);
  const place = column.findIndex(({ node }) => node.number === here.number);
  const next = {
    ArrowLeft: here.parent === null ? null : drawn[here.parent],
    ArrowRight: children[0],
    ArrowUp: column[place - 1],
    ArrowDown: column[place + 1],
  }[key];
  event.preventDefault();
  event.stopPropagation();
  if (!next) return;
  event.target.closest(".beam-box").tabIndex = -1;
  next.box.tabIndex = 0;
  next.box.focus();
}

function controls(view, tree) {
  const last = Math.max(...tree.nodes.map((node) => node.length));
  const slider = make("input", { type: "range", min: "0", max: String(last), value: String(last), "aria-label": "Step of the search" });
  const told = make("output", {});
  let timer = null;
  const play = make("button", { type: "button" }, "Play");
  const stop = () => {
    window.clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  };
  const show = (step, follow = true) => {
    slider.value = String(step);
    told.textContent = `step ${step} of ${last}`;
    view.show(step, follow);
  };
  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(slider.value) >= last) show(0);
    play.textContent = "Pause";
    timer = window.setInterval(() => {
      if (!slider.isConnected) return stop();
      show(Number(slider.value) + 1);
      return Number(slider.value) >= last ? stop() : undefined;
    }, PAUSE);
    return undefined;
  });
  const move = (by) => () => {
    stop();
    show(Math.min(last, Math.max(0, Number(slider.value) + by)));
  };
  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value));
  });
  show(last, false);
  return make(
    "div",
    { class: "beam-controls" },
    play,
    make("button", { type: "button", on: { click: move(-1) } }, "Back"),
    make("button", { type: "button", on: { click: move(1) } }, "Forward"),
    slider,
    told,
  );
}

function ends(tree) {
  const list = make("ol", { class: "beam-ends" });
  const finished = tree.nodes.filter((node) => node.score !== null);
  finished.sort((one, other) => other.score - one.score);
  for (const node of finished.slice(0, SHOWN_ENDS)) {
    list.append(
      make("li", {}, make("bdi", {}, prefixOf(tree, node)), make("span", { class: "shape" }, ` score ${digits(node.score)}`)),
    );
  }
  return make("section", {}, make("h3", {}, "What finished, best first"), list);
}

function stepTable(tree) {
  const details = make("details", { class: "numbers-table" }, make("summary", {}, "The search as a table"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const head = make("tr", {});
    for (const name of ["step", "after", "token", "p", "sum of log p", "what became of it"]) {
      head.append(make("th", { scope: "col" }, name));
    }
    const table = make("table", { class: "beam-table" }, make("caption", {}, "Every candidate"), make("thead", {}, head));
    for (const node of tree.nodes.slice(1)) {
      table.append(
        make(
          "tr",
          {},
          make("td", {}, String(node.length)),
          make("td", {}, prefixOf(tree, tree.nodes[node.parent])),
          make("td", {}, node.token),
          make("td", {}, percent(Math.exp(node.log_prob))),
          make("td", {}, digits(node.total)),
          make("td", {}, node.reason ? `${node.verdict}: ${node.reason}` : node.verdict),
        ),
      );
    }
    details.append(scrolling(table, "The search as a table"));
  });
  return details;
}
