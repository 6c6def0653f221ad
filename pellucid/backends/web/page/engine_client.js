// The engine as the page sees it: methods that promise. It computes in a worker, or here if none can start.

/**
 * Start the engine: `script` is its text, which defines `PellucidEngine`; `header` and `bytes` are the model.
 *
 * The result has the methods of the model, each of which promises.
 */
export async function startEngine(script, header, bytes) {
  const worker = makeWorker(script);
  if (worker !== null) {
    const client = await openIn(worker, header, bytes).catch(() => null);
    if (client !== null) return client;
  }
  const { openModel, callModel } = PellucidEngine; // the other script of this page
  const model = openModel(header, bytes);
  return withMethods(header, async (method, parameters) => callModel(model, method, parameters));
}

/** A worker made from text that this file holds; null where the browser allows none. */
function makeWorker(script) {
  try {
    const text = `${script}\nPellucidEngine.answerMessages(self);`;
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    return worker;
  } catch {
    return null;
  }
}

async function openIn(worker, header, bytes) {
  const waiting = new Map();
  let last = 0;
  const call = (method, parameters) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      worker.postMessage({ id: last, method, parameters });
    });
  worker.onmessage = ({ data: { id, result, problem } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (problem === undefined) resolve(result);
    else reject(new Error(problem));
  };
  worker.onerror = () => {
    for (const { reject } of waiting.values()) reject(new Error("the worker failed"));
    waiting.clear();
  };
  // sent as a copy: if the worker fails, the page computes with its own
  await call("open", [header, bytes]);
  return withMethods(header, call);
}

const NAMES = [
  "alternatives", "continueText", "explain", "fillMasks", "idsOf", "parameter", "readSource", "readTarget",
  "run", "tokens", "translate", "translateLines",
];

function withMethods(header, call) {
  const methods = NAMES.map((name) => [name, (...parameters) => call(name, parameters)]);
  return { header, config: header.config, ...Object.fromEntries(methods) };
}
