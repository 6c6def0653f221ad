"""The settings of a Marian model as its file has them, a list of YAML, and the same as ours."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Literal

from pellucid.core.errors import BundleError, ConfigError
from pellucid.model.config import TransformerConfig

Autoreg = Literal["self-attention", "rnn"]

_LINE = re.compile(r"([\w-]+):\s*(.*)")
_TWO_SIZES = re.compile(r"\[\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\]")
_LONGEST = 1 << 20
"""Characters. Real settings have about 2,000."""

FIXED: Mapping[str, str] = {
    "type": "transformer",
    "right-left": "false",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-ffn-depth": "2",
    "transformer-decoder-ffn-depth": "0",
    "transformer-decoder-dim-ffn": "0",
    "transformer-no-projection": "false",
    "transformer-no-bias": "false",
    "transformer-no-affine": "false",
    "transformer-rnn-projection": "false",
    "transformer-pool": "false",
    "transformer-train-position-embeddings": "false",
    "transformer-tied-layers": "[]",
    "layer-normalization": "false",
    "output-omit-bias": "false",
    "ulr-enabled": "false",
    "lemma-dim-emb": "0",
    "factors-dim-emb": "0",
    "input-types": "[]",
}
"""The value of every setting that changes what is computed and that we have one way of. A setting
that a file leaves out has this value, as older versions of Marian had no other."""


@dataclasses.dataclass(frozen=True)
class FileSettings:
    """The settings of a model file that differ from model to model."""

    d_model: int
    d_ff: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    vocabulary_sizes: tuple[int, int]
    autoreg: Autoreg
    activation: Literal["relu", "swish"]
    is_all_tied: bool
    """One matrix for source, target and output; otherwise the output shares the target's."""

    def to_model_config(self) -> TransformerConfig:
        """The same model as a TransformerConfig. Raises ConfigError if its sizes do not fit."""
        return TransformerConfig.parse(
            {
                "d_model": self.d_model,
                "d_ff": self.d_ff,
                "heads": self.heads,
                "encoder_layers": self.encoder_layers,
                "decoder_layers": self.decoder_layers,
                "decoder": "ssru" if self.autoreg == "rnn" else "self-attention",
                "activation": self.activation,
                "positions": "sinusoidal_t2t",
                "start_symbol": "zero",
                "norm": "post",
                "norm_eps": 1e-6,
                "share_embeddings": self.is_all_tied,
                "tie_output": True,
                "output_bias": True,
                "attention_bias": True,
            },
            "special:model.yml",
        )

    @classmethod
    def of_config(cls, config: TransformerConfig, sizes: tuple[int, int]) -> "FileSettings":
        """The settings of a model of ours, which Marian must be able to express."""
        return cls(
            d_model=config.d_model,
            d_ff=config.d_ff,
            heads=config.heads,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            vocabulary_sizes=sizes,
            autoreg="rnn" if config.decoder == "ssru" else "self-attention",
            activation="relu" if config.activation == "relu" else "swish",
            is_all_tied=config.share_embeddings,
        )

    def to_yaml(self) -> str:
        """The settings as Marian reads them."""
        source, target = self.vocabulary_sizes
        own: dict[str, Any] = {
            "dim-emb": self.d_model,
            "transformer-dim-ffn": self.d_ff,
            "transformer-heads": self.heads,
            "enc-depth": self.encoder_layers,
            "dec-depth": self.decoder_layers,
            "dim-vocabs": f"[{source}, {target}]",
            "transformer-decoder-autoreg": self.autoreg,
            "dec-cell": "ssru",
            "transformer-ffn-activation": self.activation,
            "tied-embeddings": str(not self.is_all_tied).lower(),
            "tied-embeddings-all": str(self.is_all_tied).lower(),
            "tied-embeddings-src": "false",
            **_UNUSED,
        }
        fixed = {name: value or '""' for name, value in FIXED.items()}
        lines = sorted(f"{name}: {value}" for name, value in {**fixed, **own}.items())
        return "\n".join(lines) + "\n"


_UNUSED: Mapping[str, object] = {
    "version": "v1.9.0 (written by pellucid)",
    "enc-type": "bidirectional",
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "dim-rnn": 1024,
    "skip": "false",
    "transformer-aan-activation": "swish",
    "transformer-aan-depth": 2,
    "transformer-aan-nogate": "false",
    "transformer-dim-aan": 2048,
    "transformer-depth-scaling": "false",
    "transformer-guided-alignment-layer": "last",
    "bert-train-type-embeddings": "true",
    "bert-type-vocab-size": 2,
    "factors-combine": "sum",
    "ulr-dim-emb": 0,
    "ulr-trainable-transformation": "false",
}
"""Settings without which Marian does not start, and which change nothing of such a model."""


def read_settings(text: str, origin: str) -> FileSettings:
    """The settings of a model file; ``origin`` names it in errors.

    Raises BundleError with every setting that we cannot express.
    """
    table = _read_yaml(text[:_LONGEST])
    problems = [
        f"{name} must be {value or 'empty'}, is {table[name]}"
        for name, value in FIXED.items()
        if name in table and table[name] != value and not _is_same(name, table)
    ]
    autoreg = table.get("transformer-decoder-autoreg", "self-attention")
    if autoreg not in ("self-attention", "rnn"):
        problems.append(f"transformer-decoder-autoreg must be self-attention or rnn, is {autoreg}")
    if autoreg == "rnn" and table.get("dec-cell") != "ssru":
        problems.append(f"dec-cell must be ssru, is {table.get('dec-cell')}")
    activation = table.get("transformer-ffn-activation", "swish")
    if activation not in ("relu", "swish"):
        problems.append(f"transformer-ffn-activation must be relu or swish, is {activation}")
    ties = {name: table.get(f"tied-embeddings{name}") == "true" for name in ("", "-all", "-src")}
    if not (ties["-all"] or ties[""]) or (ties["-src"] and not ties["-all"]):
        problems.append("tied-embeddings or tied-embeddings-all must be true")

    numbers: dict[str, int] = {}
    for name in ("dim-emb", "transformer-dim-ffn", "transformer-heads", "enc-depth", "dec-depth"):
        try:
            numbers[name] = int(table.get(name, ""))
        except ValueError:
            problems.append(f"{name} must be a whole number, is {table.get(name, 'missing')}")
    sizes = _TWO_SIZES.fullmatch(table.get("dim-vocabs", ""))
    if sizes is None:
        problems.append(f"dim-vocabs must be two numbers, is {table.get('dim-vocabs', 'missing')}")
    if problems or sizes is None:
        raise BundleError(f"{origin}: {'; '.join(problems)}")

    settings = FileSettings(
        d_model=numbers["dim-emb"],
        d_ff=numbers["transformer-dim-ffn"],
        heads=numbers["transformer-heads"],
        encoder_layers=numbers["enc-depth"],
        decoder_layers=numbers["dec-depth"],
        vocabulary_sizes=(int(sizes[1]), int(sizes[2])),
        autoreg="rnn" if autoreg == "rnn" else "self-attention",
        activation="relu" if activation == "relu" else "swish",
        is_all_tied=ties["-all"],
    )
    try:
        settings.to_model_config()
    except ConfigError as error:
        raise BundleError(f"{origin}: {error}") from error
    return settings


def _is_same(name: str, table: Mapping[str, str]) -> bool:
    """Whether a decoder's own setting says what that of the encoder says."""
    if name == "transformer-decoder-dim-ffn":
        return table[name] == table.get("transformer-dim-ffn")
    if name == "transformer-decoder-ffn-depth":
        return table[name] == "2"
    return False


def _read_yaml(text: str) -> dict[str, str]:
    """The values of a flat table as text; of a list its elements, in brackets.

    Marian writes no other YAML, so that no reader of all of it is needed.
    """
    table: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        stripped = line.strip()
        if match := _LINE.fullmatch(stripped):
            last, value = match.groups()
            table[last] = value.strip("\"'")
        elif stripped.startswith("- ") and last:
            inside = [table[last].strip("[]")] if table[last].strip("[]") else []
            table[last] = f"[{', '.join([*inside, stripped[2:]])}]"
        elif stripped == "[]" and last:
            table[last] = "[]"
    return table
