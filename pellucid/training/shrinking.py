"""A student that begins as a copy of its teacher, with a shallower decoder of another kind.

What the teacher knows of the source, its encoder, needs not be learned again; only the decoder is
new where it has no counterpart. Source: Shleifer and Rush (2020), "Pre-trained summarization
distillation", whose students are copies of some layers of the teacher, trained further.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pellucid.bundle import Bundle, open_bundle, save_bundle
from pellucid.core.config import write_toml
from pellucid.core.errors import ConfigError
from pellucid.model.build import build_any_model
from pellucid.model.config import ModelConfig, TransformerConfig
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.stored import model_tensors
from pellucid.training.config import RunConfig
from pellucid.training.parent import begin_with, contradictions, taught_by, tokenizer_config
from pellucid.training.plan import Choice
from pellucid.training.recipe import Recipe

_LAYER = "decoder.layers."
_LIKELIEST = 8
"""So many of the teacher's tokens at each position are learned from (Tan et al. 2019)."""
_OF_TEACHER = ("init", "parent", "teacher", "teacher_manifest", "teacher_top_k")
_TIMED = ("kind", "vocabulary_size", "shared")
"""The settings of a tokenizer that decide how large a model is and how long its lines."""


def shrunk(teacher: Bundle, decoder: str, decoder_layers: int, seed: int) -> Bundle:
    """A bundle like ``teacher``, with ``decoder_layers`` decoder layers of the kind ``decoder``.

    Every parameter that the teacher has too is copied: embeddings, encoder, and of the decoder's
    layers those of the teacher's that ``copied_layers`` names. The others, such as the SSRU's, are
    drawn from ``seed``. Raises ConfigError for a teacher of another kind or with fewer layers.
    """
    smaller, layers = shrunk_config(teacher.config, decoder, decoder_layers)
    sizes = teacher.source_tokenizer.vocabulary_size, teacher.target_tokenizer.vocabulary_size
    model = build_any_model(smaller, *sizes, seed=seed)
    assert isinstance(model, Seq2Seq)

    theirs = model_tensors(teacher.model)
    with torch.no_grad():
        for name, parameter in model_tensors(model).items():
            origin = theirs.get(_name_in_teacher(name, layers))
            # a sublayer of another kind may have a parameter of that name
            if origin is not None and origin.shape == parameter.shape:
                parameter.copy_(origin)

    settings = {**teacher.settings, "model": smaller.to_table()}
    model.eval().requires_grad_(False)
    return dataclasses.replace(teacher, held=model, settings=settings, manifest={}, path=None)


def shrunk_config(
    config: ModelConfig, decoder: str, decoder_layers: int
) -> tuple[TransformerConfig, list[int]]:
    """The config of ``shrunk``, and the numbers of the teacher's layers that it copies.

    Raises ConfigError as it does.
    """
    if not isinstance(config, TransformerConfig):
        raise ConfigError(
            f"a student that begins as a copy needs a transformer as its teacher, not a"
            f" {config.kind}",
            hint="leave out --from-teacher",
        )
    if decoder_layers > config.decoder_layers:
        raise ConfigError(
            f"the teacher's decoder has {config.decoder_layers} layers, fewer than the"
            f" {decoder_layers} of the student",
            hint="set model.decoder_layers, or leave out --from-teacher",
        )

    table = {**config.to_table(), "decoder": decoder, "decoder_layers": decoder_layers}
    smaller = TransformerConfig.parse(table, "the student's model")
    return smaller, copied_layers(decoder_layers, config.decoder_layers)


def check_copy(teacher: Bundle, decoder: str, decoder_layers: int, own: Mapping[str, Any]) -> None:
    """Raise ConfigError as ``shrunk`` does, and for settings that contradict the copy.

    ``own`` are the settings that the user gave, by dotted name. No parameter is read.
    """
    smaller, _ = shrunk_config(teacher.config, decoder, decoder_layers)
    problems = contradictions({"model": smaller, "tokenizer": tokenizer_config(teacher)}, own)
    if problems:
        raise ConfigError(
            "a student that begins as a copy of its teacher must keep its model and tokenizer: "
            + "; ".join(
                f"{name} is {has} in the copy, not {wanted}" for name, has, wanted in problems
            ),
            hint="leave these settings out, or leave out --from-teacher",
        )


def copied_layers(count: int, of: int) -> list[int]:
    """The numbers of ``count`` of ``of`` layers, evenly spaced from the first to the last.

    >>> copied_layers(2, 6), copied_layers(3, 6), copied_layers(1, 4)
    ([0, 5], [0, 2, 5], [0])
    """
    return [round(at * (of - 1) / max(count - 1, 1)) for at in range(count)]


def save_shrunk(path: Path, student: Bundle, teacher: str) -> None:
    """Write a student to the folder ``path``; ``teacher`` is the SHA-256 of its teacher's manifest.

    Raises OutputExistsError and WriteError.
    """
    card = (
        "# A student before its first update\n\n"
        f"Copied from the teacher whose manifest has the SHA-256 `{teacher}`, with a decoder of"
        f" {student.config.summary()}. It translates nothing yet.\n"
    )
    save_bundle(path, student, card=card, details={"begun_from": teacher})


def settings_of_copy(path: Path) -> list[str]:
    """The settings of the student in the folder ``path`` as overrides, for a recipe that fits it.

    Its updates are timed with them. A tokenizer of Marian's cannot be trained, so the recipe times
    one of its own.
    """
    student = open_bundle(path)
    sections = {"model": student.config.to_table()}
    tokenizer = tokenizer_config(student).to_table()
    if tokenizer["kind"] != "marian":
        sections["tokenizer"] = {name: tokenizer[name] for name in _TIMED if name in tokenizer}
    return [
        f"{section}.{write_toml({name: value}).strip()}"
        for section, settings in sections.items()
        for name, value in settings.items()
    ]


def copy_recipe(
    chosen: Recipe, path: Path, teacher: Bundle, own: Mapping[str, Any]
) -> tuple[RunConfig, Recipe]:
    """The config of the student in the folder ``path``, with the updates that were ``chosen``.

    It learns from the teacher's translations and, as the tokens are the same, from its likeliest
    tokens at each position too. ``own`` are the settings that the user gave, by dotted name.
    Raises ConfigError for those that contradict the student.
    """
    # the teacher is asked once, so the text must be cut in the same way each time
    once = {"tokenizer.sampling": 0.0, "training.teacher_top_k": _LIKELIEST, **own}
    table: Mapping[str, Any] = dataclasses.replace(chosen, overrides=once).table()
    table = begin_with(table, open_bundle(path), once)
    table = taught_by(table, [teacher], once)
    config = RunConfig.parse(table, origin="--set over what was chosen")

    fixed = {f"model.{name}": value for name, value in table["model"].items()}
    fixed |= {f"tokenizer.{name}": value for name, value in table["tokenizer"].items()}
    fixed |= {f"training.{name}": table["training"][name] for name in _OF_TEACHER}
    what = "model and tokenizers of the teacher, whose likeliest tokens are learned as well"
    begun = Choice(fixed, what, "the student begins as its copy")
    # what was chosen for a model that begins with random numbers says nothing of this one
    replaced = ("model.", "tokenizer.", "training.vector_epochs")
    others = tuple(
        each
        for each in chosen.choices
        if each.settings and not any(name.startswith(replaced) for name in each.settings)
    )
    return config, dataclasses.replace(chosen, choices=(*others, begun), overrides=own)


def _name_in_teacher(name: str, layers: list[int]) -> str:
    if not name.startswith(_LAYER):
        return name
    number, _, rest = name.removeprefix(_LAYER).partition(".")
    return f"{_LAYER}{layers[int(number)]}.{rest}"
