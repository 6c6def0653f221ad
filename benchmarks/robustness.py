"""What odd lines cost a model, and one that was trained on copies of that kind.

    python benchmarks/robustness.py runs/plain runs/noise --data multi30k --write

Each model is scored by ``pellucid evaluate --robustness`` (docs/robustness.md has the copies and
their references), with lines read as they are and with ``recase`` and ``copy_symbols``. The
journals of both runs are quoted. The result goes to ``results/robustness.md``.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import machine

import pellucid
from pellucid.evaluation.robustness import as_table, evaluate_robustness
from pellucid.text.corpus.lines import read_lines
from pellucid.training.journal import JOURNAL_FILE, read_journal

_RESULT = machine.REPOSITORY / "benchmarks" / "results" / "robustness"


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("plain", type=Path)
    parser.add_argument("noise", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="The folder of Multi30k.")
    parser.add_argument("--text", choices=("val", "test_2016_flickr"), default="val")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="Each model in both ways.")
    parser.add_argument("--write", action="store_true", help="Write results/robustness.md.")
    options = parser.parse_args()

    about = machine.describe()
    sources, references = (read_lines(options.data / f"{options.text}.{s}") for s in ("en", "de"))
    rows = []
    for name, run in (("plain", options.plain), ("with copies", options.noise)):
        translator = pellucid.load(run)
        ways = [{"recase": False, "copy_symbols": False}, {"recase": True}]
        if not options.all:  # each as it comes: what a plain model did before, and what it does now
            ways = ways[:1] if name == "plain" else ways[1:]
        for changes in ways:
            settings = translator.settings.changed({"beam_size": options.beam_size, **changes})
            scores = evaluate_robustness(
                translator.with_settings(settings), sources, references, language="de"
            )
            rows.append({"model": name, "settings": changes, "scores": as_table(scores)})
            print(json.dumps(rows[-1]), file=sys.stderr)

    text = _report(about, options, rows)
    sys.stdout.write(text)
    if options.write:
        _RESULT.with_suffix(".md").write_text(text, encoding="utf-8")
        figures = {"machine": about, "command": machine.command(), "rows": rows}
        _RESULT.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")


def _report(about: dict[str, Any], options: argparse.Namespace, rows: list[dict[str, Any]]) -> str:
    names = list(rows[0]["scores"])
    lines = [
        "# Odd lines",
        "",
        f"`{machine.command()}`, {about['date']}, commit {about['commit']}",
        f"{about['cpu']}, {about['cores']} cores, torch {about['versions']['torch']}",
        "",
        f"Multi30k En-De, {options.text}, beam {options.beam_size}, cased BLEU (13a), and behind it"
        " the loss against the original of the same row. Copies and references are those of"
        " [docs/robustness.md](../../docs/robustness.md).",
        "",
        "| model | capitals and emoji | " + " | ".join(names) + " | emoji lost |",
        "|---" * (len(names) + 3) + "|",
    ]
    for row in rows:
        scores = row["scores"]
        cells = [
            f"{scores[name]['bleu']:.2f}"
            + ("" if name == "original" else f" ({-scores[name]['loss']:+.2f})")
            for name in names
        ]
        emoji = scores["emoji"]
        how = "`recase`, `copy_symbols`" if row["settings"]["recase"] else "read as they are"
        lines.append(
            f"| {row['model']} | {how} | {' | '.join(cells)} |"
            f" {emoji['emoji_lost']:,} of {emoji['emoji']:,} |"
        )

    lines += [
        "",
        "| run | updates | minutes | target tokens | valid BLEU, greedy |",
        "|---" * 5 + "|",
    ]
    for name, run in (("plain", options.plain), ("with copies", options.noise)):
        events = list(read_journal(run / JOURNAL_FILE))
        end = [each for each in events if each["event"] == "end"][-1]
        valid = [each for each in events if each["event"] == "validation"][-1]
        lines.append(
            f"| {name} | {end['step']:,} | {end['seconds'] / 60:.0f} | {end['target_tokens']:,} |"
            f" {valid['bleu']:.2f} |"
        )
    signature = rows[-1]["scores"]["original"]["signature"]
    return "\n".join([*lines, "", f"The last row's original: `{signature}`.", ""])


if __name__ == "__main__":
    main()
