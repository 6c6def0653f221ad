// A tour for someone who has read nothing: from a text to the next word, each step with one thing to try.
//
// `mountTour(explorer)` puts a bar above the picture of a live model of any kind, and the tour beside the picture, so that
// it covers nothing. A step moves something on the screen, says in a few words what it is, and notices when its task was
// tried; nobody has to, "Next" always goes on, and Escape ends the tour. Steps about parts that a model does not have are
// left out. Where the page knows the address of the book, each step leads to its chapter.

import { digits, make } from "./dom.js";
import { bookAddress } from "./equations.js";
import { scenesView } from "./scenes.js";

/**
 * Put the invitation into the panel "tour"; returns `{ start(), go(index), end(), steps }`. `scenes` are the worked
 * examples that scenes.py wrote; without any there is no button for them. `hasFilm` says whether the page shows how the
 * model learned.
 */
export function mountTour(explorer, { scenes = [], hasFilm = false } = {}) {
  const steps = stepsOf(explorer, hasFilm);
  const tried = steps.map(() => false);
  const now = { index: null, stop: [] };
  const panel = explorer.panel("tour");
  const acts = { steps, start: () => acts.go(0), go, end };
  invite();
  // in the capturing phase: an open card, which Escape would close, may be one that a step has opened
  document.addEventListener("keydown", endByEscape, { capture: true });

  function endByEscape(event) {
    const isOther = document.querySelector(".popover:not([hidden])") !== null; // Escape closes that first
    if (event.key !== "Escape" || now.index === null || isOther) return;
    event.preventDefault();
    event.stopPropagation();
    end();
  }

  function invite() {
    const button = make("button", { type: "button", class: "tool tour-start" }, "Take the tour");
    button.addEventListener("click", acts.start);
    const examples = make("button", { type: "button", class: "tool scenes-start" }, "Worked examples");
    examples.addEventListener("click", work);
    panel.replaceChildren(
      make(
        "div",
        { class: "tour-invite" },
        make("p", {}, `New to this? ${steps.length} steps from a text to the next word, or a few numbers worked out by hand.`),
        button,
        scenes.length > 0 ? examples : null,
      ),
    );
  }

  /** The worked examples, in the place of the tour. */
  function work() {
    const view = scenesView(scenes, {
      onClose() {
        invite();
        panel.querySelector(".scenes-start").focus();
      },
    });
    panel.replaceChildren(view.element);
    view.element.querySelector(".scene-choice button").focus({ preventScroll: true });
  }

  async function go(index) {
    leaveStep();
    now.index = index;
    const step = steps[index];
    draw(step);
    await step.show();
    if (now.index !== index) return;
    draw(step); // its text may be about what it has moved
    // what the step itself moved was no try
    now.stop = step.watch(() => {
      tried[index] = true;
      draw(step);
    });
    if (typeof step.text === "function") now.stop.push(explorer.on("state", () => draw(step)));
    panel.querySelector(".tour").dataset.isListening = "true"; // from now on a try is noticed
  }

  function chapterLink(chapter) {
    const href = bookAddress(`equations/${chapter}`);
    if (href === null) return null;
    const link = make("a", { href, target: "_blank", rel: "noopener noreferrer" }, "The chapter about it");
    return make("p", { class: "tour-chapter" }, link);
  }

  function leaveStep() {
    now.stop.forEach((stop) => stop());
    now.stop = [];
    explorer.highlight(null);
  }

  function end() {
    leaveStep();
    now.index = null;
    invite();
    panel.querySelector("button").focus();
  }

  function draw(step) {
    const { index } = now;
    const had = panel.querySelector(":focus")?.className;
    const button = (text, name, act, isOff = false) => {
      const made = make("button", { type: "button", class: `tool ${name}`, disabled: isOff }, text);
      made.addEventListener("click", act);
      return made;
    };
    const isLast = index === steps.length - 1;
    panel.replaceChildren(
      make(
        "section",
        { class: "tour", "aria-label": "Tour", "data-step": step.name },
        make("p", { class: "tour-place" }, `Step ${index + 1} of ${steps.length}`),
        make("h3", {}, step.title),
        make("p", { class: "tour-text" }, typeof step.text === "function" ? step.text() : step.text),
        make(
          "p",
          { class: `tour-task ${tried[index] ? "is-done" : ""}`, role: "status" },
          make("b", {}, tried[index] ? "✓ Done. " : "Try: "),
          tried[index] ? step.after : step.task,
        ),
        chapterLink(step.chapter),
        make(
          "div",
          { class: "tour-buttons" },
          button("Back", "tour-back", () => go(index - 1), index === 0),
          isLast ? button("Finish", "tour-next", end) : button("Next", "tour-next", () => go(index + 1)),
          button("End the tour", "tour-end", end),
        ),
      ),
    );
    if (now.stop.length > 0) panel.querySelector(".tour").dataset.isListening = "true";
    if (had) panel.querySelector(`.${had.split(" ").at(-1)}`)?.focus({ preventScroll: true });
  }

  return acts;
}

/** The steps; `watch(done)` listens for the task and returns what ends the listening. */
function stepsOf(explorer, hasFilm) {
  const { reads, config } = explorer.provider.plan;
  const columns = explorer.towers.flatMap((tower) => tower.blocks.flatMap((block) => block.columns));
  const namesOf = (kind) => columns.filter((each) => each.kind === kind).map(({ name }) => name);
  const side = reads === "target" ? "decoder" : "encoder"; // where the text enters
  const ofSide = (kind) => namesOf(kind).filter((name) => name.startsWith(side));
  const [reading] = ofSide("self-attention");
  const [network] = ofSide("feed-forward");
  const [states] = ofSide("recurrent");
  const crossing = namesOf("cross-attention");
  const closed = () => explorer.close();
  // where the tour does not stand beside the picture, the reader stays at its words
  const opened = (name) => () => explorer.open(name, { scrolls: window.matchMedia("(min-width: 60rem)").matches });
  const stress = (names) => () => {
    explorer.close();
    explorer.highlight(names);
  };
  const onOpen = (pattern) => (done) => [explorer.on("open", (name) => pattern.test(name ?? "") && done())];
  const atStep = (title) => (done) => [explorer.on("open", () => stepIs(title) && done())];
  const within = (pattern) => new RegExp(`^${side}\\.${pattern}`);
  const oneOf = (names, rest = "") => new RegExp(`^(${names.join("|").replaceAll(".", "\\.")})${rest}`);
  const about = TEXTS[reads];

  const steps = [
    {
      name: "text",
      title: about.title,
      text: `${about.text} Everything that you see is computed now, by the model in this file.`,
      task: "change a word of the text at the top of the page.",
      after: "Every number of the picture was computed again.",
      chapter: "index.html",
      show: closed,
      watch: (done) => {
        const before = explorer.state?.sentence.source;
        return [explorer.on("state", (state) => state.sentence.source !== before && done())];
      },
    },
    {
      name: "tokens",
      title: "The text is cut into tokens",
      text: "A token is a word or a piece of one. Each has a number in a list of all tokens that the model knows. In the picture each token is a row, all the way through.",
      task: "click the heading “Embedding”.",
      after: "The first step there is a table that has each token and its number.",
      chapter: "tokens.html#vocabulary-and-ids",
      show: stress([`${side}.embedding`]),
      watch: onOpen(/^(en|de)coder\.embedding/),
    },
    {
      name: "vectors",
      title: "A token becomes a row of numbers",
      text: `The number of a token picks a row of learned numbers, its vector.${states ? "" : " Where it stands in the text is part of what the model reads."} Blue is above zero, orange below.`,
      task: "open the embedding, and point at a cell.",
      after: "A line there says how this number was computed.",
      chapter: "embeddings.html#embedding",
      show: stress([`${side}.embedding`]),
      watch: onOpen(within("(embedding|lookup|positions|input)")),
    },
    states && {
      name: "states",
      title: "Read word by word",
      text: "A recurrent layer reads the words in their order. Its state after a word is computed from that word and from the state before it, so that each row remembers what came earlier.",
      task: "open the states of a layer.",
      after: "Row by row: each needs the row above it.",
      chapter: "before.html",
      show: stress([states]),
      watch: onOpen(within("layers")),
    },
    reading && {
      name: "attention",
      title: "Attention: words take from words",
      text: `In self-attention each word fetches something from ${reads === "target" ? "itself and the words before it" : "the others"}. A strong line means: much of this word’s new vector comes from there. Several heads do this side by side, each in its own way.`,
      task: "open a head: one of the small squares below the lines.",
      after: "This square has a row for each word that asks and a column for each word that it asks.",
      chapter: "heads.html#multi-head-attention-all-heads",
      show: stress([reading]),
      watch: onOpen(oneOf(ofSide("self-attention"), "\\.heads\\.\\d+")),
    },
    reading && {
      name: "query",
      title: "What a word asks for: its query",
      text: "Each head has three learned matrices. The first makes a query of each word’s vector: what this word looks for in the others.",
      task: "open “Queries” of this head, below the picture.",
      after: "A row for each word. A number of it is a sum of products, of the word’s vector and a column of the matrix.",
      chapter: "attention.html#attention",
      show: opened(`${reading}.heads.0.weights`),
      watch: atStep("query"),
    },
    reading && {
      name: "key",
      title: "What a word can be found by: its key",
      text: "The second matrix makes a key of each word’s vector. A query is compared with every key: where the two fit, their product is large.",
      task: "open “Keys” of this head.",
      after: "Queries and keys have the same width, so that each pair has a product.",
      chapter: "attention.html#attention-scores",
      show: opened(`${reading}.heads.0.query`),
      watch: atStep("key"),
    },
    reading && {
      name: "weights",
      title: "How much from whom: the weights",
      text: "The product of a query and a key is a score. A softmax makes shares of the scores, and each row of shares sums to one.",
      task: "open “Scores” of this head, the numbers before the softmax.",
      after: "A score is a sum of products: point at a cell and read it.",
      chapter: "attention.html#attention-weights",
      show: opened(`${reading}.heads.0.weights`),
      watch: atStep("scores"),
    },
    reading && {
      name: "value",
      title: "What is handed over: the value",
      text: "The third matrix makes a value of each word’s vector. The head’s answer for a word is the mean of all values, by the weights of its row: a lookup in a table, where every entry counts as much as its key fits.",
      task: "open “Values”, then “Output of the head”.",
      after: "Each row there is the sum of weights times values.",
      chapter: "attention.html#attention",
      show: opened(`${reading}.heads.0.value`),
      watch: atStep("head"),
    },
    network && {
      name: "network",
      title: "A small network for each word",
      text: `Behind the attention, every word passes two layers of numbers by itself.${crossing.length > 0 ? " In the decoder two attentions come first: to the words before, and to the source." : ""} Then all of it again: layer upon layer, and the vectors come to mean the word in this sentence.`,
      task: "open a feed-forward part.",
      after: "Hidden units at zero are switched off for this word.",
      chapter: "feed-forward.html#feed-forward-network",
      show: stress([network]),
      watch: onOpen(oneOf(namesOf("feed-forward"))),
    },
    crossing.length > 0 && {
      name: "crossing",
      title: "From the source to the translation",
      text: "The decoder has written some words and needs the next. Its attention to the encoder fetches from the rows there: here the translation comes from the source.",
      task: "click a word of the translation at the right edge.",
      after: "The words of the source from which it fetched are tinted.",
      chapter: "applications.html#cross-attention",
      show: stress(crossing),
      watch: (done) => [explorer.on("pick", (position) => position !== null && done())],
    },
    {
      name: "next",
      title: "A probability for every word it knows",
      text: `${states ? "From the last row the model computes a number for every token." : "The last vector is compared with the vector of every token."} ${about.next}`,
      task: "open the last column, where the words are, and find the runner-up.",
      after: "The words beside each other are candidates for the same place.",
      chapter: "embeddings.html#output-logits",
      show: stress(["output"]),
      watch: onOpen(/^(output|logits|probabilities)/),
    },
    {
      name: "loss",
      title: "The loss: what training makes smaller",
      text: () => `The loss of a word is −log of the probability that the model gave it: 0 if it was sure, large if it expected another word. ${lossesOf(explorer.state)} Training moves every number a little, so that the losses of the right words become smaller.`,
      task: hasFilm ? "move the slider of “How it learned” to the left, and read the losses here." : "change a word of the text, and read the losses again.",
      after: hasFilm ? "The same words, read by the model as it was then: it expected none of them." : "Where the model hesitates, a loss is large.",
      chapter: "loss.html#cross-entropy",
      show: closed,
      watch: (done) => {
        const before = meanLoss(explorer.state);
        return [explorer.on("state", (state) => Math.abs(meanLoss(state) - before) > 1e-3 && done())];
      },
    },
    !config.kind.startsWith("rnn") && {
      name: "why",
      title: "Why this word and not that one?",
      text: "The lead of the chosen word is a sum: each head and each sublayer adds its part, for it or against it. Below the picture the parts are bars, with the words behind each head.",
      task: "choose another word to compare with, in the question below the picture.",
      after: "The same parts, another difference. Click a bar to open its part.",
      chapter: "attribution.html",
      show: async () => {
        explorer.close();
        if (explorer.state) explorer.pick(explorer.picked ?? Math.min(1, explorer.state.words.says.length - 1));
      },
      watch: (done) => {
        const panel = explorer.panel("why");
        panel.addEventListener("change", done);
        return [() => panel.removeEventListener("change", done)];
      },
    },
    config.kind.startsWith("rnn")
      ? {
          name: "chance",
          title: "The likeliest words, or drawn ones",
          text: "The translation is made of likely words. With a temperature above zero each word is drawn instead: the higher it is, the more often an unlikely word comes.",
          task: "move “Temperature” up.",
          after: "The translation without it stands beside the drawn one. The × of the change gives it back.",
          chapter: "search.html#sampling",
          show: closed,
          watch: (done) => [explorer.on("state", () => explorer.search.temperature > 0 && done())],
        }
      : {
          name: "break",
          title: "Break it, and see what it was for",
          text: `What a part does shows when it is missing. ${about.without}`,
          task: `press “Switch parts off” and click parts of the last layer${crossing.length > 0 ? "’s cross-attention" : ""}, or drop the positions.`,
          after: "The × of each change, or “Undo all”, gives the model back as it was.",
          chapter: "masks.html#causal-mask",
          show: stress([crossing.at(-1) ?? ofSide("self-attention").at(-1)]),
          watch: (done) => [
            explorer.on("edits", (edits) => {
              if (edits.off.length > 0 || edits.rows.length > 0 || !edits.mask || !edits.positions || edits.norm) done();
            }),
          ],
        },
  ];
  return steps.filter(Boolean);
}

/** Whether the open card shows this step: its steps are opened by the part's name. */
function stepIs(name) {
  return document.querySelector(".towers .card-steps [aria-current]")?.dataset.step === name;
}

const meanLoss = (state) => state.sentence.confidences.reduce((sum, share) => sum - Math.log(share), 0) / state.sentence.confidences.length;

const MOST_LOSSES = 6;

/** The loss of each word of the translation and their mean, in words. */
function lossesOf(state) {
  if (!state) return "";
  const { words, sentence } = state;
  const each = sentence.confidences.map((share, row) => `“${words.says[row]}” −log ${digits(share)} = ${(-Math.log(share)).toFixed(2)}`);
  const rest = each.length > MOST_LOSSES ? " …" : "";
  return `Here: ${each.slice(0, MOST_LOSSES).join(", ")}${rest}; their mean is ${meanLoss(state).toFixed(2)}.`;
}

const TEXTS = {
  pairs: {
    title: "A sentence goes in, another comes out",
    text: "Above, the encoder reads the sentence; below, the decoder writes its translation.",
    next: "The best fit has the highest probability. The chosen word is read back in, and the next one is computed.",
    without: "The translation without it stands beside the untouched one.",
  },
  source: {
    title: "A text with gaps goes in, words for them come out",
    text: "The encoder reads the whole text at once and has an opinion on every place: which word stands there. Where the text has a [MASK], that is its guess.",
    next: "The best fit has the highest probability, at every place of the text.",
    without: "Its guesses without it stand beside the untouched ones.",
  },
  target: {
    title: "The beginning of a text goes in, the next word comes out",
    text: "The model reads the text from the left. At every word it says which one it expects next; the last of these guesses is how the text goes on.",
    next: "The best fit has the highest probability. The chosen word is read back in, and the next one is computed.",
    without: "Its guesses without it stand beside the untouched ones.",
  },
};
