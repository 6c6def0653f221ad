"""One contender of decode_speed.py: a process that loads a model once and translates when told.

Reads a line of JSON from standard input for each round, {"beam_size": 5, "count": 200}, and
answers with one: the seconds it took and what came out, {"seconds": 1.5, "outputs": [...]}.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 20
"""Tokens of every translation, the stop counted."""

Translate = Callable[[int, int], list[list[list[int]]]]
"""From beam size and number of sentences to the ids of each one's hypotheses."""


def main() -> None:
    name, model, lines_file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    lines = lines_file.read_text(encoding="utf-8").splitlines()
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    translate = _open(name, model, lines)
    translate(1, 2)
    print(json.dumps({"ready": name}), file=answers, flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        if "latency_tokens" in wanted:
            answer: dict[str, Any] = _latency(model, name, lines, wanted["latency_tokens"])
        else:
            began = time.perf_counter()
            outputs = translate(wanted["beam_size"], wanted["count"])
            answer = {"seconds": time.perf_counter() - began, "outputs": outputs}
        print(json.dumps(answer), file=answers, flush=True)


def _open(name: str, model: Path, lines: list[str]) -> Translate:
    match name.split("-")[0]:
        case "pellucid":
            return _pellucid(model, lines, name)
        case "huggingface":
            return _huggingface(model, lines)
        case "ctranslate2":
            return _ctranslate2(model, lines, name.removeprefix("ctranslate2-"))
    raise SystemExit(f"unknown contender {name}")


def _pellucid(model: Path, lines: list[str], name: str) -> Translate:
    """Text to text, tokenization included."""
    from pellucid.backends.load import load
    from pellucid.decoding.config import DecodingConfig

    translator = load(model, "torch", "cpu", "bfloat16" if name.endswith("bf16") else "float32")
    tokenizer = translator.bundle.target_tokenizer
    numbers = {
        piece: id_ for id_, piece in enumerate(tokenizer.tokens(range(tokenizer.vocabulary_size)))
    }

    def translate(beam_size: int, count: int) -> list[list[list[int]]]:
        settings = DecodingConfig(
            beam_size=beam_size,
            n_best=beam_size,
            max_length=STEPS - 1,
            min_length=STEPS - 1,
            length_penalty=0.0,
        )
        found = translator.translate(lines[:count], settings)
        return [[[numbers[token] for token in each.tokens] for each in t.n_best] for t in found]

    return translate


def _huggingface(model: Path, lines: list[str]) -> Translate:
    """Ids to ids, in batches of sentences of like length; tokenization is not in it."""
    import torch
    from transformers import MarianMTModel

    marian = MarianMTModel.from_pretrained(model.parent / f"{model.name}-huggingface").eval()
    marian.generation_config.max_length = None  # else it warns of max_new_tokens
    ids = _source_ids(model, lines)

    def translate(beam_size: int, count: int) -> list[list[list[int]]]:
        order = sorted(range(count), key=lambda index: -len(ids[index]))
        batch_size = int(os.environ["HUGGINGFACE_BATCH"]) // beam_size
        outputs: list[list[list[int]]] = [[] for _ in order]
        for first in range(0, count, batch_size):
            batch = order[first : first + batch_size]
            longest = max(len(ids[index]) for index in batch)
            rows = [ids[index] + [0] * (longest - len(ids[index])) for index in batch]
            source = torch.tensor(rows)
            with torch.inference_mode():
                found = marian.generate(
                    input_ids=source,
                    attention_mask=(source != 0).long(),
                    num_beams=beam_size,
                    num_return_sequences=beam_size,
                    do_sample=False,
                    early_stopping=False,
                    max_new_tokens=STEPS,
                    min_new_tokens=STEPS - 1,
                )
            for place, index in enumerate(batch):
                hypotheses = found[place * beam_size : (place + 1) * beam_size]
                outputs[index] = [each[1:STEPS].tolist() for each in hypotheses]
        return outputs

    return translate


def _ctranslate2(model: Path, lines: list[str], compute_type: str) -> Translate:
    """Pieces to pieces, all at once, as its defaults have it; tokenization is not in it."""
    import ctranslate2

    from pellucid.bundle import load_tokenizers

    source, target = load_tokenizers(model)
    pieces = [list(source.tokens(each)) for each in source.encode_batch(lines)]
    names = [*target.tokens(range(target.vocabulary_size))]
    numbers = {piece: id_ for id_, piece in enumerate(names)}
    folder = model.parent / f"{model.name}-ctranslate2"
    translator = ctranslate2.Translator(str(folder), compute_type=compute_type)

    def translate(beam_size: int, count: int) -> list[list[list[int]]]:
        found = translator.translate_batch(
            pieces[:count],
            beam_size=beam_size,
            max_decoding_length=STEPS,
            min_decoding_length=STEPS,
        )
        return [
            [[numbers.get(piece, 1) for piece in each.hypotheses[0][: STEPS - 1]]] for each in found
        ]

    return translate


def _latency(model: Path, name: str, lines: list[str], tokens: int) -> dict[str, Any]:
    """Seconds for one sentence at a time, each seen for the first time, beam 4."""
    from pellucid.backends.load import load
    from pellucid.decoding.config import DecodingConfig

    translator = load(model, "torch", "cpu", "bfloat16" if name.endswith("bf16") else "float32")
    settings = DecodingConfig(max_length=tokens, min_length=tokens, beam_size=4)
    encode = translator.bundle.source_tokenizer.encode
    nearest = sorted(lines, key=lambda line: abs(len(encode(line)) - 20))[:21]
    seconds = []
    for line in nearest:
        began = time.perf_counter()
        translator.translate(line, settings)
        seconds.append(time.perf_counter() - began)
    return {"first": seconds[0], "median": statistics.median(seconds)}


def _source_ids(model: Path, lines: list[str]) -> list[list[int]]:
    from pellucid.bundle import load_tokenizers
    from pellucid.core.special import STOP_ID

    source, _ = load_tokenizers(model)
    return [[*ids, STOP_ID] for ids in source.encode_batch(lines)]


if __name__ == "__main__":
    main()
