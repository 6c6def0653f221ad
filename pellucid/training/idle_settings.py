"""Settings that change nothing in a run, because the setting that they belong to is off."""

from collections.abc import Callable, Mapping
from typing import Any

from pellucid.decoding.config import DecodingConfig
from pellucid.text.config import SENTENCEPIECE_KINDS
from pellucid.training.config import RunConfig

_Condition = tuple[str, Callable[[RunConfig], Any]]
"""In words, and whether a config meets it."""


def _set(path: str) -> _Condition:
    """The condition that a setting is not off."""
    section, name = path.split(".")
    return path, lambda run: getattr(getattr(run, section), name)


def _one_of(path: str, *values: str) -> _Condition:
    """The condition that a setting, which a kind of model may lack, has one of these values."""
    section, name = path.split(".")
    return (
        f"{path}={' or '.join(values)}",
        lambda run: getattr(getattr(run, section), name, None) in values,
    )


_OF_PRESETS = (60_000, 80_000)
"""``phrasebook.pairs`` of the presets: they stay where files take the place of the phrasebook, and
nobody has asked for them. The style of a preset stays too, so none is named."""


def _generated(setting: str) -> _Condition:
    """The condition that the phrasebook is generated, or that its setting is a preset's."""
    return (
        "the phrasebook, whose place data.source or data.text takes",
        lambda run: (
            not (run.data.source or run.data.text)
            or getattr(run.phrasebook, setting) in _OF_PRESETS
        ),
    )


_SEVERAL_FILES: _Condition = (
    "several files of data.source or data.text",
    lambda run: len(run.data.source or run.data.text) > 1,
)
_SUBWORDS: _Condition = (
    "tokenizer.kind=bpe or unigram",
    lambda run: {run.tokenizer.kind, run.tokenizer.target_kind}.intersection(SENTENCEPIECE_KINDS),
)
_TRANSLATES: _Condition = ("a model that translates", lambda run: run.model.translates)
_SEARCHES: _Condition = (
    "a model that translates or continues",
    lambda run: run.model.command in ("translate", "continue"),
)
_PLATEAU = _one_of("training.schedule", "plateau")
_ADAM = _one_of("training.optimizer", "adam", "muon")
_NEEDED: Mapping[str, _Condition] = {
    "data.weights": _SEVERAL_FILES,
    "data.temperature": _SEVERAL_FILES,
    "data.leave_out_validated": (
        "data.valid_source and data.valid_target",
        lambda run: run.data.valid_source or run.data.valid_text,
    ),
    "data.glossary": _set("noise.terms"),
    "phrasebook.pairs": _generated("pairs"),
    "phrasebook.held_out": _generated("held_out"),
    "phrasebook.seed": _generated("seed"),
    "tokenizer.sampling_sides": _set("tokenizer.sampling"),
    "tokenizer.sampling_epochs": _set("tokenizer.sampling"),
    "tokenizer.character_coverage": _SUBWORDS,
    "tokenizer.training_lines": _SUBWORDS,
    "model.norm_affine": _one_of("model.norm_kind", "layer", "rms"),
    "model.max_positions": (
        "model.positions=learned, one_hot, joint or summed",
        # An export to Hugging Face's folders takes the number where positions are sinusoids.
        _one_of("model.positions", "learned", "one_hot", "joint", "summed", "sinusoidal")[1],
    ),
    "model.start_position": _one_of("model.positions", "sinusoidal", "sinusoidal_t2t"),
    "model.relative_clip": _one_of("model.positions", "relative"),
    "model.position_hidden": (
        "model.positions=joint or summed, or model.embedding=mlp",
        lambda run: (
            getattr(run.model, "positions", None) in ("joint", "summed")
            or getattr(run.model, "embedding", None) == "mlp"
        ),
    ),
    "training.label_smoothing": (
        "model.negatives=0",
        lambda run: not (getattr(run.model, "negatives", 0) and run.training.label_smoothing),
    ),
    "training.decay_share": _one_of("training.schedule", "wsd"),
    "training.plateau_patience": _PLATEAU,
    "training.plateau_factor": _PLATEAU,
    "training.muon_momentum": _one_of("training.optimizer", "muon"),
    "training.adam_betas": _ADAM,
    "training.adam_eps": _ADAM,
    "training.simcut_rate": _set("training.simcut"),
    "training.cipher_weight": _set("data.cipher_keys"),
    "training.switch_out_sides": _set("training.switch_out"),
    "training.teacher_weight": _set("training.teacher"),
    "training.teacher_temperature": _set("training.teacher"),
    "training.alignment_weight": _set("data.alignments"),
    "training.vector_epochs": (
        "random embeddings, in whose place --init has those of its bundle",
        lambda run: run.training.init is None,
    ),
    "training.validate_beam_size": _TRANSLATES,
    "training.best_by": _TRANSLATES,
}
_LATE_END: _Condition = (
    "a training.patience above training.plateau_patience, or none",
    lambda run: (
        run.training.schedule != "plateau"
        or run.training.patience is None
        or run.training.patience > run.training.plateau_patience
    ),
)
"""The second condition of ``training.plateau_patience`` and ``plateau_factor``."""


def idle_settings(config: RunConfig) -> list[str]:
    """A line for each setting that is not at its default and without which the run would be the
    same, such as ``training.simcut_rate=0.1 changes nothing without training.simcut``."""
    lines = []
    for path, needed in _NEEDED.items():
        section, name = path.split(".")
        settings = getattr(config, section)
        field = type(settings).model_fields.get(name)
        if field is None:  # a kind of model may lack the setting
            continue

        value = getattr(settings, name)
        is_default = value == field.get_default()
        if not is_default and not needed[1](config):
            lines.append(_line(path, value, needed))
            continue

        # Without this the schedule, as it was set, never falls: said of one setting in any case.
        is_named = not is_default or name == "plateau_patience"
        if needed is _PLATEAU and is_named and not _LATE_END[1](config):
            lines.append(_line(path, value, _LATE_END))

    if not _SEARCHES[1](config):
        by_default = DecodingConfig().to_table()
        lines += [
            _line(f"decoding.{name}", value, _SEARCHES)
            for name, value in config.decoding.to_table().items()
            if value != by_default.get(name)
        ]
    return lines


def _line(path: str, value: object, condition: _Condition) -> str:
    shown = str(value).lower() if isinstance(value, bool) else value
    if isinstance(shown, tuple):
        shown = list(shown)
    return f"{path}={shown} changes nothing without {condition[0]}"
