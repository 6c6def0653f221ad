"""The engines beside CTranslate2 called with its defaults: same weights, text in, text out.

    python benchmarks/engine_speed.py ../runs/en-de ../shared/data/multi30k/val.en

What is counted: target tokens per second of wall time, best of all rounds; the contenders take
turns in every round. All of them cut the text, search and join the pieces; our engines also give
the log-probability of every token, but for "text only". "ctranslate2 defaults" is one
call of translate_batch on a Translator made with nothing but the compute type, its beam size and
longest translation set to ours. The tiny model is BUNDLE, at the lengths it chooses; the base model
is the paper's in size, with BUNDLE's tokenizers, random weights, pre-norm and learned positions, of
which the one after the 20th token says stop.
"""

import argparse
import json
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import machine

from pellucid.backends.ctranslate2.cache import converted
from pellucid.backends.load import load
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.text.corpus.lines import read_lines

RESULTS = Path(__file__).parent / "results"
BASE_TOKENS = 20
SENTENCE = (
    "A man in a blue shirt is standing on a ladder and cleaning the window of a very large house ."
)
"""Twenty words."""
Contender = Callable[[], tuple[list[str], int]]
"""Translates everything; gives the texts and how many target tokens they have."""


def main() -> None:
    options = _parse_options()
    before = machine.describe(("torch", "numpy", "sentencepiece", "ctranslate2"))
    lines = read_lines(options.source)[: options.lines]
    table: list[dict[str, Any]] = []
    latencies: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        models = {"tiny": load_bundle(options.bundle)}
        if options.base_lines:
            models["base"] = _base_bundle(models["tiny"], Path(name) / "base")
        for size, bundle in models.items():
            some = lines if size == "tiny" else lines[: options.base_lines]
            longest = None if size == "tiny" else 2 * BASE_TOKENS
            for compute_type in ("float32", "int8"):
                for beam_size in (1, 5):
                    contenders = _contenders(bundle, some, compute_type, beam_size, longest)
                    for row in _race(contenders, options.rounds):
                        table.append(
                            {"model": size, "type": compute_type, "beam": beam_size, **row}
                        )
                        print(json.dumps(table[-1]), flush=True)
            latencies += _latencies(size, bundle, longest, options.calls)
    result = {
        "benchmark": "engine_speed",
        "command": shlex.join(["python", "benchmarks/engine_speed.py", *map(_bare, sys.argv[1:])]),
        "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
        "machine": before,
        "lines": {"tiny": len(lines), "base": options.base_lines},
        "rounds": options.rounds,
        "speed": table,
        "first answer, ms": latencies,
    }
    RESULTS.joinpath("engine_speed.json").write_text(json.dumps(result, indent=1) + "\n")
    RESULTS.joinpath("engine_speed.md").write_text(_page(result))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--base-lines", type=int, default=200, help="0 leaves the base model out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=30, help="for the time of a first answer")
    return parser.parse_args()


def _bare(argument: str) -> str:
    """Without the folders of this machine."""
    return Path(argument).name if argument.startswith(("/", ".")) else argument


def _base_bundle(tiny: Bundle, folder: Path) -> Bundle:
    """Random weights that stop after ``BASE_TOKENS``: its position outweighs all else there."""
    config = TransformerConfig(
        norm="pre", positions="learned", max_positions=256, tie_output=False, output_bias=True
    )
    size = tiny.source_tokenizer.vocabulary_size
    model = build_model(config, size, tiny.target_tokenizer.vocabulary_size, seed=0)
    stop = model.get_parameter("output_weight").data[EOS_ID]
    stop *= 10 / stop.norm()  # at its position the logit is 10 · √512 = 226, elsewhere some ±30
    model.get_parameter("output_bias").data[EOS_ID] -= 100
    model.get_parameter("target_embedding.positions.learned").data[BASE_TOKENS] += 100 * stop
    settings = {"model": config.to_table()}
    bundle = Bundle(model, tiny.source_tokenizer, tiny.target_tokenizer, settings, {})
    save_bundle(folder, bundle, card="", details={})
    return load_bundle(folder)


def _contenders(
    bundle: Bundle, lines: list[str], compute_type: Any, beam_size: int, longest: int | None
) -> dict[str, Contender]:
    """Return the contenders that compute in this type, ready to run."""
    settings = DecodingConfig(beam_size=beam_size, length_penalty=1.0, max_length=longest)
    assert bundle.path is not None
    contenders = {"ctranslate2 defaults": _defaults(bundle, lines, compute_type, settings)}
    names = ("ctranslate2", "torch") if compute_type == "float32" else ("ctranslate2",)
    for name in names:
        loaded = load(bundle.path, name, "cpu", compute_type)
        contenders[f"engine {name}"] = _ours(Translator(bundle, settings, loaded.engine), lines)
        if name == "ctranslate2":
            text_only = settings.changed({"token_log_probs": False})
            translator = Translator(bundle, text_only, loaded.engine)
            contenders[f"engine {name}, text only"] = _ours(translator, lines)
    return contenders


def _defaults(
    bundle: Bundle, lines: list[str], compute_type: Any, settings: DecodingConfig
) -> Contender:
    with converted(bundle, compute_type) as folder:
        model = ctranslate2.Translator(str(folder), compute_type=compute_type)
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    pieces = target.tokens(range(target.vocabulary_size))
    ids = {piece: id_ for id_, piece in enumerate(pieces)}

    def run() -> tuple[list[str], int]:
        cut = [source.tokens(each) for each in source.encode_batch(lines)]
        found = model.translate_batch(
            cut, beam_size=settings.beam_size, max_decoding_length=settings.max_length or 256
        )
        said = [result.hypotheses[0] for result in found]
        texts = [target.decode([ids.get(piece, 1) for piece in each]) for each in said]
        return texts, sum(len(each) for each in said)

    return run


def _ours(translator: Translator, lines: list[str]) -> Contender:
    def run() -> tuple[list[str], int]:
        found = translator.translate(lines)
        return [each.text for each in found], sum(len(each.tokens) for each in found)

    return run


def _race(contenders: dict[str, Contender], rounds: int) -> list[dict[str, Any]]:
    """Tokens per second of each, and the share of its texts that are those of the first."""
    answers = {name: run() for name, run in contenders.items()}  # warms up
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    reference = answers["ctranslate2 defaults"][0]
    rates = {name: answers[name][1] / min(seconds[name]) for name in contenders}
    return [
        {
            "who": name,
            "tokens_per_second": round(rates[name]),
            "times_defaults": round(rates[name] / rates["ctranslate2 defaults"], 2),
            "equal_texts": round(
                sum(a == b for a, b in zip(answers[name][0], reference, strict=True))
                / len(reference),
                4,
            ),
            "seconds": [round(each, 3) for each in seconds[name]],
        }
        for name in contenders
    ]


def _latencies(size: str, bundle: Bundle, longest: int | None, calls: int) -> list[dict[str, Any]]:
    """Median and largest time of one sentence through the API, beam 4; the first is not counted."""
    assert bundle.path is not None
    translators = {
        f"{name}, {compute_type}": load(bundle.path, name, "cpu", compute_type)  # type: ignore[arg-type]
        for name, compute_type in (
            ("torch", "float32"),
            ("ctranslate2", "float32"),
            ("ctranslate2", "int8"),
        )
    }
    seconds: dict[str, list[float]] = {name: [] for name in translators}
    for call in range(calls + 1):
        for name, translator in translators.items():
            began = time.perf_counter()
            translator.translate(SENTENCE, beam_size=4, max_length=longest)
            if call:
                seconds[name].append((time.perf_counter() - began) * 1000)
    rows = [
        {
            "model": size,
            "engine": name,
            "median": round(statistics.median(each), 1),
            "worst": round(max(each), 1),
        }
        for name, each in seconds.items()
    ]
    for row in rows:
        print(json.dumps(row), flush=True)
    return rows


def _page(result: dict[str, Any]) -> str:
    where = result["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    rows = [
        f"| {r['model']} | {r['type']} | {r['beam']} | {r['who']} | {r['tokens_per_second']:,} |"
        f" {r['times_defaults']:.2f} | {100 * r['equal_texts']:.1f}% |"
        for r in result["speed"]
    ]
    first = [
        f"| {r['model']} | {r['engine']} | {r['median']:.1f} | {r['worst']:.1f} |"
        for r in result["first answer, ms"]
    ]
    return "\n".join(
        [
            "# Speed of the engines",
            "",
            result["counted"],
            "",
            "| model | type | beam | who | tokens/s | times defaults | texts as defaults |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            "One sentence of 20 words through `pellucid.load(...).translate`, beam 4, in ms:",
            "",
            "| model | engine | median | worst |",
            "|---|---|---|---|",
            *first,
            "",
            f"- {result['lines']['tiny']} lines (base: {result['lines']['base']}),"
            f" {result['rounds']} rounds",
            f"- machine: {where['cpu']}, {where['cores']} cores, {where['memory_gb']} GB,"
            f" load {where['load_before']} before the start",
            f"- {where['date']}, commit {where['commit']}, Python {where['python']}, {versions}",
            f"- `{result['command']}`",
            "",
        ]
    )


if __name__ == "__main__":
    main()
