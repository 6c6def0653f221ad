"""Settings that change nothing in a run, because the setting that they belong to is off."""

from collections.abc import Callable, Mapping
from typing import Any

from pellucid.text.config import SENTENCEPIECE_KINDS
from pellucid.training.config import RunConfig

_Condition = tuple[str, Callable[[RunConfig], Any]]
"""In words, and whether a config meets it."""

_WSD: _Condition = "training.schedule=wsd", lambda run: run.training.schedule == "wsd"
_PLATEAU: _Condition = "training.schedule=plateau", lambda run: run.training.schedule == "plateau"
_MUON: _Condition = "training.optimizer=muon", lambda run: run.training.optimizer == "muon"
_ADAM: _Condition = (
    "training.optimizer=adam or muon",
    lambda run: run.training.optimizer in ("adam", "muon"),
)
_SIMCUT: _Condition = "training.simcut", lambda run: run.training.simcut
_SWITCH_OUT: _Condition = "training.switch_out", lambda run: run.training.switch_out
_TEACHER: _Condition = "training.teacher", lambda run: run.training.teacher
_CIPHERS: _Condition = "data.cipher_keys", lambda run: run.data.cipher_keys
_ALIGNMENTS: _Condition = "data.alignments", lambda run: run.data.alignments
_TERMS: _Condition = "noise.terms", lambda run: run.noise.terms
_VALID: _Condition = (
    "data.valid_source and data.valid_target",
    lambda run: run.data.valid_source or run.data.valid_text,
)
_SAMPLING: _Condition = "tokenizer.sampling", lambda run: run.tokenizer.sampling
_SUBWORDS: _Condition = (
    "tokenizer.kind=bpe or unigram",
    lambda run: {run.tokenizer.kind, run.tokenizer.target_kind}.intersection(SENTENCEPIECE_KINDS),
)
_RELATIVE: _Condition = (
    "model.positions=relative",
    lambda run: getattr(run.model, "positions", None) == "relative",
)
_POSITION_NETWORK: _Condition = (
    "model.positions=joint or summed, or model.embedding=mlp",
    lambda run: (
        getattr(run.model, "positions", None) in ("joint", "summed")
        or getattr(run.model, "embedding", None) == "mlp"
    ),
)

_NUMBERED: _Condition = (
    "model.positions=learned, one_hot, joint or summed",
    # An export to Hugging Face's folders takes the number where positions are sinusoids.
    lambda run: (
        getattr(run.model, "positions", None)
        in ("learned", "one_hot", "joint", "summed", "sinusoidal")
    ),
)
_SINUSOIDS: _Condition = (
    "model.positions=sinusoidal or sinusoidal_t2t",
    lambda run: getattr(run.model, "positions", None) in ("sinusoidal", "sinusoidal_t2t"),
)
_GAIN: _Condition = (
    "model.norm_kind=layer or rms",
    lambda run: getattr(run.model, "norm_kind", None) in ("layer", "rms"),
)
_SEVERAL_FILES: _Condition = (
    "several files of data.source or data.text",
    lambda run: len(run.data.source or run.data.text) > 1,
)
_SOFTMAX: _Condition = (
    "model.negatives=0",
    lambda run: not (getattr(run.model, "negatives", 0) and run.training.label_smoothing),
)
_LATE_END: _Condition = (
    "a training.patience above training.plateau_patience, or none",
    lambda run: (
        run.training.schedule != "plateau"
        or run.training.patience is None
        or run.training.patience > run.training.plateau_patience
    ),
)
_OF_PRESETS = (60_000, 80_000)
"""``phrasebook.pairs`` of the presets: they stay where files take the place of the phrasebook, and
nobody has asked for them. The style of a preset stays too, so none is named."""


def _generated(setting: str) -> _Condition:
    """The condition of a setting of the phrasebook."""

    def is_met(run: RunConfig) -> bool:
        """Whether the phrasebook is generated, or the value is that of a preset."""
        is_generated = not (run.data.source or run.data.text)
        return is_generated or getattr(run.phrasebook, setting) in _OF_PRESETS

    return "the phrasebook, whose place data.source or data.text takes", is_met


_NEEDED: Mapping[str, _Condition] = {
    "data.weights": _SEVERAL_FILES,
    "data.temperature": _SEVERAL_FILES,
    "data.leave_out_validated": _VALID,
    "data.glossary": _TERMS,
    "phrasebook.pairs": _generated("pairs"),
    "phrasebook.held_out": _generated("held_out"),
    "phrasebook.seed": _generated("seed"),
    "tokenizer.sampling_sides": _SAMPLING,
    "tokenizer.sampling_epochs": _SAMPLING,
    "tokenizer.character_coverage": _SUBWORDS,
    "tokenizer.training_lines": _SUBWORDS,
    "model.norm_affine": _GAIN,
    "model.max_positions": _NUMBERED,
    "model.start_position": _SINUSOIDS,
    "model.relative_clip": _RELATIVE,
    "model.position_hidden": _POSITION_NETWORK,
    "training.label_smoothing": _SOFTMAX,
    "training.decay_share": _WSD,
    "training.plateau_patience": _PLATEAU,
    "training.plateau_factor": _PLATEAU,
    "training.muon_momentum": _MUON,
    "training.adam_betas": _ADAM,
    "training.adam_eps": _ADAM,
    "training.simcut_rate": _SIMCUT,
    "training.cipher_weight": _CIPHERS,
    "training.switch_out_sides": _SWITCH_OUT,
    "training.teacher_weight": _TEACHER,
    "training.teacher_temperature": _TEACHER,
    "training.alignment_weight": _ALIGNMENTS,
}
_ALSO_NEEDED: Mapping[str, _Condition] = {
    "training.plateau_patience": _LATE_END,
    "training.plateau_factor": _LATE_END,
}
"""A second condition, where the first one is met."""
_EVEN_AT_DEFAULT = ("training.plateau_patience",)
"""Settings without which another one, as it was set, is in vain: the schedule never falls."""


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

        also = _ALSO_NEEDED.get(path)
        if also is None or also[1](config):
            continue
        if not is_default or path in _EVEN_AT_DEFAULT:
            lines.append(_line(path, value, also))
    return lines


def _line(path: str, value: object, condition: _Condition) -> str:
    shown = str(value).lower() if isinstance(value, bool) else value
    if isinstance(shown, tuple):
        shown = list(shown)
    return f"{path}={shown} changes nothing without {condition[0]}"
