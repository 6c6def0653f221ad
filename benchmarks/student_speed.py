"""Students in Pellucid's kernels and in Firefox's engine: CPU time of one sentence at a time.

    sh benchmarks/setup_marian.sh /tmp/marian
    python benchmarks/student_speed.py --text ../shared/data/multi30k/train.* \\
        --sources ../shared/data/multi30k/test_2016_flickr.en --python /tmp/marian/bin/python

Students with random weights and a unigram vocabulary learned from the text, exported in 8 bits as
Firefox's models are. Their stop has a bias that keeps it from being chosen, so both programs
generate as many tokens as fxtranslate allows: twice the source and six. What is counted: generated
tokens per second of CPU time of a process that translates the sources one by one, greedily, on one
thread, from text to text; and "search" is the call of the kernels alone, from ids to ids. The
programs take turns, one run of all sources each, in so many rounds; medians, with the least and the
most. "20 words" is the kernels' search for 20 tokens of a source of 20; fxtranslate cannot be told
to end there.
"""

import argparse
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SHAPES: dict[str, dict[str, int]] = {
    "4+2/128, 8,000 words": {
        "encoder_layers": 4, "d_model": 128, "d_ff": 256, "heads": 4, "words": 8000
    },
    "6+2/256, 8,000 words": {
        "encoder_layers": 6, "d_model": 256, "d_ff": 1536, "heads": 8, "words": 8000
    },
    "6+2/256, 32,000 words": {
        "encoder_layers": 6, "d_model": 256, "d_ff": 1536, "heads": 8, "words": 32000
    },
}  # fmt: skip
NO_STOP = -1e4
"""The bias of the stop."""
LIMIT = {"max_length_ratio": 2.0, "max_length_extra": 6}


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--text", type=Path, nargs="+", required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--python", required=True, help="The interpreter that has fxtranslate.")
    parser.add_argument("--lines", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    options = parser.parse_args()

    import machine

    from pellucid.text.corpus.lines import read_lines

    logging.disable()  # random weights repeat themselves
    before = machine.describe(("numpy",))
    text = [line for path in options.text for line in read_lines(path)]
    sources = read_lines(options.sources)
    rows = []
    for name in options.shapes:
        rows += _measure(name, text, sources, options)
        print(json.dumps(rows[-3:], indent=1), file=sys.stderr, flush=True)
    result = {
        "benchmark": "student_speed",
        "command": machine.command(),
        "counted": " ".join((__doc__ or "").split("\n\n")[-1].split()),
        "machine": before,
        "rounds": options.rounds,
        "lines": options.lines,
        "rows": rows,
    }
    machine.write_result("student_speed", result, _page(result))


def _measure(
    name: str, text: list[str], sources: list[str], options: argparse.Namespace
) -> list[dict[str, Any]]:
    from kernels_speed import _build

    from pellucid.backends.kernels.engine import KernelEngine
    from pellucid.backends.kernels.library import Library
    from pellucid.backends.marian_files.write import NAMES, export_marian
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.requests import ReadLine, Request
    from pellucid.decoding.translator import Translator

    bundle = _student(name, text)
    lines, calibration = sources[: options.lines], sources[options.lines :][:50]
    ids = [tuple(row) for row in bundle.source_tokenizer.encode_batch(lines)]
    counts = [2 * (len(row) + 1) + 4 for row in ids]
    twenty = ReadLine(Request("a line"), (ids[0] * 20)[:20], prefix_ids=(), required_ids=())
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        export_marian(bundle, files, "int8", calibration)
        engine = KernelEngine(bundle, Library(_build(Path(folder) / "k.so")), "a benchmark")
        settings = DecodingConfig(
            beam_size=1, token_log_probs=False, copy_symbols=False, recase=False, **LIMIT
        )
        translator = Translator(bundle, settings, engine)
        read = [ReadLine(Request("a line"), row, prefix_ids=(), required_ids=()) for row in ids]
        search = DecodingConfig(beam_size=1, **LIMIT)
        short = DecodingConfig(beam_size=1, max_length=20)

        peer = subprocess.Popen(
            [options.python, __file__, "--peer", files / NAMES["int8"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert peer.stdin is not None
        assert peer.stdout is not None

        def by_peer() -> list[float]:
            print(json.dumps(lines), file=peer.stdin, flush=True)
            return list(json.loads(peer.stdout.readline()))  # type: ignore[union-attr]

        contenders = {
            "kernels, text to text": lambda: _times(translator.translate, lines),
            "kernels, search": lambda: _times(
                lambda line: engine.search([line], bundle, search), read
            ),
            "fxtranslate": by_peer,
        }
        times: dict[str, list[list[float]]] = {each: [] for each in contenders}
        twenties = []
        for round_ in range(options.rounds + 1):
            for each, run in contenders.items():
                found = run()
                if round_:  # the first warms up
                    times[each].append(found)
            spent = _times(lambda line: engine.search([line], bundle, short), [twenty] * 20)
            twenties.append(statistics.median(spent))
        peer.stdin.close()
        peer.wait()

    rows = []
    for each, found in times.items():
        rates = [sum(counts) / sum(one) for one in found]
        ratios = [sum(a) / sum(b) for a, b in zip(times["fxtranslate"], found, strict=True)]
        rows.append(
            {
                "shape": name,
                "who": each,
                "rate": [min(rates), statistics.median(rates), max(rates)],
                "over_fxtranslate": [min(ratios), statistics.median(ratios), max(ratios)],
                "ms_a_line": 1e3 * statistics.median(sum(one) for one in found) / len(lines),
            }
        )
    spent = [min(twenties), statistics.median(twenties), max(twenties)]
    rows.append({"shape": name, "twenty_ms": [1e3 * each for each in spent]})
    return rows


def _student(name: str, text: list[str]) -> Any:
    import torch

    from pellucid.bundle import Bundle
    from pellucid.core.special import EOS_ID
    from pellucid.model.build import build_model
    from pellucid.model.config import TransformerConfig
    from pellucid.text.config import TokenizerConfig
    from pellucid.text.tokenizers.tokenizer import train_tokenizer

    sizes = dict(SHAPES[name])
    words = sizes.pop("words")
    tokenizer = train_tokenizer(text, TokenizerConfig(kind="unigram", vocabulary_size=words))
    config = TransformerConfig(
        **sizes,
        decoder_layers=2,
        decoder="ssru",
        positions="sinusoidal_t2t",
        start_symbol="zero",
        output_bias=True,
    )
    size = tokenizer.vocabulary_size
    model = build_model(config, size, size, seed=0).eval().requires_grad_(False)
    with torch.no_grad():
        model.output_bias[EOS_ID] = NO_STOP
    return Bundle(model, tokenizer, tokenizer, {}, {})


def _times(translate: Any, sources: list[Any]) -> list[float]:
    found = []
    for each in sources:
        began = time.process_time()
        translate(each)
        found.append(time.process_time() - began)
    return found


def _peer(model: Path) -> None:
    """What runs in the other interpreter: for each line of stdin, all sources, one by one."""
    from fxtranslate import Translator

    names = sorted(model.parent.glob("*.spm"))
    firefox = Translator(model.read_bytes(), names[0].read_bytes(), names[-1].read_bytes())
    for line in sys.stdin:
        print(json.dumps(_times(firefox.translate, json.loads(line))), flush=True)


def _page(result: dict[str, Any]) -> str:
    where = result["machine"]
    speeds = [
        f"| {r['shape']} | {r['who']} | {_spread(r['rate'], ',.0f')} |"
        f" {_spread(r['over_fxtranslate'], '.2f')} | {r['ms_a_line']:.1f} |"
        for r in result["rows"]
        if "who" in r
    ]
    twenties = [
        f"| {r['shape']} | {_spread(r['twenty_ms'], '.1f')} |"
        for r in result["rows"]
        if "twenty_ms" in r
    ]
    return "\n".join(
        [
            "# Speed of a student alone",
            "",
            result["counted"],
            "",
            "| student | who | tokens per CPU-second (least to most) | over fxtranslate, by round |"
            " CPU ms a sentence |",
            "|---|---|---|---|---|",
            *speeds,
            "",
            "| student | CPU ms of 20 words (least to most) |",
            "|---|---|",
            *twenties,
            "",
            f"- machine: {where['cpu']}, {where['cores']} cores, load {where['load_before']} before"
            " the start; one thread",
            f"- {result['lines']} sources, {result['rounds']} rounds; {where['date']}, commit"
            f" {where['commit']}, Python {where['python']}, fxtranslate 0.5.0",
            f"- `{result['command']}`",
            "",
        ]
    )


def _spread(three: list[float], form: str) -> str:
    least, middle, most = (format(each, form) for each in three)
    return f"{middle} ({least} to {most})"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        _peer(Path(sys.argv[2]))
    else:
        main()
