"""One trained model in six other programs, each in an environment of its own: equal tokens?

    benchmarks/setup_elsewhere.sh /tmp/elsewhere
    OMP_NUM_THREADS=1 python benchmarks/opens_elsewhere.py --environments /tmp/elsewhere

What is counted: sentences of which the tokens of a greedy translation are those of Pellucid's own
engine, of those that the model was not trained on (10 for inseq and bertviz, which explain every
token; bertviz generates by transformers and shows the words). The model is the small one of the
tests, trained on the phrasebook for 250 updates, in Marian's shape; no network, and no Pellucid in
the other programs' environments.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine

from pellucid import phrasebook
from pellucid.backends.ctranslate2.export import export_ctranslate2
from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.onnx.export import export_onnx
from pellucid.bundle import load_bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.training.presets import read_config
from pellucid.training.train import train

HERE = Path(__file__).resolve().parent
PAIRS, HELD_OUT = 1500, 200
SETTINGS = [
    f"phrasebook.pairs={PAIRS}",
    f"phrasebook.held_out={HELD_OUT}",
    "phrasebook.style=plain",
    "tokenizer.vocabulary_size=500",
    "model.positions=sinusoidal",
    "model.norm=post",
    "model.norm_eps=1e-5",
    "model.d_model=48",
    "model.d_ff=64",
    "model.heads=2",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "training.batch_tokens=1024",
    "training.max_steps=250",
    "training.max_minutes=60",
    "training.learning_rate=0.004",
    "training.optimizer=adam",
    "training.warmup_steps=40",
    "training.schedule=inverse_root",
    "training.average_decay=0.0",
    "training.validate_every=250",
    "training.threads=1",
    "training.precision=fp32",
]
READS = {
    "transformers": "marian",
    "ctranslate2": "ctranslate2",
    "onnxruntime": "onnx",
    "transformer_lens": "marian",
    "inseq": "marian",
    "bertviz": "marian",
}
FEWER = {"inseq": 10, "bertviz": 10}
"""Sentences for those that explain each token."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=40)
    options = parser.parse_args()
    before = machine.describe(("torch",))
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        train(read_config("demo", SETTINGS), work / "run")
        bundle = load_bundle(work / "run")
        export_huggingface(bundle, work / "marian")
        export_ctranslate2(bundle, work / "ctranslate2")
        export_onnx(bundle, work / "onnx")
        unseen = phrasebook.split(PAIRS, HELD_OUT, seed=0).test
        lines = [pair.source for pair in unseen[: options.lines]]
        greedy = DecodingConfig(beam_size=1)
        ours = [
            [token for token in each.tokens if token != "[EOS]"]
            for each in Translator(bundle, greedy).translate(lines)
        ]
        rows = {
            peer: _compare(options.environments, peer, work / reads, lines, ours)
            for peer, reads in READS.items()
        }
    result = {
        "benchmark": "opens_elsewhere",
        "command": machine.command(),
        "counted": (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip(),
        "machine": before,
        "model": bundle.config.summary(),
        "different_translations": len({tuple(each) for each in ours}),
        "programs": rows,
    }
    target = HERE / "results" / "opens_elsewhere"
    target.with_suffix(".json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    target.with_suffix(".md").write_text(_page(result))
    print(_page(result))


def _compare(
    environments: Path, peer: str, folder: Path, lines: list[str], ours: list[list[str]]
) -> dict[str, Any]:
    """What one program made of the model, or why it made nothing."""
    python = environments / peer / "bin" / "python"
    log = environments / f"{peer}.log"
    count = FEWER.get(peer, len(lines))
    if not python.exists():
        last = log.read_text().strip().splitlines()[-1:] if log.exists() else []
        return {"failed": f"no environment: {' '.join(last) or 'not made'}"}
    done = subprocess.run(
        [str(python), "-P", str(HERE / "elsewhere_peer.py"), peer, str(folder)],
        input="\n".join(lines[:count]),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "HOME": str(folder)},
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"failed": f"ended with {done.returncode}: {reason[:300]}"}
    print(f"{peer}: {found.get('failed', 'done')}", file=sys.stderr)
    if "tokens" in found:
        pairs = list(zip(found.pop("tokens"), ours[:count], strict=True))
        found |= {"sentences": count, "equal": sum(theirs == mine for theirs, mine in pairs)}
    return found


def _page(result: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {name} | {', '.join(f'{k} {v}' for k, v in row.get('versions', {}).items())} |"
        f" {row.get('did', '')} | "
        + (f"{row['equal']} of {row['sentences']}" if "equal" in row else f"**{row['failed']}**")
        + " |"
        for name, row in result["programs"].items()
    )
    about = result["machine"]
    return f"""# One model in other programs

{result["counted"]}

| program | versions | what it did | equal token for token |
|---|---|---|---|
{rows}

{result["different_translations"]} of Pellucid's translations differ from each other.

`{result["command"]}` · {about["cpu"]}, {about["cores"]} cores · {about["date"]} ·
commit {about["commit"]}
"""


if __name__ == "__main__":
    main()
