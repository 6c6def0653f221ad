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

_NEEDED: Mapping[str, _Condition] = {
    "data.leave_out_validated": _VALID,
    "data.glossary": _TERMS,
    "tokenizer.sampling_sides": _SAMPLING,
    "tokenizer.sampling_epochs": _SAMPLING,
    "tokenizer.character_coverage": _SUBWORDS,
    "tokenizer.training_lines": _SUBWORDS,
    "model.relative_clip": _RELATIVE,
    "model.position_hidden": _POSITION_NETWORK,
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


def idle_settings(config: RunConfig) -> list[str]:
    """A line for each setting that is not at its default and without which the run would be the
    same, such as ``training.simcut_rate=0.1 changes nothing without training.simcut``."""
    lines = []
    for path, (condition, is_met) in _NEEDED.items():
        section, name = path.split(".")
        settings = getattr(config, section)
        field = type(settings).model_fields.get(name)
        if field is None or is_met(config):  # a kind of model may lack the setting
            continue
        value = getattr(settings, name)
        if value != field.get_default():
            shown = str(value).lower() if isinstance(value, bool) else value
            lines.append(f"{path}={shown} changes nothing without {condition}")
    return lines
