// A walk through one sentence, from the data that content.py writes.
//
// In a page of one's own: serve this folder and, beside it, ui; `import { renderReport } from "./report.js"`, link
// ui.css and report.css, and call `renderReport(element, data)` with what report_content() gave, as JSON. It
// needs no inline styles or scripts and asks for nothing. `renderReport(element, data, { hash: false })`
// leaves the address alone.

import { make, onceAFrame, plainKey } from "../ui/dom.js";
import { forgetPictures } from "../ui/heatmap.js";
import { beamPage } from "./beam.js";
import { lensPage, rolloutPage, saliencyPage } from "./views.js";
import { allHeads } from "./heads.js";
import { makeInspector } from "../ui/inspector.js";
import { openMatrices } from "../ui/matrices.js";
import { overview } from "./overview.js";
import { headRadios, pageSteps } from "../ui/steps.js";

/** Fill `root` with the report; returns a function that shows a page by its name. */
export function renderReport(root, report, options = {}) {
  const inspector = makeInspector();
  const context = { report, inspector, matrix: openMatrices(report) };
  const views = viewsOf(context);
  const main = make("main", { class: "view", tabindex: "-1" });
  const nav = navigation(report, views);
  followScroll(root, main, nav);
  const state = { at: 0, head: 0, hasTurned: false, keepsHash: options.hash !== false };
  const go = (name, step = "") => {
    const index = Math.max(0, views.findIndex((view) => view.name === name));
    state.at = index;
    show(context, views, state, main, nav);
    if (state.hasTurned || step) settle(main, step);
    state.hasTurned = true;
  };
  root.classList.add("pellucid-report");
  root.replaceChildren(header(report), nav, main, inspector.element);
  root.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || !root.contains(link)) return;
    event.preventDefault();
    const target = link.getAttribute("href").slice(1);
    if (state.keepsHash) window.history.pushState(null, "", `#${target}`);
    go(...target.split("/"));
  });
  // Before the first click nothing has the focus, and keys go to the body, outside of root.
  document.addEventListener("keydown", (event) => {
    if (root.contains(event.target) || event.target === document.body) turnPage(event, views, state, go);
  });
  const fromAddress = () => go(...decodeURIComponent(window.location.hash.slice(1)).split("/"));
  if (state.keepsHash) {
    window.addEventListener("popstate", fromAddress);
    fromAddress();
  } else {
    go(views[0].name);
  }
  return go;
}

function viewsOf(context) {
  const { report } = context;
  const views = [
    { name: "overview", title: "Overview", group: "", about: "", draw: () => overview(context) },
  ];
  for (const page of report.pages) {
    views.push({
      name: page.name,
      title: page.title,
      group: groupOf(page),
      about: page.meaning,
      headCount: page.head_count,
      draw: (head) => [stepLinks(page), ...pageSteps(context, page, head)],
    });
  }
  if (report.attention.length > 0) {
    views.push({
      name: "heads",
      title: "All heads",
      group: "At a glance",
      about: "The attention weights of every layer and head.",
      draw: () => allHeads(context),
    });
  }
  for (const [name, title, about, has, draw] of [
    ["lens", "Logit lens", "The prediction of each layer of the decoder.", report.lens, lensPage],
    ["rollout", "Rollout", "Which words each row is made of.", report.has_rollout, rolloutPage],
    ["saliency", "Saliency", "Which source words each token depends on.", report.lens, saliencyPage],
    ["search", "Beam search", "How the sentence was found.", report.search, beamPage],
  ]) {
    if (has) views.push({ name, title, group: "At a glance", about, draw: () => draw(context) });
  }
  return views;
}

function groupOf(page) {
  if (page.name.startsWith("encoder")) return "Encoder";
  return page.name.startsWith("decoder") ? "Decoder" : "Output";
}

function header(report) {
  return make(
    "header",
    { class: "top" },
    make("p", { class: "brand" }, "Pellucid · one sentence, every equation"),
    make(
      "h1",
      {},
      make("bdi", { class: "source" }, report.sentence.source),
      make("span", { class: "arrow", "aria-label": "becomes" }, " → "),
      make("bdi", { class: "target" }, report.sentence.target || "(nothing)"),
    ),
  );
}

function navigation(report, views) {
  const nav = make("nav", { class: "parts", "aria-label": "Parts of the model" });
  const details = make("details", {}, make("summary", {}, "All pages of this report"));
  let list = null;
  let group = null;
  for (const view of views) {
    if (view.group !== group) {
      group = view.group;
      if (group) details.append(make("p", { class: "group" }, group));
      list = make("ul", {});
      details.append(list);
    }
    const short = view.title.replace(/^(Encoder|Decoder) layer /, "Layer ");
    list.append(make("li", {}, make("a", { href: `#${view.name}` }, short)));
  }
  nav.append(details);
  return nav;
}

/** Marks in the side bar which step of the page is being read, and keeps that mark in sight. */
function followScroll(root, main, nav) {
  const soon = onceAFrame(() => {
    if (!root.isConnected) return;
    const line = window.innerHeight / 3;
    const steps = [...main.querySelectorAll(".step")];
    const begun = steps.filter((step) => step.getBoundingClientRect().top <= line);
    const isAtEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
    const isLong = document.documentElement.scrollHeight > window.innerHeight + 2;
    const here = isAtEnd && isLong ? steps.at(-1) : begun.at(-1) ?? steps[0];
    const links = [...nav.querySelectorAll("a.step-link")];
    const link = here && links[steps.indexOf(here)];
    for (const each of links) {
      if (each === link) each.setAttribute("aria-current", "location");
      else each.removeAttribute("aria-current");
    }
    keepInSight(nav, link ?? nav.querySelector("a[aria-current]"));
  });
  window.addEventListener("scroll", soon, { passive: true });
  window.addEventListener("resize", soon, { passive: true });
  new MutationObserver(soon).observe(main, { childList: true });
}

/** Scrolls `nav` alone; scrollIntoView would move the page as well. */
function keepInSight(nav, link) {
  if (!link || nav.scrollHeight <= nav.clientHeight) return;
  const frame = nav.getBoundingClientRect();
  const box = link.getBoundingClientRect();
  const margin = 3 * box.height;
  if (box.top < frame.top + margin) nav.scrollTop -= frame.top + margin - box.top;
  else if (box.bottom > frame.bottom - margin) nav.scrollTop += box.bottom - frame.bottom + margin;
}

/** The steps of the page that is shown, below its link. */
function showSteps(nav, link, page) {
  nav.querySelector(".steps-here")?.remove();
  if (!page || page.steps.length < 2) return;
  const list = make("ol", { class: "steps-here" });
  for (const step of page.steps) {
    const href = `#${page.name}/${step.name}`;
    list.append(make("li", {}, make("a", { class: "step-link", href }, step.title)));
  }
  link.after(list);
}

function show(context, views, state, main, nav) {
  const view = views[state.at];
  forgetPictures();
  context.inspector.clear();
  // The first page is one wide picture; the list of pages steps aside.
  const isWhole = view.name === "overview";
  main.closest(".pellucid-report").classList.toggle("is-whole", isWhole);
  nav.querySelector("details").open = !isWhole && window.matchMedia("(min-width: 60rem)").matches;
  const body = make("div", { class: "body" });
  const draw = () => {
    body.replaceChildren(...view.draw(state.head));
    for (const wide of body.querySelectorAll(".formula")) {
      if (wide.scrollWidth > wide.clientWidth) wide.setAttribute("tabindex", "0");
    }
  };
  const choose = (head) => {
    state.head = head;
    forgetPictures();
    draw();
  };
  if (view.headCount && state.head >= view.headCount) state.head = 0;
  main.replaceChildren(
    make(
      "div",
      { class: "title" },
      make("h2", { tabindex: "-1" }, view.title),
      view.about ? make("p", { class: "lead" }, view.about) : null,
    ),
    view.headCount > 1 ? headRadios(view.headCount, state.head, { name: "head", style: "heads" }, choose) : "",
    body,
    pageLinks(views, state.at),
    make(
      "p",
      { class: "sources" },
      "EQ numbers are those of docs/EQUATIONS.md in the source of Pellucid, which leads to each equation in words,",
      " as a formula, as code and in numbers.",
    ),
  );
  draw();
  context.inspector.element.hidden = isWhole || body.querySelector(".cells, .beam-board") === null;
  for (const link of nav.querySelectorAll("a:not(.step-link)")) {
    const isHere = link.getAttribute("href") === `#${view.name}`;
    if (!isHere) {
      link.removeAttribute("aria-current");
      continue;
    }
    link.setAttribute("aria-current", "page");
    showSteps(nav, link, context.report.pages.find((page) => page.name === view.name));
  }
}

function stepLinks(page) {
  if (page.steps.length < 2) return "";
  const list = make("ol", { class: "step-links", "aria-label": "Steps on this page" });
  for (const step of page.steps) {
    list.append(make("li", {}, make("a", { href: `#${page.name}/${step.name}` }, step.title)));
  }
  return list;
}

function pageLinks(views, at) {
  const links = make("nav", { class: "turn", "aria-label": "Previous and next page" });
  if (at > 0) {
    links.append(make("a", { class: "previous", href: `#${views[at - 1].name}` }, `← ${views[at - 1].title}`));
  }
  if (at < views.length - 1) {
    links.append(make("a", { class: "next", href: `#${views[at + 1].name}` }, `${views[at + 1].title} →`));
  }
  return links;
}

function settle(main, step) {
  const target = step ? main.querySelector(`#title-${CSS.escape(step)}`) : null;
  const heading = target ?? main.querySelector("h2");
  heading.focus({ preventScroll: true });
  if (target) target.closest("section").scrollIntoView({ block: "start" });
  else window.scrollTo(0, 0);
}

function turnPage(event, views, state, go) {
  if (event.shiftKey || event.target.closest("input, select, textarea, .cells, .beam-board, .table-scroll, .formula")) return;
  const next = { ArrowRight: 1, ArrowLeft: -1 }[plainKey(event)] ?? 0;
  const view = views[state.at + next];
  if (next === 0 || !view) return;
  event.preventDefault();
  if (state.keepsHash) window.history.pushState(null, "", `#${view.name}`);
  go(view.name);
}

const holder = document.getElementById("pellucid-report-data");
if (holder) {
  renderReport(document.getElementById("pellucid-report"), JSON.parse(holder.textContent));
}
