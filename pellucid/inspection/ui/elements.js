// Small help of the pages that translate: the server's, and the exported file.

export const byId = (id) => document.getElementById(id);

/** 0.273 as 27%, and what is nearly nothing as <1%. */
export function percent(probability) {
  const rounded = Math.round(probability * 100);
  return rounded === 0 && probability > 0 ? "<1%" : `${rounded}%`;
}
