"""The kernels in 8 bits beside CTranslate2 and torch in float32: CPU-seconds of the same searches.

    OMP_NUM_THREADS=1 python benchmarks/kernels_speed.py
    OMP_NUM_THREADS=1 python benchmarks/kernels_speed.py --trained runs/multi30k test.en test.de

What is counted: generated tokens, with their stops, per second of this process's CPU time on one
thread; the median of all rounds, with the least and the largest. The contenders take turns in every
round: kernels and torch through their engines of Pellucid, CTranslate2 by one call of its own,
which gives no log-probabilities. Ids in, hypotheses out. Greedy search with random weights, a
vocabulary of 8,000, sources of 19 tokens and their stop, translations of 17 tokens and theirs;
"alone" is one sentence after another. CTranslate2 has no SSRU: there it computes the student with
self-attention. On processors without VNNI its int8 gives wrong numbers, at the speed shown.
With a trained model: text in, text out, and BLEU, beside the share of equal translations.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import ctranslate2
import machine

from pellucid.backends.ctranslate2.cache import converted
from pellucid.backends.ctranslate2.engine import Ctranslate2Engine, open_workers
from pellucid.backends.ctranslate2.support import vocabulary_pieces
from pellucid.backends.kernels.engine import KernelEngine
from pellucid.backends.kernels.library import Library
from pellucid.bundle import Bundle, load_bundle
from pellucid.core.special import SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine
from pellucid.decoding.requests import ReadLine, Request
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import bleu
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.text.corpus.lines import read_lines
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

WORDS = 8000
SOURCE_TOKENS, TARGET_TOKENS = 19, 17
STUDENT = {"d_model": 256, "d_ff": 1536, "heads": 8, "encoder_layers": 6, "decoder_layers": 2}
SMALL = {"d_model": 128, "d_ff": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4}
SMALL |= {"norm": "pre", "positions": "rotary"}
MODELS: dict[str, dict[str, Any]] = {
    "student 6+2/256, SSRU": {**STUDENT, "decoder": "ssru"},
    "student 6+2/256, self-attention": STUDENT,
    "Transformer 4+4/128": SMALL,
}
BATCHES = (1, 32, 128)
Contender = Callable[[], int]
"""Translates everything, and says how many tokens that are."""


def main() -> None:
    options = _parse_options()
    before = machine.describe(("torch", "numpy", "ctranslate2"))
    with tempfile.TemporaryDirectory() as name:
        library = Library(_build(Path(name) / "kernels.so"))
        result: dict[str, Any] = {
            "benchmark": "kernels_speed",
            "command": machine.command(),
            "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
            "machine": before,
            "instructions": library.instructions()[0],
            "rounds": options.rounds,
            "speed": [],
        }
        for model, settings in MODELS.items():
            for batch in BATCHES:
                contenders = _contenders(settings, library, batch)
                for row in race(contenders, options.rounds):
                    result["speed"].append({"model": model, "batch": batch, **row})
                    print(json.dumps(result["speed"][-1]), flush=True)
        if options.trained:
            bundle, source, reference = options.trained
            result["trained"] = _trained(
                Path(bundle), source, reference, options.lines, library, options.rounds
            )

    machine.write_result("kernels_speed", result, _page(result))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--trained", nargs=3, metavar=("BUNDLE", "SOURCE", "REFERENCE"))
    parser.add_argument("--lines", type=int, default=400, help="of the trained model's text")
    return parser.parse_args()


def _build(out: Path) -> Path:
    build = machine.REPOSITORY / "kernels" / "build.py"
    subprocess.run([sys.executable, build, out], check=True)
    return out


def _random_bundle(settings: dict[str, Any]) -> Bundle:
    tokenizer = WordTokenizer("word", Vocabulary.of(f"w{n}" for n in range(WORDS - SPECIAL_COUNT)))
    model = build_model(TransformerConfig(**settings), WORDS, WORDS, seed=0)
    return Bundle(model.eval().requires_grad_(False), tokenizer, tokenizer, {}, {})


def _contenders(settings: dict[str, Any], library: Library, batch: int) -> dict[str, Contender]:
    bundle = _random_bundle(settings)
    engines: dict[str, Engine] = {
        "kernels, int8": KernelEngine(bundle, library, "a benchmark"),
        "torch, float32": TorchEngine(),
    }
    contenders = {name: _searching(engine, bundle, batch) for name, engine in engines.items()}

    # it has no SSRU: its student has self-attention
    other = _random_bundle({**settings, "decoder": "self-attention"})
    for type_ in ("float32", "int8"):
        contenders[f"CTranslate2, {type_}"] = _by_ctranslate2(other, batch, type_)
    return contenders


def _sources(batch: int) -> list[list[int]]:
    draw = random.Random(batch)
    words = range(SPECIAL_COUNT, WORDS)
    return [draw.choices(words, k=SOURCE_TOKENS) for _ in range(max(batch, 8))]


def _by_ctranslate2(bundle: Bundle, batch: int, type_: Literal["float32", "int8"]) -> Contender:
    """Its own call, without log-probabilities of tokens; and int8 where our engine refuses it."""
    with converted(bundle, type_) as folder:
        model = ctranslate2.Translator(
            str(folder), compute_type=type_, inter_threads=1, intra_threads=1
        )
    pieces = vocabulary_pieces(bundle.source_tokenizer)
    lines = [[pieces[id_] for id_ in ids] for ids in _sources(batch)]

    def run() -> int:
        found = []
        for first in range(0, len(lines), batch):
            found += model.translate_batch(
                lines[first : first + batch],
                beam_size=1,
                max_decoding_length=TARGET_TOKENS + 1,
                return_end_token=True,
            )
        return sum(len(each.hypotheses[0]) for each in found)

    return run


def _searching(engine: Engine, bundle: Bundle, batch: int) -> Contender:
    lines = [
        ReadLine(Request("a line"), tuple(ids), prefix_ids=(), required_ids=())
        for ids in _sources(batch)
    ]
    settings = DecodingConfig(beam_size=1, max_length=TARGET_TOKENS, batch_tokens=1 << 16)

    def run() -> int:
        found = []
        for first in range(0, len(lines), batch):
            found += engine.search(lines[first : first + batch], bundle, settings)
        return sum(len(best.ids) + 1 for best, *_ in found)

    return run


def race(contenders: dict[str, Contender], rounds: int) -> list[dict[str, Any]]:
    """Tokens per CPU-second of each, in turn; the first run of each is not counted."""
    for run in contenders.values():
        run()
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            began = time.process_time()
            count = run()
            rates[name].append(count / (time.process_time() - began))
    return [
        {
            "who": name,
            "tokens_per_cpu_second": round(statistics.median(each)),
            "least": round(min(each)),
            "most": round(max(each)),
        }
        for name, each in rates.items()
    ]


def _trained(
    folder: Path, source: str, reference: str, count: int, library: Library, rounds: int
) -> list[dict[str, Any]]:
    bundle = load_bundle(folder)
    lines, references = (read_lines(Path(each))[:count] for each in (source, reference))
    workers = open_workers(bundle, "float32")
    engines: dict[str, Engine] = {
        "torch, float32": TorchEngine(),
        "CTranslate2, float32": Ctranslate2Engine(bundle, workers, "a benchmark"),
        "kernels, int8": KernelEngine(bundle, library, "a benchmark"),
    }
    rows = []
    for beam_size in (1, 5):
        settings = DecodingConfig(beam_size=beam_size, length_penalty=1.0)
        translators = {
            name: Translator(bundle, settings, engine) for name, engine in engines.items()
        }
        texts = {
            name: [each.text for each in translator.translate(lines)]
            for name, translator in translators.items()
        }
        speeds = race(
            {name: _translating(each, lines) for name, each in translators.items()}, rounds
        )
        for speed in speeds:
            found = texts[speed["who"]]
            same = sum(a == b for a, b in zip(found, texts["torch, float32"], strict=True))
            rows.append(
                {
                    "beam": beam_size,
                    "lines": count,
                    "rounds": rounds,
                    **speed,
                    "bleu": round(bleu(found, references).score, 2),
                    "equal": round(same / len(lines), 4),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def _translating(translator: Translator, lines: Sequence[str]) -> Contender:
    return lambda: sum(len(each.tokens) + 1 for each in translator.translate(lines))


def _page(result: dict[str, Any]) -> str:
    where = result["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    kernels = {
        (row["model"], row["batch"]): row["tokens_per_cpu_second"]
        for row in result["speed"]
        if row["who"].startswith("kernels")
    }
    rows = [
        f"| {r['model']} | {'alone' if r['batch'] == 1 else r['batch']} | {r['who']} |"
        f" {r['tokens_per_cpu_second']:,} ({r['least']:,} to {r['most']:,}) |"
        f" {kernels[r['model'], r['batch']] / r['tokens_per_cpu_second']:.2f} |"
        for r in result["speed"]
    ]
    page = [
        "# Speed of the kernels",
        "",
        result["counted"],
        "",
        "| model | batch | who | tokens per CPU-second (least to most) | kernels / it |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    if "trained" in result:
        page += [
            f"A trained model, from text to text through the engines of Pellucid, the first"
            f" {result['trained'][0]['lines']} lines, {result['trained'][0]['rounds']} rounds:",
            "",
            "| beam | who | tokens per CPU-second (least to most) | BLEU | as torch |",
            "|---|---|---|---|---|",
            *(
                f"| {r['beam']} | {r['who']} | {r['tokens_per_cpu_second']:,} ({r['least']:,} to"
                f" {r['most']:,}) | {r['bleu']:.2f} | {100 * r['equal']:.1f}% |"
                for r in result["trained"]
            ),
            "",
        ]
    compiler = (
        shutil.which("cc") is not None
        and subprocess.run(
            ["cc", "--version"], capture_output=True, text=True, check=True
        ).stdout.partition("\n")[0]
    )
    return "\n".join(
        [
            *page,
            f"- machine: {where['cpu']}, instructions {result['instructions']}, {where['cores']}"
            f" cores, load {where['load_before']} before the start; one thread; {compiler}",
            f"- {result['rounds']} rounds; {where['date']}, commit {where['commit']}, Python"
            f" {where['python']}, {versions}",
            f"- `{result['command']}`",
            "",
        ]
    )


if __name__ == "__main__":
    main()
