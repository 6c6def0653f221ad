"""One sentence at a time by the own engine, beside CTranslate2: CPU-seconds of the same searches.

    OMP_NUM_THREADS=1 python benchmarks/sentence_speed.py

What is counted: milliseconds of this process's CPU time for one sentence on one thread, the median
of all rounds, with the least and the largest; the contenders take turns in every round. Ids in,
hypotheses out. A Transformer of 4 + 4 layers, 128 wide, random weights, a vocabulary of 8,000,
sources of 19 tokens and their stop, 20 steps. CTranslate2 computes in float32 and is called by
itself, without log-probabilities of tokens; it has no required phrases.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import ctranslate2
import machine
import torch

from pellucid.backends.ctranslate2.cache import converted
from pellucid.backends.ctranslate2.support import vocabulary_pieces
from pellucid.bundle import Bundle
from pellucid.core.special import SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.requests import ReadLine, Request
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.model.layers import store_by_columns
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

WORDS, SOURCE_TOKENS, STEPS, SENTENCES = 8000, 19, 20, 8
CONFIG = TransformerConfig(
    d_model=128,
    d_ff=256,
    heads=4,
    encoder_layers=4,
    decoder_layers=4,
    norm="pre",
    positions="rotary",
)
SEARCHES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "greedy": ({"beam_size": 1}, {}),
    "beam 5": ({"beam_size": 5}, {}),
    "beam 5, a prefix of 3 tokens": ({"beam_size": 5}, {"prefix_ids": (10, 11, 12)}),
    "beam 5, a required phrase": ({"beam_size": 5}, {"required_ids": (((50, 51),),)}),
    "sampling": ({"beam_size": 1, "sampling": SamplingConfig()}, {}),
}
"""Settings and constraints of each."""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    about = machine.describe(("torch", "numpy", "ctranslate2"))
    torch.set_num_threads(1)

    tokenizer = WordTokenizer("word", Vocabulary.of(f"w{n}" for n in range(WORDS - SPECIAL_COUNT)))
    model = build_model(CONFIG, WORDS, WORDS, seed=0).eval().requires_grad_(False)
    store_by_columns(model)
    bundle = Bundle(model, tokenizer, tokenizer, {}, {})
    draw = random.Random(1)
    words = range(SPECIAL_COUNT, WORDS)
    sources = [tuple(draw.choices(words, k=SOURCE_TOKENS)) for _ in range(SENTENCES)]

    contenders: dict[tuple[str, str], Callable[[], None]] = {}
    for name, (settings, constraints) in SEARCHES.items():
        contenders[name, "own engine"] = _own(bundle, sources, settings, constraints)
        if not constraints and "sampling" not in settings:
            contenders[name, "CTranslate2"] = _ctranslate2(bundle, sources, settings["beam_size"])

    for run in contenders.values():
        run()
    found: dict[tuple[str, str], list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for contender, run in contenders.items():
            began = time.process_time()
            run()
            found[contender].append(1000 * (time.process_time() - began) / SENTENCES)

    result = {
        "benchmark": "sentence_speed",
        "command": machine.command(),
        "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
        "machine": about,
        "rounds": rounds,
        "milliseconds": [
            {
                "search": search,
                "who": who,
                "median": round(statistics.median(each), 1),
                "least": round(min(each), 1),
                "most": round(max(each), 1),
            }
            for (search, who), each in found.items()
        ],
    }
    machine.write_result("sentence_speed", result, _page(result))


def _own(
    bundle: Bundle,
    sources: list[tuple[int, ...]],
    settings: dict[str, Any],
    constraints: dict[str, Any],
) -> Callable[[], None]:
    own = {"prefix_ids": (), "required_ids": (), **constraints}
    lines = [ReadLine(Request("a line"), ids, **own) for ids in sources]
    wanted, engine = DecodingConfig(max_length=STEPS - 1, **settings), TorchEngine()

    def run() -> None:
        for line in lines:
            engine.search([line], bundle, wanted)

    return run


def _ctranslate2(
    bundle: Bundle, sources: list[tuple[int, ...]], beam_size: int
) -> Callable[[], None]:
    with converted(bundle, "float32") as folder:
        model = ctranslate2.Translator(
            str(folder), compute_type="float32", inter_threads=1, intra_threads=1
        )
    pieces = vocabulary_pieces(bundle.source_tokenizer)
    lines = [[pieces[id_] for id_ in ids] for ids in sources]

    def run() -> None:
        for line in lines:
            model.translate_batch(
                [line], beam_size=beam_size, max_decoding_length=STEPS, return_end_token=True
            )

    return run


def _page(result: dict[str, Any]) -> str:
    where = result["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    rows = [
        f"| {each['search']} | {each['who']} | {each['median']:.1f}"
        f" ({each['least']:.1f} to {each['most']:.1f}) |"
        for each in result["milliseconds"]
    ]
    return "\n".join(
        [
            "# Speed of one sentence",
            "",
            result["counted"],
            "",
            "| search | who | ms of CPU time (least to most) |",
            "|---|---|---|",
            *rows,
            "",
            f"- machine: {where['cpu']}, {where['cores']} cores, load {where['load_before']} before"
            f" the start; one thread; {result['rounds']} rounds",
            f"- {where['date']}, commit {where['commit']}, Python {where['python']}, {versions}",
            f"- `{result['command']}`",
            "",
        ]
    )


if __name__ == "__main__":
    main()
