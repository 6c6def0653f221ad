"""The README beside exported graphs, with a program that translates by them."""

from pellucid import __version__
from pellucid.bundle import Bundle

_PROGRAM = """
import json
from pathlib import Path

import numpy as np
import onnxruntime

from pellucid.bundle import load_tokenizers

folder = Path(".")
about = json.loads((folder / "onnx.json").read_text())
special, never_said = about["special_ids"], about["never_said"]
encoder, decoder, step = (
    onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
    for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
)
read, written = load_tokenizers(folder)


def run(session, feed):
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, feed)))


def translate(text, max_length=100):
    source = np.array([[*read.encode(text), special["stop"]]])
    mask = np.ones_like(source)
    memory = run(encoder, {"input_ids": source, "attention_mask": mask})["last_hidden_state"]
    ids, past = [], {}
    feed = {"encoder_hidden_states": memory}
    session, token = decoder, special["start"]
    while len(ids) < max_length:
        last = {"input_ids": np.array([[token]]), "encoder_attention_mask": mask}
        outputs = run(session, {**last, **feed})
        logits = outputs.pop("logits")[0, -1]
        logits[never_said] = -np.inf
        token = int(logits.argmax())
        if token == special["stop"]:
            break
        ids.append(token)
        past |= {name.replace("present", "past_key_values"): each for name, each in outputs.items()}
        session, feed = step, past
    return written.decode(ids)


print(translate("{sentence}"))
"""


def readme(bundle: Bundle) -> str:
    """The page as Markdown."""
    config = bundle.model.config
    program = _PROGRAM.strip().replace("{sentence}", "A dog runs on the beach.")
    return f"""# A translation model as ONNX graphs

Exported by Pellucid {__version__}: {config.summary()}, float32, opset 17. All weights are inside
the files.

| file | reads | gives |
|---|---|---|
| `encoder_model.onnx` | `input_ids`, `attention_mask` (1 real, 0 padding) | `last_hidden_state` |
| `decoder_model.onnx` | the prefix, start first; `encoder_hidden_states` | `logits`, `present` |
| `decoder_with_past_model.onnx` | the newest token; `past_key_values` | `logits`, `present` |

Both decoders read `input_ids` and `encoder_attention_mask` too. `present.N.decoder.*` holds the
keys and values of the prefix and becomes `past_key_values.N.decoder.*` of the next step;
`present.N.encoder.*`, those of the source, come from the first decoder alone and stay the same.

`onnx.json` lists every input and output with its shape, the special ids, and the longest sequence.
A source ends with the stop. Padding and start are never said: rule them out, as below.

A greedy search, which says what `pellucid translate --beam-size 1` says:

```python
{program}
```
"""
