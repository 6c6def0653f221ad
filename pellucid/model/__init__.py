"""Modules that own parameters and call the equations; ids in, log-odds out."""

from pellucid.model.build import build_any_model, build_model, build_unfilled, parameter_shapes
from pellucid.model.config import ModelConfig
from pellucid.model.seq2seq import (
    LossSums,
    Memory,
    PredictsTokens,
    Seq2Seq,
    SequenceModel,
    State,
)
from pellucid.model.trace import UNWATCHED, Trace

__all__ = [
    "UNWATCHED",
    "LossSums",
    "Memory",
    "ModelConfig",
    "PredictsTokens",
    "Seq2Seq",
    "SequenceModel",
    "State",
    "Trace",
    "build_any_model",
    "build_model",
    "build_unfilled",
    "parameter_shapes",
]
