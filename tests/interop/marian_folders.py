"""Marian models of transformers' own making, at toy size, with random weights.

Importing transformers takes seconds, so it is imported where a test needs it.
"""

import functools
import io
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sentencepiece
import torch
from small_bundles import ENGLISH, FRENCH, NEW_TOKENS, sentences

if TYPE_CHECKING:
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer


@functools.cache
def marian_spm(words: str, size: int) -> bytes:
    """A sentencepiece model as OPUS-MT's: normalizing, without bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(300, words.split())),
        model_writer=model,
        model_type="unigram",
        vocab_size=size,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]


def marian_folder(
    folder: Path,
    *,
    separate: bool = False,
    ordinary_start: bool = False,
    seed: int = 0,
    **changes: Any,
) -> "MarianMTModel":
    """Write a random Marian model with OPUS-MT's order of ids; it is given back.

    With ``ordinary_start`` the vocabulary holds ``<s>`` and starts from the padding none the less,
    as those of OPUS-MT tc-big do.
    """
    from transformers import MarianMTModel

    folder.mkdir(parents=True)
    source, target = marian_spm(FRENCH, 60), marian_spm(ENGLISH, 50)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    lists = [sorted({*pieces_of(source), *pieces_of(target), ">>fra<<"})]
    if ordinary_start:
        lists[0].insert(7, "<s>")
    if separate:  # pad in front, as one number must serve both sides
        lists = [pieces_of(source), pieces_of(target)]
        tables = [_numbered(["<pad>", "<unk>", "</s>", *pieces]) for pieces in lists]
        pad, stop = 0, 2
    else:
        tables = [_numbered(["</s>", "<unk>", *lists[0], "<pad>"])]
        pad, stop = len(tables[0]) - 1, 0
    for name, table in zip(("vocab.json", "target_vocab.json"), tables, strict=False):
        (folder / name).write_text(json.dumps(table, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": separate}))
    torch.manual_seed(seed)
    model = MarianMTModel(_config(tables, pad, stop, changes)).eval()
    for name, parameter in model.named_parameters():
        if "positions" not in name:
            parameter.data += 0.1 * torch.randn_like(parameter)
    model.final_logits_bias.normal_()
    model.generation_config.bad_words_ids = [[pad]]
    model.generation_config.num_beams = 3
    model.save_pretrained(folder)
    return model


def _numbered(pieces: list[str]) -> dict[str, int]:
    return {piece: id_ for id_, piece in enumerate(pieces)}


def _config(
    tables: list[dict[str, int]], pad: int, stop: int, changes: dict[str, Any]
) -> "MarianConfig":
    from transformers import MarianConfig

    settings = {
        "vocab_size": len(tables[0]),
        "decoder_vocab_size": len(tables[-1]),
        "share_encoder_decoder_embeddings": len(tables) == 1,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 64,
        "init_std": 0.25,
        "pad_token_id": pad,
        "eos_token_id": stop,
        "forced_eos_token_id": stop,
        "decoder_start_token_id": pad,
    }
    return MarianConfig(**{**settings, **changes})


def open_marian(folder: Path) -> "tuple[MarianMTModel, MarianTokenizer]":
    """What a user of transformers does."""
    from transformers import MarianMTModel, MarianTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers about itself
        model, report = MarianMTModel.from_pretrained(folder, output_loading_info=True)
        assert not report["missing_keys"] or all(
            "embed_positions" in name for name in report["missing_keys"]
        ), report
        assert not report["unexpected_keys"], report
        assert not report["mismatched_keys"], report
        return model.eval(), MarianTokenizer.from_pretrained(folder)


def marian_greedy(
    model: "MarianMTModel", tokenizer: "MarianTokenizer", texts: list[str]
) -> list[list[str]]:
    """The tokens of transformers' greedy search, the stop left out."""
    special = {model.config.pad_token_id, model.config.eos_token_id}
    special.add(model.config.decoder_start_token_id)
    said = []
    for start in range(0, len(texts), 50):
        batch = tokenizer(texts[start : start + 50], return_tensors="pt", padding=True)
        found = model.generate(
            **batch, num_beams=1, do_sample=False, max_length=None, max_new_tokens=NEW_TOKENS + 1
        )
        kept = [[id_ for id_ in row if id_ not in special] for row in found.tolist()]
        said += [[tokenizer._convert_id_to_token(id_) for id_ in row] for row in kept]
    return said
