"""Exports a bundle as three ONNX graphs: encoder, decoder, and decoder step with a cache.

The file holds the README of an export with its example program, the export, and the self-check.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.backends.capability import ONNX, SENTENCES, advice_to_export
from pellucid.backends.example_program import (
    GreedySearch,
    example_of,
    greedy_search_of,
    pair_in_words,
)
from pellucid.backends.onnx.graphs import (
    DECODER,
    ENCODER,
    SINUSOIDS,
    STEP,
    decoder_graph,
    encoder_graph,
)
from pellucid.bundle import Bundle, save_tokenizers
from pellucid.core.errors import BundleError, MissingExtraError
from pellucid.core.files import refuse_to_overwrite, write_folder
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from pellucid.core.version import __version__
from pellucid.model.config import TransformerConfig

_PROGRAM = """
{imports}

import numpy as np
import onnxruntime
{others}
about = json.load(open("onnx.json", encoding="utf-8"))
special, never_said, limits = about["special_ids"], about["never_said"], about["limits"]
encoder, decoder, step = (
    onnxruntime.InferenceSession(f"{{name}}.onnx", providers=["CPUExecutionProvider"])
    for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
)
{opened}{tables}

def run(session, feed):
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, feed)))


def translate(source):
    source = source[: limits["source"]]
    most = min(int(len(source) * limits["ratio"]) + limits["extra"], limits["target"])
    source = np.array([[*source, special["stop"]]])
    mask = np.ones_like(source)
    memory = run(encoder, {{"input_ids": source, "attention_mask": mask}})["last_hidden_state"]
    ids, past = [], {{}}
    feed = {{"encoder_hidden_states": memory}}
    session, token = decoder, special["start"]
    while len(ids) < most:
        last = {{"input_ids": np.array([[token]]), "encoder_attention_mask": mask}}
        outputs = run(session, {{**last, **feed}})
        logits = outputs.pop("logits")[0, -1]
        logits[never_said] = -np.inf
        token = int(logits.argmax())
        if token == special["stop"]:
            break
        ids.append(token)
        for name, each in outputs.items():
            past[name.replace("present", "past_key_values")] = each
        session, feed = step, past
    return ids


ids = translate({ids})
print({text})
"""


_CACHES = {
    "self-attention": """`present.N.decoder.*` holds the
keys and values of the prefix and becomes `past_key_values.N.decoder.*` of the next step;
`present.N.encoder.*`, those of the source, come from the first decoder alone and stay the same.""",
    "ssru": """`present.N.decoder.cell` is
the state of an SSRU after the prefix, `present.length` the number of its tokens; they become
`past_key_values.N.decoder.cell` and `past_key_values.length` of the next step. Keys and values of
the source, `present.N.encoder.*`, come from the first decoder alone and stay the same.""",
}
"""A sentence on the cache, by the kind of decoder."""


def readme(bundle: Bundle, search: GreedySearch, example: str = "") -> str:
    """The page as Markdown, with a program that translates ``example`` and needs no torch."""
    config = bundle.model.config
    assert isinstance(config, TransformerConfig)
    shown = example_of(bundle, example)
    own = [each for each in shown.imports if each != "sentencepiece"]
    program = _PROGRAM.strip().format(
        imports="\n".join(f"import {each}" for each in sorted({"json", *own})),
        others="import sentencepiece\n" if "sentencepiece" in shown.imports else "",
        opened=shown.opened,
        tables=shown.tables,
        ids=shown.reading.ids,
        text=shown.writing.ids,
    )
    pair = pair_in_words(bundle)
    return f"""# A translation model as ONNX graphs{pair and f": {pair}"}

Exported by Pellucid {__version__}: {config.summary()}, float32, opset 17. All weights are inside
the files.

| file | reads | gives |
|---|---|---|
| `encoder_model.onnx` | `input_ids`, `attention_mask` (1 real, 0 padding) | `last_hidden_state` |
| `decoder_model.onnx` | the prefix, start first; `encoder_hidden_states` | `logits`, `present` |
| `decoder_with_past_model.onnx` | the newest token; `past_key_values` | `logits`, `present` |

Both decoders read `input_ids` and `encoder_attention_mask` too. {_CACHES[config.decoder]}

`onnx.json` lists every input and output with its shape, the special ids, the longest sequence, and
the limits of a search: tokens of a source that are read, and of a translation, which has at most
`ratio` times as many as its source and `extra` more.
A source ends with the stop. Padding and start are never generated: rule them out, as below.

A greedy search without Pellucid and without PyTorch, in this folder; it
{search.gives(shown.writing.note)}:

```python
{program}
```
"""


_log = logging.getLogger("pellucid")

OPSET, IR_VERSION = 17, 8
"""The oldest opset with LayerNormalization (onnx 1.12, 2022), so that old runtimes can load it."""
_LARGEST_FILE = (1 << 31) - (1 << 20)
"""Bytes: a protobuf message, and so one ONNX file, is limited to 2 GB."""
_MOST_PIECES = 12
"""Tokens of a sentence in the self-check, which runs in plain NumPy and is slow."""
_TOLERANCE = 1e-4
"""Relative to the largest logit, both sides in float32. A wrong node differs by as much as that."""


def export_onnx(bundle: Bundle, out: Path, example: str = "") -> None:
    """Write ``bundle`` to the new folder ``out`` as ONNX, with its tokenizers and a README.

    Its program translates ``example``, or a sentence that the model can read.

    The graphs are validated by ONNX's checker, and ONNX's reference evaluator must compute our
    logits with them on a few sentences.

    Raises MissingExtraError without onnx, BundleError with every reason why the graphs cannot
    express the model, OutputExistsError if ``out`` holds something, WriteError.
    """
    try:
        import onnx
        import onnx.reference
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "exporting to ONNX") from None

    refuse_to_overwrite(out)

    config = bundle.model.config
    problems = ONNX.model_problems(config)
    if problems:
        raise BundleError(
            "the ONNX graphs cannot express this model: " + "; ".join(problems),
            hint=advice_to_export(config),
        )
    assert isinstance(config, TransformerConfig)  # of any other kind there are problems

    named = bundle.model.named_parameters(remove_duplicate=False)
    tensors = {name: tensor.detach().cpu().float() for name, tensor in named}
    models = _models(onnx, config, tensors)
    _prove(bundle, {name: onnx.reference.ReferenceEvaluator(each) for name, each in models.items()})

    # A learned table ends where training ended it; the other tables end where the graph's does.
    longest = config.max_positions if config.positions == "learned" else SINUSOIDS
    search = greedy_search_of(bundle, longest)
    about = _about(bundle, longest, search, models)
    if search.lost:
        _log.warning(
            "not exported of the search settings, as graphs only compute scores: %s", search.lost
        )

    def fill(folder: Path) -> None:
        for name, model in models.items():
            (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        (folder / "onnx.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
        (folder / "README.md").write_text(readme(bundle, search, example), encoding="utf-8")
        save_tokenizers(folder, bundle.source_tokenizer, bundle.target_tokenizer)

    write_folder(out, fill, details={"kind": "onnx"})


def _models(onnx: Any, config: TransformerConfig, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """The three graphs, validated by ONNX's checker. Raises BundleError if one is too large."""
    # A decoder without and one with a cache, because an ONNX input cannot be left out: the first
    # step has no keys and values yet.
    graphs = {
        ENCODER: encoder_graph(onnx, config, tensors),
        DECODER: decoder_graph(onnx, config, tensors, has_past=False),
        STEP: decoder_graph(onnx, config, tensors, has_past=True),
    }
    models = {
        name: graph.model(name, OPSET, IR_VERSION, f"pellucid {__version__}")
        for name, graph in graphs.items()
    }

    # Checked here, because a larger message would fail inside protobuf.
    large = [name for name, model in models.items() if model.ByteSize() > _LARGEST_FILE]
    if large:
        raise BundleError(f"one ONNX file holds at most 2 GB, too little for {', '.join(large)}")

    for model in models.values():
        onnx.checker.check_model(model, full_check=True)
    return models


def _prove(bundle: Bundle, evaluators: Mapping[str, Any]) -> None:
    """Check that the graphs give our logits, for whole prefixes and step by step."""
    longest = bundle.max_length
    most = _MOST_PIECES if longest is None else min(_MOST_PIECES, longest - 1)
    for text in SENTENCES:
        source = [*bundle.source_tokenizer.encode(text)[:most], EOS_ID]
        target = [BOS_ID, *bundle.target_tokenizer.encode(text)[:most]]
        with torch.inference_mode():
            device = next(bundle.model.parameters()).device
            rows = (torch.tensor([ids], device=device) for ids in (source, target))
            # In float32, as the graphs compute.
            ours = bundle.model(*rows)[0].float().cpu().numpy()  # (target, vocabulary)

        whole, steps = _both_ways(evaluators, source, target)

        largest = max(1.0, float(np.abs(ours).max()))
        for way, theirs in (("the whole prefix", whole), ("single steps", steps)):
            difference = float(np.abs(ours - theirs).max())
            if not difference <= _TOLERANCE * largest:
                raise BundleError(
                    f"the self-check failed: on {text!r}, read by {way}, the logits differ by"
                    f" {difference:g}, the largest being {largest:g}",
                    hint="this is a defect of Pellucid, or the model holds numbers that are not"
                    " finite",
                )


def _both_ways(
    evaluators: Mapping[str, Any], source: list[int], target: list[int]
) -> tuple[Any, Any]:
    """The logits (target, vocabulary) computed at once, and with the cache step by step."""
    mask = np.ones((1, len(source)), dtype=np.int64)
    feed = {"input_ids": np.array([source], dtype=np.int64), "attention_mask": mask}
    # (1, source, d_model)
    [memory] = evaluators[ENCODER].run(None, feed)

    feed = {"encoder_hidden_states": memory, "encoder_attention_mask": mask}
    ids = np.array([target], dtype=np.int64)
    # Teacher forcing: one row of logits for each token of the target.
    whole = _run(evaluators[DECODER], {**feed, "input_ids": ids})["logits"][0]

    # The decoder without a cache reads two tokens first, so that the cache it returns is longer
    # than one and a mistake in its axes shows.
    begin = min(2, len(target))
    outputs = _run(evaluators[DECODER], {**feed, "input_ids": ids[:, :begin]})
    rows, past = [outputs["logits"][0]], _as_past(outputs)
    for position in range(begin, len(target)):
        token = ids[:, position : position + 1]
        inputs = {"input_ids": token, "encoder_attention_mask": mask, **past}
        # One token in, one row of logits out: (1, 1, vocabulary).
        outputs = _run(evaluators[STEP], inputs)
        rows.append(outputs["logits"][0])
        # A step returns its own keys and values, those of the source stay.
        past |= _as_past(outputs)
    return whole, np.concatenate(rows)


def _run(evaluator: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return dict(zip(evaluator.output_names, evaluator.run(None, dict(inputs)), strict=True))


def _as_past(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The cache that a step returns, renamed to the inputs of the next step."""
    return {
        name.replace("present", "past_key_values"): value
        for name, value in outputs.items()
        if name.startswith("present")
    }


def _about(
    bundle: Bundle, longest: int, search: GreedySearch, models: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of ``onnx.json``: what a program needs to run the graphs."""
    config = bundle.model.config
    assert isinstance(config, TransformerConfig)

    return {
        "made_by": f"pellucid {__version__}",
        "opset": OPSET,
        "special_ids": {"pad": PAD_ID, "unk": UNK_ID, "start": BOS_ID, "stop": EOS_ID},
        # The name is that of the first exports; programs read it.
        "never_said": [PAD_ID, BOS_ID],
        "decoder_layers": config.decoder_layers,
        "longest": longest,
        "limits": {
            "source": search.source,
            "ratio": search.ratio,
            "extra": search.extra,
            "target": search.target,
        },
        "graphs": {
            f"{name}.onnx": {
                "inputs": {each.name: _shape(each) for each in model.graph.input},
                "outputs": {each.name: _shape(each) for each in model.graph.output},
            }
            for name, model in models.items()
        },
    }


def _shape(value: Any) -> list[str | int]:
    dimensions = value.type.tensor_type.shape.dim
    return [each.dim_param or each.dim_value for each in dimensions]
