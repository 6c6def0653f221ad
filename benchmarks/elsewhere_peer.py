"""One program that opens an exported model; runs in that program's own environment.

    /tmp/elsewhere/inseq/bin/python benchmarks/elsewhere_peer.py inseq FOLDER < sentences

FOLDER is an export of Pellucid of the program's kind. Prints JSON: the versions, and the tokens of
a greedy translation of each line, or the message with which it failed. Imports no Pellucid.
"""

import contextlib
import json
import os
import re
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any

MOST_TOKENS = 60


def main() -> None:
    name, folder = sys.argv[1:]
    # Whoever imports Pellucid here would measure nothing.
    sys.modules["pellucid"] = None  # type: ignore[assignment]
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    lines = sys.stdin.read().splitlines()
    found: dict[str, Any] = {}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found["tokens"], found["did"] = PEERS[name](Path(folder), lines)
    except Exception as error:
        traceback.print_exc()
        found["failed"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    found["versions"] = {each: _version(each) for each in PACKAGES[name]}
    print(json.dumps(found))


Answer = tuple[list[list[str]], str]
"""The tokens of each translation, and what was done beside translating."""


def by_transformers(folder: Path, lines: list[str]) -> Answer:
    model, tokenizer = _marian(folder)
    tokens = [_generated(model, tokenizer, line) for line in lines]
    return tokens, "MarianMTModel.generate, greedy"


def by_ctranslate2(folder: Path, lines: list[str]) -> Answer:
    import ctranslate2

    read = _processor(folder, "source")
    translator = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)
    results = translator.translate_batch(
        [read.encode(line, out_type=str) for line in lines],
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=MOST_TOKENS,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    return [each.hypotheses[0] for each in results], "Translator.translate_batch, greedy"


def by_onnxruntime(folder: Path, lines: list[str]) -> Answer:
    """The program of the folder's own README, with other sentences."""
    page = (folder / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)\nids = translate\(", page, re.DOTALL)
    assert found is not None
    os.chdir(folder)
    names: dict[str, Any] = {}
    exec(found[1], names)
    read, translate, written = names["read"], names["translate"], names["written"]
    tokens = [
        [written.id_to_piece(id_) for id_ in translate(read.encode(line), MOST_TOKENS)]
        for line in lines
    ]
    return tokens, "the program in README.md of the export"


def by_transformer_lens(folder: Path, lines: list[str]) -> Answer:
    import torch
    from transformer_lens.model_bridge import TransformerBridge

    model, tokenizer = _marian(folder)
    bridge = TransformerBridge.boot_transformers(str(folder), tokenizer=tokenizer, device="cpu")
    start = model.config.decoder_start_token_id
    tokens = []
    for line in lines:
        source = tokenizer([line], return_tensors="pt").input_ids
        ids = torch.tensor([[start]])
        while ids.shape[1] <= MOST_TOKENS:
            with torch.inference_mode():
                logits = bridge(source, decoder_input=ids)
            row = logits[0, -1].clone()
            row[[start, tokenizer.pad_token_id]] = -torch.inf
            best = int(row.argmax())
            if best == tokenizer.eos_token_id:
                break
            ids = torch.cat([ids, torch.tensor([[best]])], dim=1)
        tokens.append(_pieces(tokenizer, ids[0, 1:].tolist()))
    return tokens, "TransformerBridge, greedy by its logits"


def by_inseq(folder: Path, lines: list[str]) -> Answer:
    import inseq

    model = inseq.load_model(str(folder), "attention")
    tokens = []
    for line in lines:
        out = model.attribute(
            line,
            generation_args={"num_beams": 1, "max_new_tokens": MOST_TOKENS},
            show_progress=False,
        )
        row = [each.token for each in out.sequence_attributions[0].target]
        tokens.append([each for each in row if each not in ("<s>", "</s>", "<pad>", "<start>")])
    return tokens, "attribute by attention, greedy"


def by_bertviz(folder: Path, lines: list[str]) -> Answer:
    """A view of the three kinds of attention of each translation, whose words it shows."""
    import torch
    from bertviz import model_view

    model, tokenizer = _marian(folder)
    model.set_attn_implementation("eager")
    tokens = []
    for line in lines:
        made = _generated(model, tokenizer, line)
        source = tokenizer([line], return_tensors="pt")
        start = torch.tensor([[model.config.decoder_start_token_id]])
        ids = torch.cat([start, torch.tensor([tokenizer.convert_tokens_to_ids(made)])], dim=1)
        with torch.inference_mode():
            out = model(**source, decoder_input_ids=ids, output_attentions=True)
        page = model_view(
            encoder_attention=out.encoder_attentions,
            decoder_attention=out.decoder_attentions,
            cross_attention=out.cross_attentions,
            encoder_tokens=tokenizer.convert_ids_to_tokens(source.input_ids[0]),
            decoder_tokens=tokenizer.convert_ids_to_tokens(ids[0]),
            html_action="return",
        )
        # the words on the page are those that it was given behind its own start
        shown = json.loads(re.search(r'"right_text": (\[.*?\])', page.data)[1])  # type: ignore[index]
        assert shown, "the page shows words"
        decoder = re.findall(r'"right_text": (\[.*?\])', page.data)
        tokens.append(
            made if any(_bare(json.loads(each))[1:] == _bare(made) for each in decoder) else shown
        )
    return tokens, "model_view of encoder, decoder and cross attention"


def _bare(tokens: list[str]) -> list[str]:
    """Tokens without the marks of spaces, which a view may replace."""
    return [each.replace("\u2581", "").replace("Ġ", "").strip() for each in tokens]


def _marian(folder: Path) -> tuple[Any, Any]:
    from transformers import MarianMTModel, MarianTokenizer

    model = MarianMTModel.from_pretrained(str(folder)).eval()
    return model, MarianTokenizer.from_pretrained(str(folder))


def _generated(model: Any, tokenizer: Any, line: str) -> list[str]:
    batch = tokenizer([line], return_tensors="pt")
    found = model.generate(
        **batch, num_beams=1, do_sample=False, max_length=None, max_new_tokens=MOST_TOKENS
    )
    return _pieces(tokenizer, found[0].tolist())


def _pieces(tokenizer: Any, ids: list[int]) -> list[str]:
    special = {tokenizer.pad_token_id, tokenizer.eos_token_id}
    pieces: list[str] = tokenizer.convert_ids_to_tokens([id_ for id_ in ids if id_ not in special])
    return [each for each in pieces if each not in ("<s>", "<start>")]


def _processor(folder: Path, side: str) -> Any:
    import sentencepiece

    path = folder / "shared.spm"
    path = path if path.exists() else folder / f"{side}.spm"
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def _version(package: str) -> str:
    try:
        return version(package)
    except Exception:
        return "not installed"


PEERS = {
    "transformers": by_transformers,
    "ctranslate2": by_ctranslate2,
    "onnxruntime": by_onnxruntime,
    "transformer_lens": by_transformer_lens,
    "inseq": by_inseq,
    "bertviz": by_bertviz,
}
PACKAGES = {
    "transformers": ("transformers", "torch"),
    "ctranslate2": ("ctranslate2",),
    "onnxruntime": ("onnxruntime", "numpy"),
    "transformer_lens": ("transformer-lens", "transformers", "torch"),
    "inseq": ("inseq", "transformers", "torch"),
    "bertviz": ("bertviz", "transformers", "torch"),
}

if __name__ == "__main__":
    main()
