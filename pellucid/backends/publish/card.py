"""The card of a published model: Markdown whose head, in YAML, the Hub reads."""

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.backends.example_program import model_name, pair_in_words
from pellucid.backends.huggingface.export_folder import translation_of_export
from pellucid.bundle import VALIDATION_KEY, Bundle
from pellucid.core.version import __version__
from pellucid.evaluation.evaluate import Evaluation
from pellucid.evaluation.metrics import METRICS
from pellucid.text.languages import UNKNOWN, languages_of

_MEASURED = ("bleu", "chrf")
"""The figures that the Hub shows."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A score of a model, with what is needed to repeat it."""

    metric: str
    """A name of ``METRICS``."""
    value: float
    """In percent."""
    signature: str
    text: str
    """The text that was translated."""


@dataclasses.dataclass(frozen=True)
class Card:
    """The words and figures of a card that the bundle does not have."""

    license: str
    """The identifier of a license, as the Hub knows it."""
    figures: Sequence[Figure]
    repository: str
    """``ORG/NAME`` on the Hub; empty if it has none yet."""
    example: str
    problems: Sequence[str]
    """Why the files are those of a bundle and none for transformers; empty if they are."""


def figures_of_test(evaluation: Evaluation, text: str) -> list[Figure]:
    """The figures of a test set that was translated now."""
    return [
        Figure(name, float(getattr(evaluation, name)), evaluation.signatures[name], text)
        for name in _MEASURED
    ]


def figures_of_run(manifest: Mapping[str, Any]) -> list[Figure]:
    """The figures of the validation that a bundle was saved at; none if its manifest has none."""
    stored = manifest.get(VALIDATION_KEY)
    table = stored if isinstance(stored, dict) else {}
    figures = []
    for name in _MEASURED:
        match table.get(name):
            case [float(value), str(signature)]:
                figures.append(Figure(name, value, signature, "validation text of the run"))
    return figures


def card_text(bundle: Bundle, card: Card) -> str:
    """The card as Markdown with its head."""
    name = card.repository.partition("/")[2] or model_name(bundle)
    pair = pair_in_words(bundle)
    left_out = ""
    if card.problems:
        left_out = (
            "\nIt is a bundle of Pellucid. There are no files for transformers, whose Marian model"
            f" cannot express it: {'; '.join(card.problems)}.\n"
        )
    return f"""---
{yaml_text(_head(bundle, card, name))}---

# {name}{pair and f": {pair}"}

A translation model{pair and f" from {pair}"}, trained with Pellucid {__version__}:
{bundle.config.summary()}, {bundle.parameter_count:,} parameters.
{left_out}
## Use

{_use(bundle, card)}
## Scores

{_scores(card.figures)}
"""


def _head(bundle: Bundle, card: Card, name: str) -> dict[str, Any]:
    codes = languages_of(bundle.settings, model_name(bundle))
    known = list(dict.fromkeys(code for code in codes if code != UNKNOWN))
    program = "pellucid" if card.problems else "transformers"
    head: dict[str, Any] = {
        **({"language": known} if known else {}),
        "license": card.license,
        "library_name": program,
        "pipeline_tag": "translation",
        "tags": ["translation", "pellucid", *([] if card.problems else ["marian"])],
    }
    if card.figures:
        head["model-index"] = [{"name": name, "results": _results(card.figures, codes)}]
    return head


def _results(figures: Sequence[Figure], codes: tuple[str, str]) -> list[dict[str, Any]]:
    """The figures by text, as the Hub's specification of cards wants them."""
    task = {"type": "translation", "name": f"Translation {'-'.join(codes)}"}
    by_text: dict[str, list[dict[str, Any]]] = {}
    for each in figures:
        by_text.setdefault(each.text, []).append(
            {
                "type": each.metric,
                "name": METRICS[each.metric].in_validation,
                "value": round(each.value, 2),
                "args": {"signature": each.signature},
            }
        )
    return [
        {"task": task, "dataset": {"type": "text", "name": text}, "metrics": metrics}
        for text, metrics in by_text.items()
    ]


def _use(bundle: Bundle, card: Card) -> str:
    place = card.repository or "path/to/this/folder"
    command = f"hf://{place}" if card.repository else place
    ours = f"""```
echo {shlex.quote(card.example)} | pellucid translate {command}
```
"""
    if card.problems:
        return ours
    normalized = ""
    if bundle.source_tokenizer.normalization == "nfc":
        normalized = (
            "transformers does not normalize text as this model reads it: compose it (NFC) and make"
            " all white space ordinary spaces first.\n\n"
        )
    # transformers would give as many translations as the model's settings ask for, by a beam alone
    several = bundle.settings.get("decoding", {}).get("n_best", 1) > 1
    alone = ", num_return_sequences=1" if several else ""
    translation = translation_of_export(bundle, card.example)
    return f"""```python
from transformers import MarianMTModel, MarianTokenizer

model = MarianMTModel.from_pretrained({_quoted(place)})
tokenizer = MarianTokenizer.from_pretrained({_quoted(place)})
batch = tokenizer([{_quoted(card.example)}], return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**batch, num_beams=1{alone}), skip_special_tokens=True))
# [{_quoted(translation)}]
```

{normalized}With Pellucid:

{ours}"""


def _scores(figures: Sequence[Figure]) -> str:
    if not figures:
        return "None were measured."
    rows = "\n".join(
        f"| {each.text} | {METRICS[each.metric].in_validation} |"
        f" {each.value:{METRICS[each.metric].format}} | {_cell(each.signature)} |"
        for each in figures
    )
    return f"| text | figure | value | signature |\n|---|---|---|---|\n{rows}"


def _cell(text: str) -> str:
    """Text for a table, whose cells a bare ``|`` would end."""
    return text.replace("|", "\\|")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def yaml_text(table: Mapping[str, Any]) -> str:
    """A table as YAML: JSON's strings and numbers, which YAML reads as JSON does, one a line."""
    return "".join(_lines(table, 0))


def _lines(value: Any, depth: int) -> list[str]:
    """The lines of a table or a list, each with its line feed."""
    space = "  " * depth
    entries = (
        [(f"{key}:", each) for key, each in value.items()]
        if isinstance(value, Mapping)
        else [("-", each) for each in value]
    )
    lines = []
    for mark, each in entries:
        if isinstance(each, Mapping | list):
            lines += [f"{space}{mark}\n", *_lines(each, depth + 1)]
        else:
            lines.append(f"{space}{mark} {json.dumps(each, ensure_ascii=False)}\n")
    return lines
