"""Runs exported graphs under onnxruntime and tells how far they are from the bundle, as JSON.

    echo '[["BUNDLE", "GRAPHS", ["a sentence", ...]], ...]' | python tests/interop/onnx_referee.py

A process of its own: onnxruntime and ctranslate2 in one process hang when it ends.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from small_bundles import NEW_TOKENS, greedy_ids

from pellucid.bundle import Bundle, load_bundle
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID

BATCH = 40


class Graphs:
    """The three sessions, and how to go from one to the next."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.encoder, self.decoder, self.step = (
            onnxruntime.InferenceSession(
                folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"]
            )
            for name in ("encoder_model", "decoder_model", "decoder_with_past_model")
        )

    def read(self, source: np.ndarray) -> dict[str, np.ndarray]:
        mask = (source != PAD_ID).astype(np.int64)
        memory = run(self.encoder, {"input_ids": source, "attention_mask": mask})
        return {"encoder_hidden_states": memory["last_hidden_state"], "mask": mask}

    def greedy(self, source: np.ndarray) -> list[list[int]]:
        memory = self.read(source)
        mask = {"encoder_attention_mask": memory["mask"]}
        ids = np.full((len(source), 1), BOS_ID)
        session, feed = self.decoder, {"encoder_hidden_states": memory["encoder_hidden_states"]}
        said: list[np.ndarray] = []
        past: dict[str, np.ndarray] = {}
        for _ in range(NEW_TOKENS):
            outputs = run(session, {"input_ids": ids, **mask, **feed})
            logits = outputs.pop("logits")[:, -1]
            logits[:, [PAD_ID, BOS_ID]] = -np.inf
            ids = logits.argmax(-1)[:, None]
            said.append(ids)
            past |= {name.replace("present", "past_key_values"): v for name, v in outputs.items()}
            session, feed = self.step, past
        rows = np.concatenate(said, axis=1).tolist()
        return [row[: row.index(EOS_ID)] if EOS_ID in row else row for row in rows]


def run(session: Any, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


def padded(rows: list[list[int]]) -> np.ndarray:
    longest = max(map(len, rows))
    return np.array([row + [PAD_ID] * (longest - len(row)) for row in rows], dtype=np.int64)


def compare(bundle: Bundle, graphs: Graphs, texts: list[str]) -> dict[str, float]:
    sources = [[*ids, EOS_ID] for ids in bundle.source_tokenizer.encode_batch(texts)]
    targets = [[BOS_ID, *ids] for ids in bundle.target_tokenizer.encode_batch(texts)]
    expected = [list(ids) for ids in greedy_ids(bundle, texts)]
    said: list[list[int]] = []
    difference = largest = 0.0
    for begin in range(0, len(texts), BATCH):
        source = padded(sources[begin : begin + BATCH])
        said += graphs.greedy(source)
        target = padded(targets[begin : begin + BATCH])
        memory = graphs.read(source)
        feed = {"encoder_attention_mask": memory.pop("mask"), **memory}
        theirs = run(graphs.decoder, {"input_ids": target, **feed})["logits"]
        with torch.inference_mode():
            ours = bundle.model(torch.tensor(source), torch.tensor(target)).numpy()
        is_real = target != PAD_ID
        difference = max(difference, float(np.abs(ours - theirs)[is_real].max()))
        largest = max(largest, float(np.abs(ours).max()))
    return {
        "sentences": len(texts),
        "equal": sum(a == b for a, b in zip(said, expected, strict=True)),
        "different_answers": len({tuple(each) for each in expected}),
        "logits_difference": difference,
        "largest_logit": largest,
    }


def main() -> None:
    torch.set_num_threads(1)
    result = [
        compare(load_bundle(bundle), Graphs(Path(graphs)), texts)
        for bundle, graphs, texts in json.load(sys.stdin)
    ]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
