// The server's answers, and its refusals in words.

const KEY = "pellucid-key";
const PATIENCE_MS = 60_000; // the server gives up after 30 s by default

let key = "";
try {
  key = sessionStorage.getItem(KEY) ?? "";
} catch {
  // a browser that keeps nothing: the key lives as long as the page
}

/** Keep the server's key until the tab is closed. */
export function setKey(value) {
  key = value.trim();
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // kept in memory only
  }
}

/** What went wrong, in a sentence; `retrySeconds` if it is worth trying again by itself. */
export class Problem extends Error {
  constructor(kind, message, { retrySeconds = null, canRetry = true } = {}) {
    super(message);
    this.kind = kind;
    this.retrySeconds = retrySeconds;
    this.canRetry = canRetry;
  }
}

export const getJson = (path, signal) => call(path, { signal });

/** POST `body`; undefined fields are left out. Throws Problem, or AbortError if `signal` says so. */
export const postJson = (path, body, signal) =>
  call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });

/** As `postJson`, for an answer that is a file. */
export async function postForText(path, body, signal) {
  const response = await send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  return response.text();
}

/** The text at `path`. Throws as `postJson`. */
export const getText = async (path) => (await send(path, {})).text();

/** An answer that is a file to save: its name and its content. */
export async function callForFile(path, options = {}) {
  const response = await send(path, options);
  const [, name = "document"] = /filename\*=UTF-8''(\S+)/.exec(response.headers.get("Content-Disposition") ?? "") ?? [];
  return { name: decodeURIComponent(name), blob: await response.blob() };
}

/** The JSON of an answer. Throws as `postJson`. */
export async function call(path, options) {
  const response = await send(path, options);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("unreadable", "The server’s answer could not be read.");
  }
}

async function send(path, { headers = {}, signal, patience: ms = PATIENCE_MS, ...options }) {
  const patience = AbortSignal.timeout(ms);
  let response;
  try {
    response = await fetch(path, {
      ...options,
      headers: key ? { ...headers, Authorization: `Bearer ${key}` } : headers,
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (error.name === "TimeoutError") {
      const minutes = ms === PATIENCE_MS ? "a minute" : `${Math.round(ms / 60_000)} minutes`;
      throw new Problem("slow", `The server did not answer within ${minutes}. Your text is still here.`);
    }
    throw new Problem("down", "The server cannot be reached. Your text is still here.", {
      retrySeconds: 3,
    });
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const said = await response.json().catch(() => ({}));
  const detail = typeof said.detail === "string" ? sentence(said.detail) : "";
  const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const wait = Number.isFinite(seconds) && seconds >= 0 ? Math.min(Math.max(seconds, 1), 120) : 5;
  switch (response.status) {
    case 401:
      return new Problem("key", "This server asks for a key.", { canRetry: false });
    case 408:
      return new Problem("slow", "The file or text did not reach the server in time.");
    case 413:
      return new Problem("long", `The text is too long for this server. ${detail}`.trim(), {
        canRetry: false,
      });
    case 400:
    case 422:
      return new Problem("refused", `The server cannot take this text. ${detail}`.trim(), {
        canRetry: false,
      });
    case 404:
      return new Problem("missing", detail || "This server does not offer that.", {
        canRetry: false,
      });
    case 409:
      return new Problem("refused", `Not with this model. ${detail}`.trim(), { canRetry: false });
    case 429:
      return new Problem("busy", "The server has more to do than it can take.", {
        retrySeconds: wait,
      });
    case 503:
      return new Problem("away", "The server is starting or stopping.", { retrySeconds: wait });
    case 504:
      return new Problem("slow", "This took longer than the server allows. A shorter text may do.");
    default: {
      const id = typeof said.request_id === "string" ? `, request ${said.request_id}` : "";
      return new Problem("problem", `Something went wrong in the server (${response.status}${id}).`);
    }
  }
}

function sentence(text) {
  if (text === "") return "";
  const capital = text[0].toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
