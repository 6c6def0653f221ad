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
    "tokenizer": ("sampling", "sampling_sides", "sampling_epochs"),
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
    _check_sections(table)
    own: dict[str, Config] = {"model": bundle.config, "tokenizer": tokenizer_config(bundle)}
    result, problems = dict(table), []
    for section, config in own.items():
        result[section], wrong = _laid_over(config, table, section, chosen)
        problems += [f"{name} is {has} in the bundle, not {wanted}" for name, has, wanted in wrong]
    if problems:
        raise ConfigError(
            f"a run that begins with {bundle.path} must keep its model and tokenizer: "
            + "; ".join(problems),
            hint="leave these settings out, or train without --init",
        )

    # The search is free: it changes nothing that was learned. What the bundle does not set has its
    # default, and not what the preset of another run would have.
    search = DecodingConfig.of_bundle(bundle.settings, bundle.path or "the bundle")
    result["decoding"] = search.changed(_chosen_search(table, chosen)).to_table()

    result["training"] = {
        **section_of(table, "training"),
        "init": str(bundle.path),
        "parent": section_of(table, "training").get("parent", parent_hash(bundle)),
    }
    return result


def _check_sections(table: Mapping[str, Any]) -> None:
    """Raise ConfigError for a section that holds no settings, as after ``--set tokenizer=bpe``."""
    for section in ("model", "tokenizer", "decoding", "training"):
        given = table.get(section, {})
        if not isinstance(given, dict):
            raise ConfigError(
                f"{section} is a section of settings, got {given!r}",
                hint=f"name one of its settings, as {section}.NAME=VALUE",
            )


def _laid_over(
    own: Config, table: Mapping[str, Any], section: str, chosen: Iterable[str]
) -> tuple[dict[str, Any], list[tuple[str, Any, Any]]]:
    """A bundle's own section, with the free ones of the chosen settings laid over it.

    Returns beside it each chosen setting that contradicts the bundle: its dotted name, the bundle's
    value and the chosen one.
    """
    settings = own.to_table()
    merged, wrong = dict(settings), []
    for name in sorted(chosen_names(chosen, section)):
        value = section_of(table, section).get(name)
        if name in FREE[section] or name not in type(own).model_fields:
            merged[name] = value  # parsing reports misspelt names, with all other problems
        elif value != settings.get(name):
            wrong.append((f"{section}.{name}", settings.get(name, "not set"), value))
    return merged, wrong


def contradictions(
    own: Mapping[str, Config], chosen: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Each chosen setting, by dotted name, that contradicts the sections ``own`` of a bundle: its
    name, the bundle's value and the chosen one."""
    found = []
    for section, config in own.items():
        names = chosen_names(chosen, section)
        table = {section: {name: chosen[f"{section}.{name}"] for name in names}}
        found += _laid_over(config, table, section, chosen)[1]
    return found


def _chosen_search(table: Mapping[str, Any], chosen: Iterable[str]) -> dict[str, Any]:
    """The settings of the search that the user set; of ``sampling.temperature`` that one alone."""
    searched = section_of(table, "decoding")
    found: dict[str, Any] = {}
    for name in sorted(chosen_names(chosen, "decoding")):
        head, _, inner = name.partition(".")
        if inner and head in searched:
            found.setdefault(head, {})[inner] = section_of(searched, head).get(inner)
        elif head in searched:
            found[head] = searched[head]
    return found


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
    _check_sections(table)
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
    result["tokenizer"], wrong = _laid_over(tokenizer_config(bundle), table, "tokenizer", chosen)
    if wrong:
        problems = [f"{name} is {has} in the teacher, not {wanted}" for name, has, wanted in wrong]
        raise ConfigError(
            f"a run that {bundle.path} teaches must have its tokenizers: " + "; ".join(problems),
            hint="leave these settings out, or train without training.teacher",
        )
    return result
