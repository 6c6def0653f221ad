// The page of all attention weights.

import { digits, make, percent } from "../ui/dom.js";
import { headView, kindsOf } from "../ui/heads.js";

/** All heads at a glance, one of them large, and the heads of cross-attention that align best. */
export function allHeads(context) {
  const layers = context.report.attention.map((place) => ({
    name: place.page,
    heads: Array.from({ length: place.heads }, (_, head) =>
      context.matrix(place.weights.replaceAll("{head}", String(head))),
    ).filter(Boolean),
  }));
  const kinds = kindsOf(layers.filter(({ heads }) => heads.length > 0));
  if (kinds.length === 0) return [];
  const view = headView(kinds, {
    onPick: ({ matrix, head }, row, column, byKeyboard) => {
      context.inspector.show(null, matrix, row, column, head ?? 0, null, byKeyboard);
    },
    onLeave: () => context.inspector.clear(),
    below: ({ layer }) => make("a", { href: `#${layer.name}/weights` }, "See how it is computed"),
  });
  return [view, ranking(context)].filter(Boolean);
}

/** The heads of cross-attention that agree best with all others. */
function ranking(context) {
  const ranks = context.report.ranks ?? [];
  if (ranks.length < 2) return null;
  const list = make("ol", { class: "ranks" });
  for (const rank of ranks) {
    const [, layer, head] = /layers\.(\d+)\..*heads\.(\d+)\./.exec(rank.name);
    list.append(
      make(
        "li",
        {},
        `layer ${layer}, head ${head}`,
        make("span", { class: "shape" }, ` ${percent(rank.agreement)}, entropy ${digits(rank.entropy)} nats`),
      ),
    );
  }
  return make(
    "details",
    { class: "ranking" },
    make("summary", {}, "Heads of cross-attention that align best"),
    make(
      "p",
      { class: "about" },
      "Mean weight on the source token that the other heads together attend to most, in this sentence.",
    ),
    list,
  );
}
