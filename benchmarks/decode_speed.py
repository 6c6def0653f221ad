"""Decoding speed beside Hugging Face generate and CTranslate2: same weights, same steps, in turn.

    python benchmarks/decode_speed.py --data ../shared/data/multi30k

Models of the sizes tiny (4+4 layers, 128 wide) and base (the paper's) with random weights are
written once and exported to each contender's format. Every contender is a process of its own that
has loaded its model; in each round all translate the same sentences, one contender after the other.

What is counted: 20 steps for each sentence, the forced stop among them, per second of wall time.
Pellucid's time is from text to text; that of the others is their search alone, without
tokenization, Hugging Face's in batches sorted by length. Medians over the rounds. Outputs are
compared: with greedy search the tokens, with a beam the set of its hypotheses, because Hugging
Face counts a forced stop as certain and so ranks them otherwise.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine

from pellucid.backends.ctranslate2.export import export_ctranslate2
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.lines import read_lines
from pellucid.text.tokenizers.tokenizer import train_tokenizers

STEPS = 20
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 128, "d_ff": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4},
    "base": {},
}
CONTENDERS = (
    "pellucid",
    "pellucid-bf16",
    "huggingface",
    "ctranslate2-default",
    "ctranslate2-int8",
)


def main() -> None:
    options = _parse_options()
    about = machine.describe(("torch", "transformers", "ctranslate2"))
    options.work.mkdir(parents=True, exist_ok=True)
    lines = options.work / "lines.txt"
    source = list(read_lines(options.data / f"test_2016_flickr.{options.languages[0]}"))
    lines.write_text("\n".join(source), encoding="utf-8")
    rounds: list[dict[str, Any]] = []
    latencies: dict[str, Any] = {}
    for size in options.sizes:
        count = min(len(source), options.count if size == "tiny" else options.base_count)
        _prepare(size, options)
        contenders = {name: _start(name, options.work / size, lines) for name in options.contenders}
        try:
            for beam_size in options.beams:
                rounds += _measure(size, beam_size, count, contenders, options.rounds)
            if "pellucid" in contenders:
                latencies[size] = _ask(contenders["pellucid"], {"latency_tokens": 20})
        finally:
            for process in contenders.values():
                process.kill()
    _write(about, rounds, latencies, options)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with Multi30k")
    add("--languages", nargs=2, default=["en", "de"], help="suffixes: source, target")
    add("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    add("--beams", nargs="+", type=int, default=[1, 5])
    add("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    add("--count", type=int, default=1000, help="sentences for tiny")
    add("--base-count", type=int, default=200, help="sentences for base")
    add("--rounds", type=int, default=3)
    add("--huggingface-batch", type=int, default=64, help="sentences times beams in a batch")
    add("--work", type=Path, default=Path("/tmp/decode_speed"), help="for the models")
    add("--out", type=Path, default=machine.REPOSITORY / "benchmarks" / "results")
    options = parser.parse_args()
    os.environ["HUGGINGFACE_BATCH"] = str(options.huggingface_batch)
    return options


def _prepare(size: str, options: argparse.Namespace) -> None:
    """The bundle and its exports, unless they are there."""
    folder = options.work / size
    if not folder.exists():
        training = [read_lines(options.data / f"train.{each}") for each in options.languages]
        both, _ = train_tokenizers(*training, TokenizerConfig(vocabulary_size=8000))
        table = SIZES[size] | {"norm_eps": 1e-5, "attention_bias": True, "output_bias": True}
        config = parse_model_config(table)
        vocabulary_size = both.vocabulary_size
        model = build_model(config, vocabulary_size, vocabulary_size, seed=1).eval()
        for name, parameter in model.named_parameters():
            if name.endswith(("w_qkv", "w_o")):  # fresh attention hardly tells words apart
                parameter.data *= 1.5
        settings = {"model": config.to_table()}
        bundle = Bundle(model.requires_grad_(False), both, both, settings, {})
        save_bundle(folder, bundle, card="Random weights.", details={})
    bundle = load_bundle(folder)
    for name, export in (("huggingface", export_huggingface), ("ctranslate2", export_ctranslate2)):
        out = options.work / f"{size}-{name}"
        if not out.exists():
            export(bundle, out)


def _start(name: str, model: Path, lines: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("decode_contenders.py")), name, model, lines],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _read(process)
    return process


def _ask(process: subprocess.Popen[str], wanted: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.write(json.dumps(wanted) + "\n")
    process.stdin.flush()
    return _read(process)


def _read(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{shlex.join(map(str, process.args))} ended early")
    return dict(json.loads(line))


def _measure(
    size: str,
    beam_size: int,
    count: int,
    contenders: dict[str, subprocess.Popen[str]],
    rounds: int,
) -> list[dict[str, Any]]:
    """All contenders in turn; how many sentences came out as Pellucid's in the first round."""
    results = []
    reference: list[set[tuple[int, ...]]] = []
    for number in range(1, rounds + 1):
        for name, process in contenders.items():
            answer = _ask(process, {"beam_size": beam_size, "count": count})
            outputs = [{tuple(ids) for ids in each} for each in answer["outputs"]]
            reference = reference or outputs
            row = {
                "model": size,
                "beam_size": beam_size,
                "contender": name,
                "round": number,
                "sentences": count,
                "seconds": round(answer["seconds"], 3),
                "tokens_per_second": round(STEPS * count / answer["seconds"], 1),
                "equal": sum(a >= b for a, b in zip(reference, outputs, strict=True)),
            }
            print(json.dumps(row), flush=True)
            results.append(row)
    return results


def _write(
    about: dict[str, Any],
    rounds: list[dict[str, Any]],
    latencies: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    result = {
        "benchmark": "decode_speed",
        "command": machine.command(),
        "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
        "machine": about,
        "rounds": rounds,
        "latency_seconds": latencies,
    }
    report = _report(result)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "decode_speed.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.out / "decode_speed.md").write_text(report)
    print(report)


def _report(result: dict[str, Any]) -> str:
    about = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    latencies = result["latency_seconds"].items()
    lines = [
        "# Decoding speed",
        "",
        result["counted"],
        "",
        "| model | beam | contender | tokens/s, median | times Hugging Face | equal outputs |",
        "|---|---|---|---|---|---|",
        *_table(result["rounds"]),
        "",
        *(
            f"- {size}: one sentence of 20 tokens, beam 4, 20 forced tokens: median"
            f" {1000 * each['median']:.0f} ms, the first {1000 * each['first']:.0f} ms"
            for size, each in latencies
        ),
        f"- machine: {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GB,"
        f" load {about['load_before']} before the start",
        f"- {about['date']}, commit {about['commit']}, Python {about['python']}, {versions}",
        f"- `{result['command']}`",
    ]
    return "\n".join(lines) + "\n"


def _table(rounds: list[dict[str, Any]]) -> list[str]:
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in rounds:
        groups.setdefault((row["model"], row["beam_size"], row["contender"]), []).append(row)
    medians = {
        key: statistics.median(row["tokens_per_second"] for row in rows)
        for key, rows in groups.items()
    }
    lines = []
    for (size, beam_size, name), rows in groups.items():
        speed = medians[size, beam_size, name]
        peer = medians.get((size, beam_size, "huggingface"))
        ratio = f"{speed / peer:.2f}" if peer else "-"
        lines.append(
            f"| {size} | {beam_size} | {name} | {speed:,.0f} | {ratio} |"
            f" {rows[0]['equal']} of {rows[0]['sentences']} |"
        )
    return lines


if __name__ == "__main__":
    main()
