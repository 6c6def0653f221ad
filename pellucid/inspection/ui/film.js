// How it learned: one sentence through the updates of a run, with a slider, and play and pause.
//
// `mountFilm(explorer, film)` fills the explorer's panel "film" from what `film_content` wrote. While a frame is
// shown, the explorer paints the model of that update; the last frame, or leaving the film, is the model itself.

import { make } from "./dom.js";
import { openMatrices } from "./matrices.js";

const SECONDS_PER_FRAME = 0.9;

/** Fill the panel; returns `{ go(index), play(), pause(), leave() }`. */
export function mountFilm(explorer, film) {
  const states = film.frames.map(() => null);
  const last = film.frames.length - 1;
  const now = { index: null, timer: null };

  const slider = make("input", { type: "range", min: 0, max: last, step: 1, value: last, "aria-label": "Update of the run" });
  const button = make("button", { type: "button", class: "tool film-play" }, "Play");
  const leave = make("button", { type: "button", class: "tool film-leave", hidden: true }, "Back to the trained model");
  const told = make("p", { class: "film-told" });
  const own = make("p", { class: "film-own", dir: "auto" });
  const curve = lossCurve(film.frames);
  explorer.panel("film").replaceChildren(
    make(
      "section",
      { class: "film", "aria-label": "How it learned" },
      make("div", { class: "film-bar" }, make("h3", {}, "How it learned"), button, slider, leave),
      curve.element,
      told,
      own,
    ),
  );
  tell();

  const acts = {
    /** Show the frame with this number, counted from 0. */
    go(index) {
      now.index = Math.min(Math.max(index, 0), last);
      slider.value = String(now.index);
      tell();
      explorer.show(stateOf(now.index));
    },
    /** From the frame that is shown, or from the first, to the last. */
    play() {
      if (now.timer !== null) return;
      if (now.index === null || now.index === last) acts.go(0);
      button.textContent = "Pause";
      now.timer = window.setInterval(() => {
        acts.go(now.index + 1);
        if (now.index === last) acts.pause();
      }, 1000 * SECONDS_PER_FRAME);
    },
    pause() {
      window.clearInterval(now.timer);
      now.timer = null;
      button.textContent = "Play";
    },
    /** Back to the model as it is. */
    leave() {
      acts.pause();
      now.index = null;
      slider.value = String(last);
      tell();
      explorer.show(null);
    },
  };

  function stateOf(index) {
    const frame = film.frames[index];
    states[index] ??= {
      sentence: frame.sentence,
      words: frame.words,
      predictions: frame.predictions,
      matrix: openMatrices(frame),
      config: explorer.provider.plan.config,
      entries: explorer.provider.plan.entries,
      frame: { step: frame.step },
    };
    return states[index];
  }

  function tell() {
    const frame = film.frames[now.index ?? last];
    leave.hidden = now.index === null;
    slider.setAttribute("aria-valuetext", `after ${inThousands(frame.step)} updates`);
    const figures = [];
    if (frame.loss !== null) figures.push(`loss ${frame.loss.toFixed(2)}`);
    if (frame.bleu !== null) figures.push(`BLEU ${frame.bleu.toFixed(1)}`);
    told.replaceChildren(make("b", {}, frame.step === 0 ? "Before the first update" : `After ${inThousands(frame.step)} updates`), figures.length > 0 ? `: ${figures.join(", ")}` : "", ". Its own translation then:");
    const words = frame.own_words.map(([word, share]) => {
      const each = make("span", { class: "film-word", title: `${Math.round(100 * share)}%` }, word);
      each.style.setProperty("--share", share.toFixed(3));
      return each;
    });
    own.replaceChildren(...(words.length > 0 ? words.flatMap((word) => [word, " "]) : [make("i", {}, "(nothing)")]));
    curve.mark(now.index ?? last);
  }

  explorer.on("state", (state) => {
    if (state.frame || now.index === null) return;
    acts.pause(); // something else was computed meanwhile
    now.index = null;
    slider.value = String(last);
    tell();
  });
  button.addEventListener("click", () => (now.timer === null ? acts.play() : acts.pause()));
  slider.addEventListener("input", () => {
    acts.pause();
    acts.go(Number(slider.value));
  });
  leave.addEventListener("click", () => {
    acts.leave();
    button.focus();
  });
  return acts;
}

/** The losses of all frames as bars, one above each place of the slider. */
function lossCurve(frames) {
  const losses = frames.map(({ loss }) => loss);
  const highest = Math.max(...losses.filter((loss) => loss !== null), 1e-9);
  const bars = losses.map((loss) => {
    const bar = make("span", { class: "film-loss" });
    bar.style.setProperty("--share", String((loss ?? 0) / highest));
    return bar;
  });
  return {
    element: make("div", { class: "film-losses", "aria-hidden": "true" }, ...bars),
    mark: (index) => bars.forEach((bar, at) => bar.classList.toggle("is-here", at === index)),
  };
}

const inThousands = (count) => count.toLocaleString("en-US");
