"""A model that has learned a little French in seconds, so that a page has something to show."""

import itertools
from pathlib import Path

import torch
from made_once import made_once
from safetensors.torch import load_file, save_file

from pellucid.bundle import Bundle
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import Seq2Seq
from pellucid.text.batching import collate_pairs
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import build_objective
from pellucid.training.step import build_optimizer, learning_rate, update

SUBJECTS = {
    ("je", "i"): {"vois": "see", "aime": "like", "cherche": "seek"},
    ("tu", "you"): {"vois": "see", "aimes": "like", "cherches": "seek"},
}
NOUNS = {"maisons": "houses", "chats": "cats", "chiens": "dogs", "jardins": "gardens"}
ADJECTIVES = {"": "", "rouges": "red", "jaunes": "yellow", "tristes": "sad"}
MODEL = {
    "d_model": 32,
    "d_ff": 64,
    "heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "dropout": 0.0,
    "norm": "pre",
    "share_embeddings": False,
}
TRAINING = TrainingConfig(max_steps=260, warmup_steps=40, learning_rate=6e-3, label_smoothing=0.0)


def pairs() -> list[tuple[str, str]]:
    """Every sentence of the little grammar with its translation."""
    found = []
    for (subject, verbs), is_negated in itertools.product(SUBJECTS.items(), (False, True)):
        for verb, noun, adjective in itertools.product(
            verbs.items(), NOUNS.items(), ADJECTIVES.items()
        ):
            said = ["ne", verb[0], "pas"] if is_negated else [verb[0]]
            source = [subject[0], *said, "les", noun[0], adjective[0]]
            said = ["do", "not", verb[1]] if is_negated else [verb[1]]
            target = [subject[1], *said, "the", adjective[1], noun[1]]
            found.append((" ".join(filter(None, source)), " ".join(filter(None, target))))
    return found


def taught_bundle(base: Path) -> Bundle:
    """The model, which translates every sentence of the grammar; trained once for all workers."""
    text = pairs()
    source, target = (
        WordTokenizer(
            "word", Vocabulary.of(sorted({word for each in side for word in each.split()}))
        )
        for side in zip(*text, strict=True)
    )
    sizes = source.vocabulary_size, target.vocabulary_size
    model = build_model(parse_model_config(MODEL), *sizes, seed=1)
    ids = [(source.encode(one), target.encode(other)) for one, other in text]
    file = made_once(base, "taught.safetensors", lambda path: _teach(model, ids, path))
    model.load_state_dict(load_file(file))
    return Bundle(model.eval().requires_grad_(False), source, target, {}, {})


def _teach(model: Seq2Seq, ids: list[tuple[list[int], list[int]]], path: Path) -> None:
    optimizer, objective = build_optimizer(model, TRAINING), build_objective(TRAINING)
    generator = torch.Generator().manual_seed(2)
    steps = TRAINING.max_steps or 0
    for step in range(1, steps + 1):
        chosen = torch.randint(len(ids), (48,), generator=generator).tolist()
        sources, targets = zip(*(ids[each] for each in chosen), strict=True)
        batch = collate_pairs(list(sources), list(targets))
        rate = learning_rate(TRAINING, MODEL["d_model"], step, step / steps)
        update(model, optimizer, [batch], objective, TRAINING, rate)
    save_file({name: each.clone() for name, each in model.state_dict().items()}, path)
