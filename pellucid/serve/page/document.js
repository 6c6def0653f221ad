// A document: chosen or dropped, uploaded, translated on the server, and saved.

import { call, callForFile } from "./api.js";
import { byId } from "./ui/elements.js";
import { chosenGlossary, chosenModel } from "./models.js";

const ASK_AGAIN_MS = 400;
const UPLOAD_PATIENCE_MS = 180_000; // the server waits two minutes for a large file by default

let current = null; // the id of the document on the server
let uploading = null; // aborts the upload in progress
let turn = 0; // so that an answer about an earlier document changes nothing

/** Wire the place for documents; to be called once. */
export function watchDocuments() {
  const place = byId("document");
  const field = byId("document-file");
  field.addEventListener("change", () => {
    const [file] = field.files;
    field.value = "";
    if (file !== undefined) send(file);
  });
  for (const kind of ["dragenter", "dragover"]) {
    place.addEventListener(kind, (event) => {
      event.preventDefault();
      place.classList.add("over");
    });
  }
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file !== undefined) send(file);
  });
  byId("document-stop").addEventListener("click", forget);
  byId("document-save").addEventListener("click", save);
}

async function send(file) {
  await forget();
  const mine = ++turn;
  show(`Uploading ${file.name}`, { isBusy: true });
  const form = new FormData();
  form.append("file", file);
  const model = chosenModel()?.name;
  if (model !== undefined) form.append("model", model);
  const glossary = chosenGlossary();
  if (glossary !== undefined) form.append("glossary", glossary);
  const upload = new AbortController();
  uploading = upload;
  try {
    let state = await call("/v1/documents", {
      method: "POST",
      body: form,
      signal: upload.signal,
      patience: UPLOAD_PATIENCE_MS,
    });
    if (mine !== turn) {
      drop(state.id); // cancelled when the server had it already
      return;
    }
    current = state.id;
    draw(file.name, state);
    while (state.state === "waiting" || state.state === "running") {
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      if (mine !== turn) return;
      const next = await progress(state.id, mine);
      if (next === null) return;
      state = next;
      draw(file.name, state);
    }
  } catch (problem) {
    if (mine === turn && problem.name !== "AbortError") show(problem.message, {});
  } finally {
    if (uploading === upload) uploading = null;
  }
}

/** How far a document is, asked again while the server is away; null if it was given up. */
async function progress(id, mine) {
  for (;;) {
    let wait;
    try {
      const state = await call(`/v1/documents/${id}`, {});
      return mine === turn ? state : null;
    } catch (problem) {
      if (mine !== turn) return null;
      if (problem.retrySeconds === null || problem.retrySeconds === undefined) throw problem;
      show(problem.message, { isBusy: true });
      wait = 1000 * problem.retrySeconds;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (mine !== turn) return null;
  }
}

function draw(name, state) {
  if (state.state === "done") {
    const notes = state.notes.map((note) => ` Note: ${note}.`).join("");
    show(`${name} is translated.${notes}`, { isDone: true });
  } else if (state.state === "failed") {
    show(`${name} could not be translated: ${state.detail}`, {});
  } else {
    const { sentences_done: done, sentences: all } = state;
    const count = all === 0 ? "" : `: ${done} of ${all} ${all === 1 ? "sentence" : "sentences"}`;
    show(`Translating ${name}${count}`, { isBusy: true, done, all });
  }
}

function show(text, { isBusy = false, isDone = false, done = 0, all = 0 }) {
  byId("document-state").hidden = false;
  byId("document-state").textContent = text;
  const bar = byId("document-progress");
  bar.hidden = !isBusy;
  if (all > 0) {
    bar.max = all;
    bar.value = done;
  } else {
    bar.removeAttribute("value");
  }
  byId("document-stop").hidden = !isBusy;
  byId("document-save").hidden = !isDone;
}

async function save() {
  const id = current;
  try {
    const { name, blob } = await callForFile(`/v1/documents/${id}/file`);
    const address = URL.createObjectURL(blob);
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  } catch (problem) {
    // The file is still there, unless the server says otherwise.
    show(problem.message, { isDone: problem.kind !== "missing" });
  }
}

async function forget() {
  turn += 1;
  uploading?.abort();
  uploading = null;
  const id = current;
  current = null;
  byId("document-state").hidden = true;
  for (const name of ["document-progress", "document-stop", "document-save"]) byId(name).hidden = true;
  if (id !== null) await drop(id);
}

const drop = (id) => callForFile(`/v1/documents/${id}`, { method: "DELETE" }).catch(() => {});
