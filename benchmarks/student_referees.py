"""A student in Marian and in Firefox's engine: do they say what Pellucid says?

    sh benchmarks/setup_marian.sh /tmp/marian
    python benchmarks/student_referees.py runs/student test.en test.de \\
        --python /tmp/marian/bin/python

The student is exported as Marian's archive, as its binary file and in 8 bits, and the first lines
of the source are translated greedily by Pellucid in float32 and by the programs that read these
files, each in a process of its own: pymarian 1.12 (float32) and fxtranslate 0.5 (float32, and 8
bits as Firefox computes), and by Pellucid's kernels if they are installed. A translation that
repeats itself is cut off, and Pellucid's is compared as it is cut off where the other program does.
Given are how many translations equal Pellucid's in float32 to the letter, BLEU against the
reference, and the CPU time of a line, one by one, without the start of the process.
"""

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PLAIN = {
    "beam_size": 1,
    "n_best": 1,
    "token_log_probs": False,
    "copy_symbols": False,
    "recase": False,
    "mark_terms": False,
}
"""A greedy search and nothing beside it: what copies symbols or reads capitals in another way is
not the model."""
LISTED = {
    "pymarian, float32, shortlist": ("pymarian", "npz"),
    "fxtranslate, 8 bits, shortlist": ("fxtranslate", "int8"),
}
LIMITS: dict[str, dict[str, float]] = {
    "pymarian": {"max_length_ratio": 4.0, "max_length_extra": 4},
    "fxtranslate": {"max_length_ratio": 2.0, "max_length_extra": 6},
}
"""After so many tokens each ends: Marian as --max-length-factor 4 says, of a source with its stop;
fxtranslate four tokens after twice that source."""
PEERS = {
    "pymarian, float32": ("pymarian", "npz"),
    "fxtranslate, float32": ("fxtranslate", "bin"),
    "fxtranslate, 8 bits": ("fxtranslate", "int8"),
}


def main() -> None:
    """Compare, and print a table in Markdown; with --out also write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--python", required=True, help="The interpreter that has the peers.")
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument(
        "--pairs",
        type=Path,
        nargs=2,
        help="Texts to learn a lexical shortlist from, with which both programs run once more.",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    import machine

    from pellucid.backends.load import load
    from pellucid.backends.marian_files.write import NAMES, export_marian
    from pellucid.evaluation.metrics import bleu
    from pellucid.text.corpus.lines import read_lines

    sources = read_lines(options.source)
    calibration, sources = sources[options.lines :][:500], sources[: options.lines]
    references = read_lines(options.reference)[: options.lines]

    translator = load(options.bundle, engine="torch")
    rows: list[dict[str, Any]] = []
    ours: dict[str, list[str]] = {}

    def add(name: str, said: list[str], limit: str, seconds: float) -> None:
        row = _row(name, said, ours[limit], seconds)
        rows.append({**row, "bleu": bleu([_spelled(each) for each in said], references).score})

    for limit, settings in LIMITS.items():
        plain = translator.with_settings(translator.settings.changed(PLAIN | settings))
        ours[limit], seconds = _timed(_one_by_one(plain), sources)
        add(f"Pellucid, torch, float32, limit of {limit}", ours[limit], limit, seconds)
    if importlib.util.find_spec("pellucid_kernels"):
        settings = PLAIN | LIMITS["fxtranslate"]
        rounded = load(options.bundle, engine="kernels", compute_type="int8")
        rounded = rounded.with_settings(rounded.settings.changed(settings))
        said, seconds = _timed(_one_by_one(rounded), sources)
        add("Pellucid, kernels, 8 bits", said, "fxtranslate", seconds)

    pairs = None if options.pairs is None else [*zip(*map(read_lines, options.pairs), strict=True)]
    peers = PEERS | (LISTED if pairs else {})
    for name, (program, kind) in peers.items():
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "files"
            shortlist = pairs if name in LISTED else None
            export_marian(translator.bundle, files, kind, calibration, shortlist)
            command = [options.python, __file__, "--peer", program, str(files / NAMES[kind])]
            done = subprocess.run(
                command, input="\n".join(sources), capture_output=True, text=True, check=True
            )
        found = json.loads(done.stdout.splitlines()[-1])
        add(name, found["lines"], program, found["seconds"])

    print("| program | equal to Pellucid | BLEU | CPU ms a sentence |")
    print("|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['name']} | {row['equal']} of {len(sources)} | {row['bleu']:.2f} |"
            f" {1e3 * row['seconds'] / len(sources):.1f} |"
        )
    if options.out:
        about = {"machine": machine.describe(("torch",)), "command": machine.command()}
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n", "utf-8")


def _row(name: str, said: list[str], ours: list[str], seconds: float) -> dict[str, Any]:
    pairs = [(_spelled(a), b) for a, b in zip(said, ours, strict=True)]
    return {"name": name, "equal": sum(a == b for a, b in pairs), "seconds": seconds}


def _one_by_one(translator: Any) -> Any:
    # whole, as the other programs read it: a model of single sentences gets the parts of a line
    return lambda line: translator.translate(line, split=False).text


def _spelled(text: str) -> str:
    """The text with pieces of bytes, which fxtranslate prints as ``<0xC3>``, made characters."""
    whole = re.compile(r"(?:<0x[0-9A-F]{2}>)+")
    return whole.sub(
        lambda match: bytes.fromhex(re.sub("[<>]|0x", "", match[0])).decode("utf-8", "replace"),
        text,
    )


def _timed(translate: Any, sources: list[str]) -> tuple[list[str], float]:
    translate(sources[0])
    began = time.process_time()
    found = [translate(line) for line in sources]
    return found, time.process_time() - began


def peer(program: str, model: Path) -> None:
    """What runs in the other interpreter, which has no Pellucid: the lines of stdin, as JSON."""
    sources = sys.stdin.read().split("\n")
    names = sorted(model.parent.glob("*.spm"))
    lists = sorted(model.parent.glob("lex.*.bin"))
    if program == "pymarian":
        from pymarian import Translator

        marian = Translator(
            f"--models {model} --vocabs {names[0]} {names[-1]} --beam-size 1 --normalize 0"
            " --cpu-threads 1 --mini-batch 1 --max-length 400 --max-length-factor 4 --quiet"
            + "".join(f" --shortlist {each} true" for each in lists)
        )
        found, seconds = _timed(lambda line: marian.translate([line])[0], sources)
    else:
        from fxtranslate import Translator

        files = (model, names[0], names[-1], *lists)
        firefox = Translator(*(each.read_bytes() for each in files))
        found, seconds = _timed(firefox.translate, sources)
    print(json.dumps({"lines": found, "seconds": seconds}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
