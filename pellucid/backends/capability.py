"""Backends and what each of them computes as torch does: one table for all ways out of Pellucid.

A model or a search setting goes to a backend only if the table says that the backend
expresses it. A setting that a table does not name must have its default, whatever it is, so a
setting that somebody adds is refused by name until it is declared here;
``tests/interop/test_capability.py`` fails for each field that a table forgets.

This module does not import torch: a model that was converted once translates without it.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from pellucid.backends.marian.settings import MARIAN_NORM_EPS
from pellucid.core.config import Config
from pellucid.core.config_text import toml_value
from pellucid.decoding.config import DecodingConfig
from pellucid.model.config import BlockSettings, ModelConfig

SENTENCES = (
    "Hello, world!",
    "Where is the train to the sea, and when does it leave?",
    "Un petit chat noir ne dort pas sur la grande table rouge.",
)
"""Source and target of self-checks by text; any text would do."""


@dataclasses.dataclass(frozen=True)
class Values:
    """The values of a setting with which a backend computes what torch computes."""

    chosen: tuple[object, ...] | None = None
    """The only values; None where a range decides."""
    least: float = -math.inf
    most: float = math.inf

    def hold(self, value: object) -> bool:
        """Whether a value is one of them; without a range everything is."""
        if self.chosen is not None:
            return value in self.chosen
        if (self.least, self.most) == (-math.inf, math.inf):
            return True
        return isinstance(value, int | float) and self.least <= value <= self.most

    def one_of(self, usual: object) -> object:
        """``usual`` if it is one of them, else the first."""
        if self.hold(usual):
            return usual
        if self.chosen is not None:
            return self.chosen[0]
        return self.most if self.least == -math.inf else self.least

    def __str__(self) -> str:
        if self.chosen is not None:
            *others, last = map(str, self.chosen)
            return f"{', '.join(others)} or {last}" if others else last
        return f"at most {self.most:g}" if self.least == -math.inf else f"at least {self.least:g}"


ANY = Values()
"""Every value: the backend computes with it, or it has no effect where the backend is used."""
DEFAULT = None
"""The default alone, as for every setting that a table does not name."""
_Table = Mapping[str, Values | None]


def _at_default(*names: str) -> dict[str, Values | None]:
    return dict.fromkeys(names, DEFAULT)


def _only(*values: object) -> Values:
    return Values(chosen=values)


def _all_any(*names: str) -> dict[str, Values]:
    return dict.fromkeys(names, ANY)


@dataclasses.dataclass(frozen=True)
class Backend:
    """A program that computes a model of ours, and what it can express of it."""

    name: str
    kinds: tuple[str, ...]
    """The kinds of model (``model.kind``)."""
    model: _Table
    """The settings of those kinds."""
    search: _Table
    """The search settings, of which the others must have their defaults."""
    has_free_widths: bool = False
    """Whether heads may have another width than d_model / heads."""

    def model_problems(self, config: ModelConfig) -> list[str]:
        """A problem for each setting of ``config`` that this backend cannot express."""
        if config.kind not in self.kinds:
            return [f"it has no model.kind={config.kind} ({' or '.join(self.kinds)})"]

        problems = []
        if not self.has_free_widths and isinstance(config, BlockSettings):
            width = config.d_model / config.heads
            if (config.key_size, config.value_size) != (width, width):
                problems.append(
                    f"its heads have the width d_model / heads = {width:g}, not"
                    f" d_k={config.key_size} and d_v={config.value_size}"
                )
        for name in _lacking(self.model, config):
            values = self.model.get(name)
            known = "" if values is None else f" ({values})"
            problems.append(f"it has no {name}={getattr(config, name)}{known}")
        return problems

    def options(self, config: ModelConfig) -> str:
        """The options of ``train`` that change what ``model_problems`` names; empty if none can."""
        if config.kind not in self.kinds:
            return f"--set model.kind={self.kinds[0]}"

        options = []
        for name in _lacking(self.model, config):
            values = self.model.get(name)
            field = type(config).model_fields[name]
            value = field.default if values is None else values.one_of(field.default)
            shown = value if isinstance(value, str) else toml_value(value)
            options.append(f"--set model.{name}={shown}")
        return " ".join(options)

    def lacking(self, settings: DecodingConfig) -> list[str]:
        """The search settings with which this backend would find something else, by name."""
        return _lacking(self.search, settings)


def _lacking(table: _Table, config: Config) -> list[str]:
    """The settings whose value is not one that the table holds, nor an undeclared default."""
    names = []
    for name, field in type(config).model_fields.items():
        value, values = getattr(config, name), table.get(name)
        is_expressed = value == field.default if values is None else values.hold(value)
        if not is_expressed:
            names.append(name)
    return names


def shown_setting(name: str, value: Any) -> str:
    """A setting as ``--set`` takes it; of a table only the name."""
    return name if isinstance(value, Config) else f"{name}={toml_value(value)}"


_TRAINING_ALONE = _all_any(
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "layer_drop",
    "pretrained_vectors",
    "mask_rate",
)
"""Settings that change how parameters are learned, and nothing that is computed with them."""
_SIZES = _all_any("kind", "d_model", "d_ff", "heads", "d_k", "d_v", "encoder_layers")
_SIZES |= _all_any("decoder_layers", "max_positions")
_UNUSED = _all_any("position_hidden", "relative_clip")
"""Sizes that do nothing unless another setting, which has a row of its own, uses them."""
_TRANSFORMER = {
    **_SIZES,
    **_TRAINING_ALONE,
    **_UNUSED,
    **_all_any("share_embeddings", "tie_output", "scale_embeddings", "output_bias"),
    "attention_bias": ANY,
    "norm": _only("post", "pre"),
    "norm_eps": ANY,
    "norm_kind": _only("layer"),
    "norm_affine": _only(True),
    "positions": _only("sinusoidal", "learned", "rotary"),
    "start_position": _only(0),
    "embedding": _only("linear"),
    "projection": _only("per_head"),
    "scale_attention": _only(True),
    "activation": _only("relu", "gelu", "swish"),
    "start_symbol": _only("token"),
    "decoder": _only("self-attention"),
}
"""The Transformer of other programs, with the switches that most of them have."""

_SPEED_ALONE = _all_any("use_cache", "batch_tokens", "stream_lines", "cache_lines")
"""Search settings that change no translation."""
_ABOUT_A_TRANSLATION = _all_any("align", "align_layer", "align_head", "token_log_probs")
"""Search settings that add facts about a translation and change no word of it."""
_ABOUT_A_BEAM = _all_any(
    "beam_size",
    "n_best",
    "length_penalty",
    "length_penalty_kind",
    "patience",
    "stop_bound",
    "forced_stop",
    "diversity_strength",
)
"""Search settings that choose among the hypotheses of a beam."""
_LENGTHS = _all_any("max_length", "max_length_ratio", "max_length_extra", "max_source_tokens")

_NO_CONSTRAINTS = _at_default(
    "prefix",
    "target_code",
    "must",
    "banned",
    "diverse_groups",
    "sampling",
    "mask_at_inference",
    "repredict",
)
"""Searches that our own engine alone has."""
_OF_QUALITY = ("below", "doubtful")
"""Settings that judge a translation by a scale that a bundle keeps, and no export has."""

_OF_AN_ENGINE = {
    **_NO_CONSTRAINTS,
    **_SPEED_ALONE,
    **_all_any("beam_size", "n_best", "length_penalty", "forced_stop"),
    **_LENGTHS,
    # The translator applies these to what was found.
    **_all_any("coverage_penalty", "mbr", "align", "align_layer", "align_head"),
    **_all_any("replace_unknown", "token_log_probs"),
    "length_penalty_kind": _only("gnmt", "power"),
    # The translator applies these itself too, and asks without them.
    **_at_default("copy_symbols", "recase", "mark_terms", *_OF_QUALITY),
    **_at_default("min_length", "no_repeat_ngram"),
    # Without a cache and without groups another setting decides.
    **_at_default("use_cache", "diversity_strength"),
}
"""Search settings of an engine of ours, whose translator does the rest."""
_WITHOUT_TERMS = {**_all_any("copy_symbols", "mark_terms"), "recase": _only(None, False)}
"""Another program copies no symbol, and marks no term, as it has no glossary."""

CTRANSLATE2 = Backend(
    name="CTranslate2",
    kinds=("transformer",),
    model={
        **_TRANSFORMER,
        "encoder_layers": Values(least=1),
        "positions": _only("sinusoidal", "sinusoidal_t2t", "learned", "rotary"),
        "start_symbol": _only("token", "zero"),
    },
    search={
        **_OF_AN_ENGINE,
        # It is asked for beam_size hypotheses, and must not stop after fewer.
        "patience": Values(least=1),
        "stop_bound": DEFAULT,
    },
)
"""The engine ``ctranslate2`` and ``pellucid export ctranslate2``."""

KERNELS = Backend(
    name="the kernels",
    kinds=("transformer",),
    model={
        **_TRANSFORMER,
        "activation": _only("relu", "swish"),
        "positions": _only("sinusoidal", "sinusoidal_t2t", "learned", "rotary", "none"),
        "decoder": _only("self-attention", "ssru"),
        "start_symbol": _only("token", "zero"),
    },
    search={**_OF_AN_ENGINE, "patience": ANY, "stop_bound": _only("exact", "current")},
    has_free_widths=True,
)
"""The engine ``kernels``, which computes in 8 bits."""

ONNX = Backend(
    name="the ONNX graphs",
    kinds=("transformer",),
    model={
        **_TRANSFORMER,
        "positions": _only("sinusoidal", "sinusoidal_t2t", "learned", "rotary"),
        "start_symbol": _only("token", "zero"),
        "decoder": _only("self-attention", "ssru"),
    },
    # The graphs compute logits, and the program beside them searches greedily, as does that beside
    # an export for CTranslate2.
    search={
        **_NO_CONSTRAINTS,
        **_SPEED_ALONE,
        **_ABOUT_A_TRANSLATION,
        **_ABOUT_A_BEAM,
        **_LENGTHS,
        **_WITHOUT_TERMS,
        **_at_default("coverage_penalty", "mbr", "min_length", "no_repeat_ngram"),
        **_at_default("replace_unknown", *_OF_QUALITY),
    },
    has_free_widths=True,
)
"""``pellucid export onnx``."""

MARIAN = Backend(
    name="Marian",
    kinds=("transformer",),
    model={
        **_TRANSFORMER,
        "norm": _only("post"),
        "positions": _only("sinusoidal"),
        # A smaller ε changes the sixth digit of the logits; the export warns about it.
        "norm_eps": Values(most=MARIAN_NORM_EPS),
    },
    search={
        **_NO_CONSTRAINTS,
        **_SPEED_ALONE,
        **_ABOUT_A_TRANSLATION,
        **_ABOUT_A_BEAM,
        **_all_any("max_length", "max_source_tokens", "min_length", "no_repeat_ngram"),
        **_WITHOUT_TERMS,
        **_at_default("coverage_penalty", "mbr", "replace_unknown", *_OF_QUALITY),
        # Its own limit is max_positions.
        **_at_default("max_length_ratio", "max_length_extra"),
    },
)
"""The folders of Hugging Face's MarianMTModel: ``pellucid export huggingface``."""

MARIAN_FILES = Backend(
    name="Marian's files",
    kinds=("transformer",),
    model={
        **_TRANSFORMER,
        "encoder_layers": Values(least=1),
        "norm": _only("post"),
        "norm_eps": _only(1e-6),
        "positions": _only("sinusoidal_t2t"),
        "start_symbol": _only("zero"),
        "scale_embeddings": _only(True),
        "tie_output": _only(True),
        # its gelu is another function, x σ(1.702 x)
        "activation": _only("relu", "swish"),
        "decoder": _only("self-attention", "ssru"),
    },
    # Its configuration of the decoder has a beam, the exponent of a length, and little else.
    search={
        **_NO_CONSTRAINTS,
        **_SPEED_ALONE,
        **_ABOUT_A_TRANSLATION,
        **_all_any("beam_size", "length_penalty", "forced_stop"),
        # Of a beam that ends at the first beam_size finished hypotheses a bound loses nothing.
        **_all_any("stop_bound", "diversity_strength"),
        **_WITHOUT_TERMS,
        "length_penalty_kind": _only("gnmt", "power"),
        **_at_default("n_best", "patience", "min_length", "no_repeat_ngram", *_LENGTHS),
        **_at_default("coverage_penalty", "mbr", "replace_unknown", *_OF_QUALITY),
    },
)
"""``pellucid export marian``: the files of Marian itself and of Firefox's engine."""

WEB = Backend(
    name="a page",
    kinds=("transformer", "rnn", "rnn-attention", "encoder", "decoder"),
    model={
        **_TRANSFORMER,
        "norm_kind": _only("layer", "rms", "l2", "l2_centered"),
        "positions": _only(
            *("sinusoidal", "sinusoidal_t2t", "learned", "one_hot", "joint", "summed"),
            *("relative", "rotary", "alibi", "none"),
        ),
        "start_position": _only(0, 1),
        "embedding": _only("linear", "mlp"),
        "projection": _only("per_head", "two_stage"),
        "start_symbol": _only("token", "zero"),
        "decoder": _only("self-attention", "ssru"),
        "cell": _only("lstm", "gru"),
        "attention": _only("additive", "dot", "general"),
        **_all_any("norm_affine", "scale_attention"),
        **_all_any("reverse_source", "feed_summary", "input_feeding"),
    },
    search={
        **_NO_CONSTRAINTS,
        **_SPEED_ALONE,
        **_ABOUT_A_TRANSLATION,
        **_all_any("beam_size", "n_best", "length_penalty", "patience", "diversity_strength"),
        **_LENGTHS,
        **_all_any("min_length", "no_repeat_ngram", "recase", "copy_symbols"),
        "length_penalty_kind": _only("gnmt", "power"),
        "stop_bound": _only("exact", "current"),
        "forced_stop": _only("counted", "free"),
        # A page has no glossary whose terms it could mark.
        **_all_any("mark_terms"),
        **_at_default("coverage_penalty", "mbr", "replace_unknown", *_OF_QUALITY),
    },
    has_free_widths=True,
)
"""``pellucid export web``, whose engine is ours once more, in JavaScript."""

BACKENDS = (CTRANSLATE2, KERNELS, ONNX, MARIAN, MARIAN_FILES, WEB)
"""Every program that computes a model of ours beside torch, which defines what is right."""

_FOR_ANY_TOKENIZER = {"ctranslate2": CTRANSLATE2, "onnx": ONNX, "web": WEB}


def advice_to_export(config: ModelConfig, but: str = "") -> str:
    """``export to onnx or web``: the formats that hold such a model whatever its tokenizer, but for
    one that is ruled out; empty if none does."""
    names = [
        name
        for name, each in _FOR_ANY_TOKENIZER.items()
        if name != but and not each.model_problems(config)
    ]
    if not names:
        return ""
    first = ", ".join(names[:-1])
    return f"export to {first} or {names[-1]}" if first else f"export to {names[-1]}"
