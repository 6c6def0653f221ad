// The views below the translation: the whole model at work on the sentence.

import { mountExplorer } from "../ui/explorer.js";
import { mountFilm } from "../ui/film.js";
import { liveProvider } from "../ui/live.js";
import { mountTour } from "../ui/tour.js";
import { liveWhy, mountWhy } from "../ui/why.js";

/**
 * Mount the views in `element`; they follow what the page translates. An address that ends with `#part=NAME` opens that
 * part, and with `&embedded` the page is a picture within another page: the text, the model, and what can be done to it.
 */
export function mountViews(element, { engine, plan, film, scenes, header, setText }) {
  if (plan === null) {
    element.hidden = true;
    return;
  }
  const asked = new URLSearchParams(location.hash.slice(1));
  document.documentElement.classList.toggle("is-embedded", asked.has("embedded"));
  const { beam_size, length_penalty } = header.decoding;
  let explorer = null;
  let latest = null;
  let isSeen = false;
  let isFollowing = false; // what the views are told by the page, they need not tell it
  const update = () => {
    if (!isSeen || latest === null || latest.translation === null) return;
    explorer ??= mount();
    isFollowing = true;
    explorer.setSource(latest.text, latest.translation);
    isFollowing = false;
  };
  const mount = () => {
    const provider = liveProvider(engine, plan, { beam_size, length_penalty });
    const mounted = mountExplorer(element.querySelector(".place"), provider, {
      onSource: (text) => {
        if (!isFollowing) setText(text);
      },
      onWord: (state, row) => selectWord(state, row),
    });
    if (!header.config.kind.startsWith("rnn")) mountWhy(mounted, liveWhy(mounted));
    mountTour(mounted, { scenes, hasFilm: film !== null });
    if (film !== null) mountFilm(mounted, film);
    const openOnce = mounted.on("state", () => {
      openOnce();
      if (asked.has("part")) mounted.open(asked.get("part"), { scrolls: false });
    });
    return mounted;
  };
  engine.onChange((change) => {
    latest = change;
    update();
  });
  // it computes every intermediate, so not before someone comes to look, and not of nothing
  const watcher = new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) return;
      watcher.disconnect();
      isSeen = true;
      update();
    },
    { rootMargin: "200px" },
  );
  watcher.observe(element);
}

/** Mark the piece of the field that a token of the source was made from. */
function selectWord(state, row) {
  const field = document.getElementById("source");
  const text = field.value.toLowerCase();
  let [start, end] = [0, 0];
  for (const token of state.sentence.source_tokens.slice(0, row + 1)) {
    const piece = token.replaceAll("▁", "").toLowerCase();
    const found = text.indexOf(piece, end);
    // a token that is not spelled as in the text, such as the stop, marks the place where it would be
    start = found < 0 ? end : found;
    end = found < 0 ? end : found + piece.length;
  }
  field.focus();
  field.setSelectionRange(start, end);
}
