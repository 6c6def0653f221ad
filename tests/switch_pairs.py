"""Configs of tiny Transformers that between them meet every pair of settings of two switches.

The module is held to the page of equations under each of them, and so are exports and backends. A
choice of ``pellucid.equations.choices`` is among them by itself; a setting needs a line here.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import get_args

from pellucid.equations.choices import Activation, DecoderReading, NormKind, PositionKind

_POSITIONS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "sinusoidal": [{}, {"start_position": 1}],
    "learned": [{"max_positions": 16}],
    "one_hot": [{"max_positions": 16}],
    "joint": [{"max_positions": 16, "position_hidden": 5}],
    "summed": [{"max_positions": 16, "position_hidden": 5}],
    "relative": [{"relative_clip": 2}],
}
"""What some positions need beside their name."""

SWITCHES: Mapping[str, Sequence[Mapping[str, object]]] = {
    "norm": [{"norm": "post"}, {"norm": "pre"}],
    "norm_kind": [{"norm_kind": kind} for kind in get_args(NormKind)],
    "norm_affine": [{"norm_affine": True}, {"norm_affine": False}],
    "norm_eps": [{"norm_eps": 1e-6}, {"norm_eps": 0.1}],
    "positions": [
        {"positions": kind, **more}
        for kind in get_args(PositionKind)
        for more in _POSITIONS.get(kind, [{}])
    ],
    "embedding": [{"embedding": "linear"}, {"embedding": "mlp", "position_hidden": 5}],
    "start_symbol": [{"start_symbol": "token"}, {"start_symbol": "zero"}],
    "heads": [
        {"heads": 2},
        {"heads": 1},
        {"heads": 3, "d_k": 2, "d_v": 5},
        {"heads": 5, "d_k": 4, "d_v": 1},
        {"heads": 2, "projection": "two_stage"},
    ],
    "decoder": [{"decoder": kind} for kind in get_args(DecoderReading)],
    "scale_attention": [{"scale_attention": True}, {"scale_attention": False}],
    "activation": [{"activation": kind} for kind in get_args(Activation)],
    "scale_embeddings": [{"scale_embeddings": True}, {"scale_embeddings": False}],
    "share": [
        {"share_embeddings": True, "tie_output": True},
        {"share_embeddings": False, "tie_output": True},
        {"share_embeddings": False, "tie_output": False},
    ],
    "output_bias": [{"output_bias": False}, {"output_bias": True}],
    "attention_bias": [{"attention_bias": False}, {"attention_bias": True}],
    "dropout": [{"dropout": 0.3}, {"dropout": 0.0}],
    "attention_dropout": [{"attention_dropout": 0.0}, {"attention_dropout": 0.25}],
    "activation_dropout": [{"activation_dropout": 0.0}, {"activation_dropout": 0.25}],
    "layer_drop": [{"layer_drop": 0.0}, {"layer_drop": 0.5}],
    "layers": [
        {"encoder_layers": 2, "decoder_layers": 2},
        {"encoder_layers": 0, "decoder_layers": 1},
        {"encoder_layers": 1, "decoder_layers": 3},
    ],
}
SIZES: Mapping[str, object] = {"d_model": 8, "d_ff": 12}


def settings_that_meet_every_pair(seed: int = 0, tries: int = 40) -> list[dict[str, object]]:
    """Chosen greedily: of some drawn at random, the one that meets most of the missing pairs."""
    draw = random.Random(seed)
    names = list(SWITCHES)
    missing = {
        (first, i, second, j)
        for first, second in itertools.combinations(names, 2)
        for i in range(len(SWITCHES[first]))
        for j in range(len(SWITCHES[second]))
    }
    found = []
    while missing:
        start = min(missing)  # one missing pair is met for certain, the rest as luck has it
        best: dict[str, int] = {}
        met: set[tuple[str, int, str, int]] = set()
        for _ in range(tries):
            choice = {name: draw.randrange(len(SWITCHES[name])) for name in names}
            choice |= {start[0]: start[1], start[2]: start[3]}
            pairs = {
                (one, choice[one], two, choice[two])
                for one, two in itertools.combinations(names, 2)
            }
            if not best or len(pairs & missing) > len(met):
                best, met = choice, pairs & missing
        missing -= met
        settings: dict[str, object] = dict(SIZES)
        for name, index in best.items():
            settings |= SWITCHES[name][index]
        found.append(settings)
    return found


def meeting_every_setting(configs: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Some of ``configs`` that between them have each value of each setting that any of them has.

    Of those that are left the one with most values that are still missing is taken.
    """
    missing = {each for config in configs for each in map(str, config.items())}
    found = []
    while missing:
        best = max(configs, key=lambda config: len(missing & set(map(str, config.items()))))
        missing -= set(map(str, best.items()))
        found.append(best)
    return found


def random_settings(count: int, stays: float) -> list[dict[str, object]]:
    """Configs in which each switch stays at its default with the probability ``stays``."""
    draw = random.Random(11)
    drawn = []
    for _ in range(count):
        settings: dict[str, object] = {}
        for values in SWITCHES.values():
            settings |= values[0] if draw.random() < stays else draw.choice(values)
        drawn.append({**settings, **SIZES})
    return drawn
