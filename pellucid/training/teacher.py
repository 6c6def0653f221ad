"""Learning from another model as well: which one, and whether it can teach."""

from collections.abc import Iterable, Mapping
from typing import Any

from pellucid.bundle import Bundle, load_any_bundle
from pellucid.core.errors import ConfigError
from pellucid.model.seq2seq import PredictsTokens, SequenceModel
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.config import RunConfig
from pellucid.training.parent import FREE, chosen_names, parent_hash, section_of, tokenizer_config

Tokenizers = tuple[Tokenizer, Tokenizer]


def taught_by(
    table: Mapping[str, Any], bundle: Bundle[SequenceModel], chosen: Iterable[str]
) -> dict[str, Any]:
    """The config ``table`` for a run that ``bundle`` teaches, which is written down in it.

    A run that begins with no other bundle takes the teacher's tokenizers. ``chosen`` are the
    dotted names that the user set by hand. Raises ConfigError naming every setting of the
    tokenizer among them that contradicts the teacher.
    """
    result = dict(table)
    training = section_of(table, "training")
    result["training"] = {
        **training,
        "teacher": str(bundle.path),
        "teacher_manifest": training.get("teacher_manifest", parent_hash(bundle)),
    }
    if training.get("init"):
        return result  # the tokenizers are those of that bundle
    wanted, own = section_of(table, "tokenizer"), tokenizer_config(bundle).to_table()
    names = chosen_names(chosen, "tokenizer")
    faults = [
        f"tokenizer.{name} is {own.get(name, 'not set')} in the teacher, not {wanted.get(name)}"
        for name in sorted(names - set(FREE["tokenizer"]))
        if wanted.get(name) != own.get(name)
    ]
    if faults:
        raise ConfigError(
            f"a run that {bundle.path} teaches must have its tokenizers: " + "; ".join(faults),
            hint="leave these settings out, or train without training.teacher",
        )
    free = {name: wanted[name] for name in FREE["tokenizer"] if name in wanted}
    result["tokenizer"] = {**own, **{name: free[name] for name in free if name in names}}
    return result


def load_teacher(config: RunConfig) -> Bundle[SequenceModel] | None:
    """The bundle that ``config`` learns from, if any, never to be trained itself.

    Raises ConfigError if it is not the one that ``config`` names or cannot teach that model; and
    what opening it raises.
    """
    wanted = config.training
    if wanted.teacher is None:
        return None
    bundle = load_any_bundle(wanted.teacher)
    model, faults = bundle.model, []
    if wanted.teacher_manifest != parent_hash(bundle):
        faults.append(
            f"training.teacher_manifest is {wanted.teacher_manifest}, but the bundle has"
            f" {parent_hash(bundle)}"
        )
    kind = model.config.kind
    if not isinstance(model, PredictsTokens) or model.config.translates != config.model.translates:
        faults.append(f"a {kind} does not predict what a {config.model.kind} does")
    longest = config.data.max_length + 1
    if model.max_length is not None and longest > model.max_length:
        faults.append(
            f"data.max_length={config.data.max_length} and a stop do not fit into its"
            f" {model.max_length} positions"
        )
    if faults:
        raise ConfigError(f"{wanted.teacher} cannot teach this run: " + "; ".join(faults))
    model.eval().requires_grad_(False)
    return bundle


def given_tokenizers(
    parent: Bundle[SequenceModel] | None, teacher: Bundle[SequenceModel] | None
) -> Tokenizers | None:
    """The tokenizers that a run gets from its parent or else from its teacher."""
    giver = parent or teacher
    return None if giver is None else (giver.source_tokenizer, giver.target_tokenizer)


def check_tokenizers(teacher: Bundle[SequenceModel], own: Tokenizers) -> None:
    """Refuse a teacher whose ids mean other words (EQ-11). Raises ConfigError naming both sides."""
    theirs = teacher.source_tokenizer, teacher.target_tokenizer
    faults = [
        f"its {side} tokenizer is {that.kind} {that.fingerprint[:16]}, this run's is {this.kind}"
        f" {this.fingerprint[:16]}"
        for side, this, that in zip(("source", "target"), own, theirs, strict=True)
        if this.fingerprint != that.fingerprint
    ]
    if faults:
        raise ConfigError(
            f"{teacher.path} cannot teach this run: " + "; ".join(faults),
            hint="teach a new run, which takes the teacher's tokenizers, or let the teacher"
            " translate the training text by pellucid distill, which needs no like tokenizers",
        )
