"""The configs of runs that use other models: a bundle to fine-tune, called the parent, or teachers.

They are completed without PyTorch, so that wrong settings are refused before it is loaded;
``parent_models`` opens these bundles.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pellucid.bundle import Bundle
from pellucid.core.config import Config
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig
from pellucid.model.config import ModelConfig, TranslatorSettings
from pellucid.text.config import TokenizerConfig

if TYPE_CHECKING:
    from pellucid.model.seq2seq import SequenceModel

FREE = {
    "model": ("dropout", "attention_dropout", "activation_dropout", "layer_drop"),
    "tokenizer": ("sampling",),
}
"""Settings that may differ from the parent's: they change no parameter and no vocabulary."""


def parent_hash(bundle: "Bundle[SequenceModel]") -> str:
    """The SHA-256 in a bundle's manifest, which identifies the bundle wherever it is."""
    return str(bundle.manifest["sha256"])


def begin_with(
    table: Mapping[str, Any], bundle: "Bundle[SequenceModel]", chosen: Iterable[str]
) -> dict[str, Any]:
    """The config ``table`` for a run that fine-tunes ``bundle``.

    The settings of model, tokenizer and search are the bundle's. ``chosen`` are the dotted names
    that the user set: of these, dropout, sampling and the search are taken from ``table``. Raises
    ConfigError naming every other setting of model and tokenizer that contradicts the bundle.
    """
    own: dict[str, Config] = {"model": bundle.config, "tokenizer": tokenizer_config(bundle)}
    result, problems = dict(table), []

    for section, config in own.items():
        settings = config.to_table()

        # The bundle's settings, over which only free ones may be laid.
        merged = dict(settings)
        for name in sorted(chosen_names(chosen, section)):
            value = section_of(table, section).get(name)
            if name in FREE[section] or name not in type(config).model_fields:
                merged[name] = value  # parsing reports misspelt names, with all other problems
            elif value != settings.get(name):
                has = settings.get(name, "not set")
                problems.append(f"{section}.{name} is {has} in the bundle, not {value}")
        result[section] = merged

    if problems:
        raise ConfigError(
            f"a run that begins with {bundle.path} must keep its model and tokenizer: "
            + "; ".join(problems),
            hint="leave these settings out, or train without --init",
        )

    # The search is free: it changes nothing that was learned.
    searched = section_of(table, "decoding")
    by_hand = {
        name: searched[name] for name in chosen_names(chosen, "decoding") if name in searched
    }
    own_search = bundle.settings.get("decoding", {})
    result["decoding"] = {**searched, **own_search, **_reads(bundle), **by_hand}

    result["training"] = {
        **section_of(table, "training"),
        "init": str(bundle.path),
        "parent": section_of(table, "training").get("parent", parent_hash(bundle)),
    }
    return result


def _reads(bundle: "Bundle[SequenceModel]") -> dict[str, bool]:
    """How a bundle reads lines and terms. Where its training decides that, this is written down,
    because the config of a run that fine-tunes it tells nothing of that training."""
    search = DecodingConfig.of_bundle(bundle.settings, bundle.path or "the bundle")
    settings = {"recase": search.recase, "mark_terms": search.mark_terms}
    return {name: value for name, value in settings.items() if value is not None}


def tokenizer_config(bundle: "Bundle[SequenceModel]") -> TokenizerConfig:
    """The tokenizer section of the run that made the bundle, completed from its tokenizers."""
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    model = bundle.config

    # An imported or older bundle may have no tokenizer section: the tokenizers themselves say what
    # they are.
    sizes = (source.vocabulary_size, target.vocabulary_size)
    # Marian's tokenizers cut differently and share their ids
    shared = source is target or not isinstance(model, TranslatorSettings) or model.share_embeddings

    known: dict[str, object] = {
        "kind": source.kind,
        "shared": shared,
        "normalization": source.normalization,
    }
    if target.kind != source.kind:
        known["target_kind"] = target.kind
    table = {"vocabulary_size": max(sizes), **bundle.settings.get("tokenizer", {}), **known}
    return TokenizerConfig.parse(table, f"{bundle.path}: tokenizer")


def chosen_names(chosen: Iterable[str], section: str) -> set[str]:
    """The settings of one section among dotted names."""
    return {name for each in chosen for head, _, name in [each.partition(".")] if head == section}


def section_of(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of a config's table; empty if there is none."""
    section = table.get(name, {})
    return section if isinstance(section, dict) else {}


def fixed_settings(config: ModelConfig) -> dict[str, Any]:
    """The settings of a model that decide which parameters it has and what it computes."""
    return {name: each for name, each in config.to_table().items() if name not in FREE["model"]}


def taught_by(
    table: Mapping[str, Any], teachers: "Sequence[Bundle[SequenceModel]]", chosen: Iterable[str]
) -> dict[str, Any]:
    """The config ``table`` for a run with these teachers, at least one, which it records.

    Unless the run fine-tunes another bundle, it uses the first teacher's tokenizers. ``chosen`` are
    the dotted names that the user set. Raises ConfigError naming every setting of the tokenizer
    among them that contradicts the teacher.
    """
    result = dict(table)
    training = section_of(table, "training")
    hashes = [parent_hash(each) for each in teachers]
    result["training"] = {
        **training,
        "teacher": [str(each.path) for each in teachers],
        "teacher_manifest": training.get("teacher_manifest", hashes),
    }
    if training.get("init"):
        return result  # the tokenizers are those of the parent

    bundle = teachers[0]
    wanted, own = section_of(table, "tokenizer"), tokenizer_config(bundle).to_table()
    names = chosen_names(chosen, "tokenizer")

    problems = [
        f"tokenizer.{name} is {own.get(name, 'not set')} in the teacher, not {wanted.get(name)}"
        for name in sorted(names - set(FREE["tokenizer"]))
        if wanted.get(name) != own.get(name)
    ]
    if problems:
        raise ConfigError(
            f"a run that {bundle.path} teaches must have its tokenizers: " + "; ".join(problems),
            hint="leave these settings out, or train without training.teacher",
        )

    free = {name: wanted[name] for name in FREE["tokenizer"] if name in wanted}
    result["tokenizer"] = {**own, **{name: free[name] for name in free if name in names}}
    return result
