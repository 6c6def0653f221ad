"""``pellucid translate`` as a whole command, beside a script that an expert writes for CTranslate2.

    python benchmarks/command_speed.py ../shared/data/multi30k/val.en

What is counted: the whole process from its start to its last line, its time on the clock, its CPU
seconds and its peak memory; medians, the contenders in turn. "command" is ``pellucid translate``
with the engine auto, which takes CTranslate2; "script" imports ctranslate2 and sentencepiece alone,
opens the same converted model, sorts and batches as CTranslate2 recommends, and writes the texts.
Both use as many workers as there are cores. The models have the sizes of the preset multi30k and of
the paper's base model, random weights that say stop after the 20th token, and a vocabulary of FILE.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine

from pellucid.backends.ctranslate2.cache import CACHE_FOLDER
from pellucid.backends.load import load
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.core.special import STOP_ID
from pellucid.model.build import build_model
from pellucid.model.config import TransformerConfig
from pellucid.text.config import TokenizerConfig
from pellucid.text.corpus.lines import read_lines
from pellucid.text.tokenizers.tokenizer import Tokenizer, train_tokenizer
from pellucid.training.presets import read_config

RESULTS = Path(__file__).parent / "results"
TOKENS = 20
SCRIPT = """\
import sys

import ctranslate2
import sentencepiece

model, pieces, source, out, threads, beam_size = sys.argv[1:]
translator = ctranslate2.Translator(model, inter_threads=int(threads), intra_threads=1)
cutter = sentencepiece.SentencePieceProcessor(model_file=pieces)
lines = open(source, encoding="utf-8").read().splitlines()
found = translator.translate_batch(
    cutter.encode(lines, out_type=str),
    beam_size=int(beam_size),
    max_batch_size=2048,
    batch_type="tokens",
    max_decoding_length=40,
)
with open(out, "w", encoding="utf-8") as file:
    for each in found:
        text = cutter.decode(each.hypotheses[0]).replace("\\n", " ").replace("\\r", " ")
        file.write(text + "\\n")
"""
STARTER = """\
import json, os, subprocess, sys, time

began = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
seconds = time.perf_counter() - began
child.returncode = os.waitstatus_to_exitcode(status)
assert child.returncode == 0, sys.argv
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


@dataclasses.dataclass(frozen=True)
class Ran:
    """One process, from its start to its end."""

    seconds: float
    cpu_seconds: float
    peak_mb: float


def main() -> None:
    options = _parse_options()
    before = machine.describe(("torch", "numpy", "sentencepiece", "ctranslate2"))
    lines = read_lines(options.source)
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind="bpe", vocabulary_size=4000))
    preset = read_config("multi30k").model
    sizes = {
        "multi30k": {
            name: getattr(preset, name)
            for name in ("d_model", "d_ff", "heads", "encoder_layers", "decoder_layers")
        },
        "base": {},
    }
    plan = [
        ("multi30k", options.lines, 5),
        ("multi30k", options.lines, 1),
        ("multi30k", 1, 5),
        ("base", options.base_lines, 5),
    ]
    table: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = str(Path(name) / "cache")
        folders = {size: _save(sizes[size], tokenizer, Path(name) / size) for size in sizes}
        for size, count, beam_size in plan:
            given = Path(name) / "lines"
            given.write_text("".join(f"{line}\n" for line in lines[:count]), encoding="utf-8")
            ran = _race(folders[size], given, beam_size, options.rounds)
            texts = [(Path(name) / f"{who}.out").read_text() for who in ran]
            row = {"model": size, "lines": min(count, len(lines)), "beam": beam_size}
            for who, each in ran.items():
                row[who] = {
                    field.name: round(
                        statistics.median(getattr(one, field.name) for one in each), 2
                    )
                    for field in dataclasses.fields(Ran)
                }
            row["equal_texts"] = round(
                sum(a == b for a, b in zip(*(text.split("\n")[:-1] for text in texts), strict=True))
                / row["lines"],
                3,
            )
            table.append(row)
            print(json.dumps(row), flush=True)
    result = {
        "benchmark": "command_speed",
        "command": machine.command(),
        "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
        "machine": before,
        "rounds": options.rounds,
        "table": table,
    }
    RESULTS.joinpath("command_speed.json").write_text(json.dumps(result, indent=1) + "\n")
    RESULTS.joinpath("command_speed.md").write_text(_page(result))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", metavar="FILE", type=Path)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--base-lines", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def _save(sizes: dict[str, Any], tokenizer: Tokenizer, folder: Path) -> Path:
    """A bundle of random weights that stops after ``TOKENS``, converted for CTranslate2."""
    config = TransformerConfig(
        **sizes,
        norm="pre",
        positions="learned",
        max_positions=256,
        tie_output=False,
        output_bias=True,
    )
    model = build_model(config, tokenizer.vocabulary_size, tokenizer.vocabulary_size, seed=0)
    stop = model.get_parameter("output_weight").data[STOP_ID]
    stop *= 10 / stop.norm()  # at its position it outweighs all else
    model.get_parameter("output_bias").data[STOP_ID] -= 100
    model.get_parameter("target_embedding.positions.learned").data[TOKENS] += 100 * stop
    settings = {"model": config.to_table(), "decoding": {"max_length": 2 * TOKENS}}
    save_bundle(folder, Bundle(model, tokenizer, tokenizer, settings, {}), card="", details={})
    load(folder, "ctranslate2")
    assert load_bundle(folder).path == folder
    return folder


def _race(folder: Path, given: Path, beam_size: int, rounds: int) -> dict[str, list[Ran]]:
    [converted] = (folder.parent / CACHE_FOLDER).glob(f"{folder.name}-*-float32")
    script = given.with_name("script.py")
    script.write_text(SCRIPT, encoding="utf-8")
    outs = {who: str(given.with_name(f"{who}.out")) for who in ("command", "script")}
    cores = str(machine.cores())
    options = ["-o", outs["command"], "--beam-size", str(beam_size), "--length-penalty", "1"]
    commands = {
        "command": ["-m", "pellucid", "-q", "translate", str(folder), str(given), *options],
        "script": [
            str(script),
            str(converted),
            str(folder / "shared.spm"),
            str(given),
            outs["script"],
            cores,
            str(beam_size),
        ],
    }
    ran: dict[str, list[Ran]] = {who: [] for who in commands}
    for number in range(rounds + 1):
        for who, command in commands.items():
            each = _run([sys.executable, *command], cores)
            if number:  # the first fills the caches of the disk
                ran[who].append(each)
    return ran


def _run(command: list[str], threads: str) -> Ran:
    """A process begins with the peak of the one that starts it, so a small one starts it."""
    env = {**os.environ, "OMP_NUM_THREADS": threads}
    told = subprocess.run(
        [sys.executable, "-c", STARTER, *command], env=env, stdout=subprocess.PIPE, check=True
    )
    return Ran(*json.loads(told.stdout))


def _page(result: dict[str, Any]) -> str:
    where = result["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    rows = [
        f"| {row['model']} | {row['lines']:,} | {row['beam']} | {who} |"
        f" {row[who]['seconds']:.2f} | {row[who]['cpu_seconds']:.2f} |"
        f" {row[who]['cpu_seconds'] / row['script']['cpu_seconds']:.2f} |"
        f" {row[who]['peak_mb']:.0f} | {row[who]['peak_mb'] / row['script']['peak_mb']:.2f} |"
        for row in result["table"]
        for who in ("command", "script")
    ]
    equal = ", ".join(f"{100 * row['equal_texts']:.1f}%" for row in result["table"])
    return "\n".join(
        [
            "# Speed of the command",
            "",
            result["counted"],
            "",
            "| model | lines | beam | who | s | CPU s | times the script's | peak MB | times |",
            "|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"- {result['rounds']} rounds; texts equal to the script's: {equal}",
            f"- machine: {where['cpu']}, {where['cores']} cores, {where['memory_gb']} GB,"
            f" load {where['load_before']} before the start",
            f"- {where['date']}, commit {where['commit']}, Python {where['python']}, {versions}",
            f"- `{result['command']}`",
            "",
        ]
    )


if __name__ == "__main__":
    main()
