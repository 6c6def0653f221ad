"""S5: opens spoiled model files in forks of itself and tells how each ended, as JSON.

    python tests/faults/fuzz.py COUNT

spoils COUNT sentencepiece models and COUNT other files of model folders, and plays every failure.
A fork that a signal ends, that works for more than ten seconds on one file or asks for more than a
gigabyte at once is a failure, and so is every error that is not one of Pellucid's own.
"""

import collections
import dataclasses
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from mutations import mutate
from sealing import reseal

from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.huggingface.import_folder import read_huggingface
from pellucid.backends.load import load
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.core.errors import PellucidError
from pellucid.core.files import manifest_text
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    train_sentencepiece,
)
from pellucid.text.tokenizers.vocabulary import Vocabulary

MOST_SECONDS = 10
MOST_BYTES = 1 << 30
TEXTS = ["un petit chat noir", "où ? 🙂 \u2581", "", " a  b ", "x" * 300]
CORPUS = ["le chat noir dort sur la table", "un petit chat", "nous parlons où il pleut"] * 30
Case = tuple[str, Callable[[], object]]


@dataclasses.dataclass
class Tally:
    """How the cases ended."""

    refused: int = 0
    opened: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    slowest: float = 0.0
    largest: int = 0
    """Bytes that a case asked for beyond what was there before."""


def sentencepiece_cases(folder: Path, count: int) -> Iterator[Case]:
    """Models of our own training and, in turn, of OPUS-MT's kind."""
    ours = train_sentencepiece(CORPUS, TokenizerConfig(kind="bpe", vocabulary_size=300)).model
    memory = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=memory,
        model_type="unigram",
        vocab_size=40,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    for number in range(count):
        model = mutate(ours if number % 2 else memory.getvalue(), number // 2)

        def cut(model: bytes = model, number: int = number) -> None:
            if number % 2:
                tokenizer: SentencePieceTokenizer | MarianTokenizer
                tokenizer = SentencePieceTokenizer("bpe", model)
            else:
                tokenizer = MarianTokenizer(model, Vocabulary.of(["\u2581un", "a", "chat"]))
            for ids in tokenizer.encode_batch(TEXTS):
                tokenizer.decode(ids)
                tokenizer.tokens(ids)

        yield f"sentencepiece {number}", cut


def folder_cases(folder: Path, count: int) -> Iterator[Case]:
    """Every file of a bundle and of a Marian folder in turn."""
    bundle, marian = folder / "bundle", folder / "marian"
    save_bundle(bundle, tiny_bundle(), card="", details={"step": 1, "score": 1.0})
    export_huggingface(load_bundle(bundle), marian)
    paths = [*sorted(bundle.iterdir()), *sorted(marian.iterdir())]
    paths = [path for path in paths if path.name not in ("README.md",)]
    paths.remove(marian / "manifest.json")  # which is not read
    for number in range(count):
        path = paths[number % len(paths)]

        def open_spoiled(path: Path = path, number: int = number) -> None:
            copy = folder / f"copy-{os.getpid()}"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(path.parent, copy)
            file = copy / path.name
            file.write_bytes(mutate(file.read_bytes(), number // len(paths)))
            if path.parent == marian:
                read_huggingface(copy)
                return
            if path.name != "manifest.json":
                reseal(copy)
            elif number % 2:
                _seal_itself(file)
            load(copy, "torch").translate("un chat", beam_size=1, max_length=3)

        yield f"{path.parent.name}/{path.name} {number // len(paths)}", open_spoiled


def planted_cases() -> Iterator[Case]:
    """One of each failure, to see that none would go unnoticed."""

    def work() -> None:
        while True:
            pass

    def ask() -> None:
        torch.empty(2 * MOST_BYTES, dtype=torch.uint8)

    def stumble() -> None:
        raise IndexError("of no one's making")

    yield "crash", lambda: os.kill(os.getpid(), signal.SIGSEGV)
    yield "hang", work
    yield "greed", ask
    yield "stumble", stumble
    yield "well", lambda: None


def _seal_itself(file: Path) -> None:
    try:
        file.write_bytes(manifest_text(json.loads(file.read_bytes())))
    except (ValueError, AttributeError, RecursionError):
        return


def tiny_bundle() -> Bundle:
    tokenizer = train_sentencepiece(CORPUS, TokenizerConfig(kind="bpe", vocabulary_size=300))
    sizes = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    config = parse_model_config({**sizes, "norm_eps": 1e-5})
    model = build_model(config, tokenizer.vocabulary_size, tokenizer.vocabulary_size)
    settings = {"model": config.to_table(), "decoding": {"beam_size": 2}}
    return Bundle(model.eval(), tokenizer, tokenizer, settings, {})


def run_all(cases: Iterator[Case], most_seconds: float = MOST_SECONDS) -> Tally:
    """Each fork takes cases until one ends it; the next fork goes on behind that one."""
    tally, waiting = Tally(), collections.deque(cases)
    while waiting:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(waiting, os.fdopen(writing, "w"), most_seconds)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as reports:
            for line in reports:
                _count(tally, waiting.popleft()[0], json.loads(line))
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            tally.failures.append(f"{waiting.popleft()[0]}: signal {os.WTERMSIG(status)}")
    return tally


def _work(cases: collections.deque[Case], reports: io.TextIOWrapper, most_seconds: float) -> None:
    """Open one file after another; a report of each goes to the parent at once."""
    space = _bytes_of("VmSize") + 4 * MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    for _, case in cases:
        signal.setitimer(signal.ITIMER_PROF, most_seconds)
        signal.setitimer(signal.ITIMER_REAL, 20 * MOST_SECONDS)  # the machine may be busy
        before, begin, problem = _bytes_of("VmSize"), time.process_time(), ""
        outcome = "opened"
        try:
            case()
        except PellucidError:
            outcome = "refused"
        except Exception as error:  # every other one is a finding
            outcome, problem = "failed", f"{type(error).__name__}: {error}"
        peak = _bytes_of("VmPeak")
        report = {
            "outcome": outcome,
            "problem": problem,
            "seconds": time.process_time() - begin,
            "bytes": max(0, peak - before),
        }
        print(json.dumps(report), file=reports, flush=True)
        if peak - before > MOST_BYTES:
            return  # VmPeak never falls: the next case needs a fresh fork


def _count(tally: Tally, name: str, report: dict[str, Any]) -> None:
    tally.refused += report["outcome"] == "refused"
    tally.opened += report["outcome"] == "opened"
    tally.slowest = max(tally.slowest, report["seconds"])
    tally.largest = max(tally.largest, report["bytes"])
    if report["outcome"] == "failed":
        tally.failures.append(f"{name}: {report['problem']}")
    if report["bytes"] > MOST_BYTES:
        tally.failures.append(f"{name}: asked for {report['bytes'] / 1e9:.1f} GB")


def _bytes_of(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(key)


def main() -> None:
    torch.set_num_threads(1)
    count = int(sys.argv[1])
    planted = dataclasses.asdict(run_all(planted_cases(), most_seconds=0.5))
    with tempfile.TemporaryDirectory() as name:
        result = {}
        for kind, cases in (("sentencepiece", sentencepiece_cases), ("folders", folder_cases)):
            result[kind] = dataclasses.asdict(run_all(cases(Path(name), count)))
    print(json.dumps([planted, result]))


if __name__ == "__main__":
    main()
