"""Exports a bundle to the format of MarianMTModel and MarianTokenizer of transformers."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.backends.capability import MARIAN, advice_to_export
from pellucid.backends.marian.generation import generation_table, greedy_settings
from pellucid.backends.marian.self_check import prove_equal
from pellucid.backends.marian.settings import MARIAN_NORM_EPS, MarianSettings
from pellucid.backends.marian.tensors import (
    OUTPUT_BIAS,
    OUTPUT_WEIGHT,
    SHARED,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    features_to_marian,
    layers_to_marian,
)
from pellucid.backends.marian.vocabulary import (
    NORMALIZATION_KEY,
    PAD_PIECE,
    START_PIECE,
    STOP_PIECE,
    UNK_PIECE,
    MarianIds,
    SubwordTokenizer,
    number_for_marian,
    vocabulary_problems,
)
from pellucid.bundle import CARD_FILE, Bundle
from pellucid.core.errors import BundleError
from pellucid.core.files import refuse_to_overwrite, write_folder
from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.core.tensors import save_tensors
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.config import TransformerConfig
from pellucid.model.seq2seq import Seq2Seq

_log = logging.getLogger("pellucid")


def marian_problems(bundle: Bundle) -> list[str]:
    """Every reason why Marian cannot express a model; empty if it can."""
    tokenizers = {"source": bundle.source_tokenizer, "target": bundle.target_tokenizer}
    return MARIAN.model_problems(bundle.config) + vocabulary_problems(tokenizers)


def export_huggingface(bundle: Bundle, out: Path, card: str = "") -> None:
    """Write ``bundle`` to the new folder ``out`` in the format of OPUS-MT models.

    ``card`` becomes its README.md; without one it has none.

    Raises BundleError with every reason why Marian cannot express the model, OutputExistsError
    if ``out`` holds something, WriteError.
    """
    refuse_to_overwrite(out)

    config = bundle.model.config
    problems = marian_problems(bundle)
    if problems:
        options = MARIAN.options(config)
        tokenizers = bundle.source_tokenizer, bundle.target_tokenizer
        if not all(isinstance(each, SubwordTokenizer) for each in tokenizers):
            options = f"{options} --set tokenizer.kind=unigram".strip()
        trained = f"train with {options}" if options else ""
        raise BundleError(
            "Marian cannot express this model: " + "; ".join(problems),
            hint=", or ".join(filter(None, (trained, advice_to_export(config)))),
        )
    assert isinstance(config, TransformerConfig)  # of any other kind there are problems

    if config.norm_eps != MARIAN_NORM_EPS:
        _log.warning(
            "Marian adds %g to the variance in its norms, this model was trained with %g:"
            " the logits differ in the sixth digit",
            MARIAN_NORM_EPS,
            config.norm_eps,
        )

    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    assert isinstance(source, SubwordTokenizer)
    assert isinstance(target, SubwordTokenizer)
    source_ids, target_ids = number_for_marian(
        source, target, start_is_pad=_start_is_pad(bundle.model)
    )

    # The self-check reads what the table says, not our config, so that an
    # error in the table is found.
    table = _config_table(config, source_ids, target_ids)
    tensors = tensors_for_marian(bundle, source_ids, target_ids)
    prove_equal(
        bundle,
        tensors,
        MarianSettings.parse(table),
        ({our: id_ for id_, our in enumerate(ids.inputs)} for ids in (source_ids, target_ids)),
        target_ids.outputs,
    )

    searching = DecodingConfig.of_bundle(bundle.settings, bundle.path or "this model")
    # with the stop, which transformers counts
    longest = min(config.max_positions, searching.max_source_tokens + 1)
    if config.max_positions < searching.max_source_tokens:
        _log.warning(
            "transformers reads and writes at most %d tokens of this model (model.max_positions):"
            " Pellucid, whose sinusoids do not end, reads %d",
            config.max_positions,
            searching.max_source_tokens,
        )
    elif searching.max_length is not None and config.max_positions < searching.max_length + 2:
        _log.warning(
            "transformers writes at most %d tokens of this model (model.max_positions, with the"
            " start and the stop): decoding.max_length is %d",
            config.max_positions - 2,
            searching.max_length,
        )
    generation, lost = generation_table(searching, config.max_positions, target_ids)
    if lost:
        _log.warning(
            "not exported of the search settings, as transformers has none like them: %s",
            ", ".join(lost),
        )

    sides = {"source": source.normalization, "target": target.normalization}
    files = {
        "config.json": table,
        "generation_config.json": generation,
        "tokenizer_config.json": {
            **_tokenizer_table(longest, source_ids, target_ids),
            **({} if set(sides.values()) == {"none"} else {NORMALIZATION_KEY: sides}),
        },
        "vocab.json": _numbers(source_ids),
        **({} if source_ids == target_ids else {"target_vocab.json": _numbers(target_ids)}),
    }

    def fill(folder: Path) -> None:
        """Write the tables, both sentencepiece models and the parameters."""
        for name, content in files.items():
            text = json.dumps(content, ensure_ascii=False, indent=2)
            (folder / name).write_text(text, encoding="utf-8")
        # The sentencepiece models as they were trained; vocab.json says which id each piece has.
        (folder / "source.spm").write_bytes(source.model)
        (folder / "target.spm").write_bytes(target.model)
        # safetensors alone: transformers reads it first, and a pickle would be one more thing to
        # trust.
        save_tensors(folder / "model.safetensors", tensors)
        if card:
            (folder / CARD_FILE).write_text(card, encoding="utf-8")

    write_folder(out, fill, details={"kind": "huggingface"})


def translation_of_export(bundle: Bundle, text: str) -> str:
    """The translation of ``text`` that transformers gives greedily with what is exported.

    It cuts no text into sentences, copies no emoji or address, and reads capitals as they are.
    """
    config = bundle.config
    assert isinstance(config, TransformerConfig)  # no other is exported
    searching = DecodingConfig.of_bundle(bundle.settings, bundle.path or "this model")
    greedy = greedy_settings(searching, config.max_positions)
    return Translator(bundle, greedy, logs_warnings=False).translate(text).text


def _start_is_pad(model: Seq2Seq) -> bool:
    """Whether BOS and PAD have equal rows, as after an import: Marian has one id for both."""
    tensors = dict(model.named_parameters(remove_duplicate=False))
    return all(
        torch.equal(tensors[name][BOS_ID], tensors[name][PAD_ID])
        for name in ("target_embedding.weight", "output_weight")
    )


def tensors_for_marian(
    bundle: Bundle, source_ids: MarianIds, target_ids: MarianIds
) -> dict[str, Tensor]:
    """All tensors under Marian's names; tied ones are stored once."""
    config = bundle.model.config
    assert isinstance(config, TransformerConfig)
    named = dict(bundle.model.named_parameters(remove_duplicate=False))
    ours = {name: tensor.detach().cpu().float() for name, tensor in named.items()}

    # Everything below is about the embeddings, whose rows are ids; layers know no ids.
    result = layers_to_marian(ours, config)
    # Rows in the order of Marian's ids, columns in the order of its features.
    source, target, output = (
        features_to_marian(ours[name][list(rows)], axis=1)
        for name, rows in (
            ("source_embedding.weight", source_ids.inputs),
            ("target_embedding.weight", target_ids.inputs),
            ("output_weight", target_ids.outputs),
        )
    )

    if config.share_embeddings:
        result[SHARED] = target
    if not (config.share_embeddings and config.tie_output):
        result |= {SOURCE_EMBEDDING: source, TARGET_EMBEDDING: target}
    if not config.tie_output:
        result[OUTPUT_WEIGHT] = output
    # Marian always has a bias, of shape (1, vocabulary).
    bias = ours.get("output_bias", torch.zeros(bundle.model.target_vocabulary_size))
    result[OUTPUT_BIAS] = bias[list(target_ids.outputs)][None]
    return result


def _config_table(
    config: TransformerConfig, source_ids: MarianIds, target_ids: MarianIds
) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": len(source_ids.pieces),
        "decoder_vocab_size": len(target_ids.pieces),
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "scale_embedding": config.scale_embeddings,
        "share_encoder_decoder_embeddings": config.share_embeddings,
        "tie_word_embeddings": config.tie_output,
        "max_position_embeddings": config.max_positions,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "pad_token_id": target_ids.pad,
        "eos_token_id": target_ids.stop,
        "bos_token_id": None,
        # MarianConfig's default is 0; search settings belong to generation_config.json.
        "forced_eos_token_id": None,
        "decoder_start_token_id": target_ids.start,
        "torch_dtype": "float32",
    }


def _tokenizer_table(longest: int, source_ids: MarianIds, target_ids: MarianIds) -> dict[str, Any]:
    # The start is generated first. Where another piece is called so, it must be said to be special,
    # or it is decoded as text.
    start = target_ids.pieces[target_ids.start]
    special = {} if start in (START_PIECE, PAD_PIECE) else {"additional_special_tokens": [start]}
    return {
        **special,
        "tokenizer_class": "MarianTokenizer",
        "unk_token": UNK_PIECE,
        "eos_token": STOP_PIECE,
        "pad_token": PAD_PIECE,
        "separate_vocabs": source_ids != target_ids,
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
    }


def _numbers(ids: MarianIds) -> Mapping[str, int]:
    return {piece: id_ for id_, piece in enumerate(ids.pieces)}
