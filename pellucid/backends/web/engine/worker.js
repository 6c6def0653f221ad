// The engine in a worker: the page asks by messages, and stays free while the model computes.

import { openModel as open } from "./model.js";

export const openModel = open; // for a page that may start no worker

/** Answer the page's messages: `{ id, method, parameters }` with `{ id, result }` or `{ id, problem }`. */
export function answerMessages(scope) {
  let model = null;
  scope.onmessage = ({ data: { id, method, parameters } }) => {
    try {
      if (method === "open") {
        model = open(...parameters);
        scope.postMessage({ id });
        return;
      }
      scope.postMessage({ id, result: callModel(model, method, parameters) });
    } catch (error) {
      scope.postMessage({ id, problem: String(error?.message ?? error) });
    }
  };
}

const METHODS = new Set([
  "alternatives", "continueText", "explain", "fillMasks", "idsOf", "parameter", "readSource", "readTarget",
  "run", "tokens", "translate", "translateLines",
]);

/** What a method of the model gives; tensors are copied out of memory that is used again. */
export function callModel(model, method, parameters) {
  if (!METHODS.has(method)) throw new Error(`the engine has no ${method}`);
  const result = model[method](...parameters);
  if (method === "parameter") return { ...result, values: result.values.slice() };
  if (method === "readSource") return { ...result, restored: undefined }; // a function cannot be sent
  if (method !== "run") return result;
  // heads are parts of one stack, whose memory is sent once; what is not theirs is cut out of its table
  return new Map(
    [...result].map(([name, { shape, values }]) => [
      name,
      { shape, values: /\.positions$|\.lookup$/.test(name) ? values.slice() : values },
    ]),
  );
}
