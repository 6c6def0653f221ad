"""The model card: what a bundle is, how good, and how to use it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

from pellucid.core.version import __version__
from pellucid.evaluation.metrics import METRICS
from pellucid.evaluation.scoring import TITLES, Decider
from pellucid.model.config import (
    DecoderConfig,
    EncoderConfig,
    ModelConfig,
    SkipGramConfig,
    TranslatorSettings,
)
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.run import Progress
from pellucid.training.validation import Validation
from pellucid.training.verdict import verdict


def model_card(
    config: RunConfig,
    data: TrainingData,
    validation: Validation | None,
    progress: Progress,
    decider: Decider,
) -> str:
    """The card as Markdown, every figure with what is needed to repeat it.

    ``validation`` is None for a run that was stopped before its first one.
    """
    model, training = config.model, config.training
    purpose = "translation model" if model.translates else "model of plain text"
    items = "pairs" if model.translates else "passages"
    several = (
        f"\n- Source lines of several sentences: {data.several_sentences:.1%} of a sample"
        if model.translates
        else ""
    )
    return f"""# A {model.kind} {purpose}

Trained with Pellucid {__version__}.{_origin(config)}

## Data

- Training {items}: {len(data.rows):,} from {data.description} (fingerprint `{data.fingerprint}`)
- Validation {items}: {len(data.valid_sources):,}{several}
- Tokenizer: {data.target_tokenizer.kind}, {data.source_tokenizer.vocabulary_size:,} source and
  {data.target_tokenizer.vocabulary_size:,} target tokens

## Model

{model.summary()}.
Trained for {progress.step:,} updates ({progress.target_tokens:,} target tokens,
{progress.seconds / 60:.1f} minutes), seed {training.seed}.

## Validation scores

{_validated(model, validation, decider, f"beam {training.validate_beam_size}")}

## Use

{_use(model)}
"""


def average_card(
    model: ModelConfig, names: Sequence[str], members: Sequence[tuple[str, float]]
) -> str:
    """The card of an average of bundles: their folders' names, and hash and weight of each."""
    purpose = "translation model" if model.translates else "model of plain text"
    total = sum(weight for _, weight in members)
    rows = "\n".join(
        f"| `{name}` | `{digest}` | {weight / total:.1%} |"
        for name, (digest, weight) in zip(names, members, strict=True)
    )
    validated = "score it with `pellucid evaluate`" if model.translates else "try it before use"
    return f"""# An average of {model.kind} models: a {purpose}

Every parameter is the mean of that parameter in {len(members)} models. Made with Pellucid
{__version__} and not validated: {validated}.

| bundle | SHA-256 of its manifest | share |
|---|---|---|
{rows}

## Model

{model.summary()}.
The section `training` of `config.toml` describes the first of them only.

## Use

{_use(model)}
"""


def _validated(
    model: ModelConfig, validation: Validation | None, decider: Decider, search: str
) -> str:
    if validation is None:
        return "None: training was stopped before the first validation."

    lines = ["| figure | value | signature |", "|---|---|---|"]
    for name, each in (validation.translations or {}).items():
        signature = each.signature.replace("|", "\\|")  # a bare one would end the cell
        value = f"{each.score:{METRICS[name].format}}"
        lines.append(f"| {METRICS[name].in_validation} | {value} | {signature}, {search} |")
    of_pairs = isinstance(model, SkipGramConfig)
    what = "loss" if of_pairs else "cross-entropy"
    unit = "nats a pair of neighbors" if of_pairs else "nats a token"
    lines.append(f"| {what} | {validation.loss:.4f} {unit} | validation text |")

    why = f" ({decider.why})" if decider.why else ""
    found = verdict(decider.name, validation.scores().get(decider.name))
    # What would help is for who trains, and not for who uses the model.
    judged = f"\nBy that it is {dataclasses.replace(found, advice='')}." if found else ""
    decided = f"Which model of the run is best was decided by {TITLES[decider.name]}{why}."
    return "\n".join([*lines, "", decided + judged])


def _use(model: ModelConfig) -> str:
    folder = "path/to/this/folder"
    match model:
        case EncoderConfig():
            return f'`pellucid fill {folder} "one [MASK] text"`.'
        case DecoderConfig():
            return f'`pellucid continue {folder} "the beginning of a text"`.'
        case SkipGramConfig():
            return f"`pellucid vectors nearest {folder} WORD`."
        case TranslatorSettings():
            return f"""```python
import pellucid

translator = pellucid.load("{folder}")
[translation] = translator.translate(["..."])
print(translation.text)
```

or `echo "..." | pellucid translate {folder}`."""
        case _:
            assert_never(model)


def _origin(config: RunConfig) -> str:
    """Return a paragraph on the bundles that the run began with and learned from; empty if none."""
    training = config.training

    # Folders are left out: a bundle that is passed on must tell nothing about the machine it was
    # made on.
    taught = ""
    if training.teacher:
        named = zip(training.teacher, training.teacher_manifest, strict=True)
        teachers = "; ".join(
            f"the bundle `{Path(path).name}`, whose manifest has the SHA-256\n`{digest}`"
            for path, digest in named
        )
        taught = (
            f"\nTaught word by word by {teachers}, with weight"
            f" {training.teacher_weight:g} and temperature {training.teacher_temperature:g}."
        )
    if training.init is None:
        return taught
    frozen = f" Frozen: {', '.join(f'`{each}`' for each in training.freeze)}."
    return (
        f"\nFine-tuned from the bundle `{Path(training.init).name}`, whose manifest has the SHA-256"
        f"\n`{training.parent}`.{frozen if training.freeze else ''}{taught}"
    )
