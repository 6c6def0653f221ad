"""Masks are filled from the output of the model at the masks, and texts continued by the rules."""

import pytest
import torch
from small_bundle import tokenizer

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError
from pellucid.core.special import EOS_ID, MASK_ID, SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.plain_text import continue_text, fill_masks, text_warnings
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.training.config import RunConfig


def test_a_mask_gets_the_likeliest_ordinary_token_of_its_own_position():
    """Two masks in one text: the model reads MASK twice, and each is filled from its own logits."""
    words = tokenizer("word")
    config = parse_model_config(
        {"kind": "encoder", "d_model": 8, "d_ff": 12, "heads": 2, "encoder_layers": 1}
    )
    size = words.vocabulary_size
    model = build_any_model(config, size, size, seed=3).double().eval()

    filled = fill_masks(Bundle(model, words, words, {}, {}), "le [MASK] chat [MASK]", count=2)

    [le], [chat] = words.encode("le"), words.encode("chat")
    with torch.inference_mode():
        logits = model(torch.tensor([[le, MASK_ID, chat, MASK_ID, EOS_ID]]))[0]
    best = []
    for position, candidates in zip((1, 3), filled.candidates, strict=True):
        probabilities = logits[position, SPECIAL_COUNT:].softmax(dim=-1)
        values, tokens = probabilities.topk(2)
        names = words.tokens((tokens + SPECIAL_COUNT).tolist())
        assert candidates == tuple(zip(names, values.tolist(), strict=True))
        best.append(names[0])
    assert best[0] != best[1], "or the test could not tell the masks apart"
    assert filled.text == f"le {best[0]} chat {best[1]}"


def decoder(words: str = "bpe", **settings: object) -> Bundle:
    tokens = tokenizer(words)
    table = {"kind": "decoder", "d_model": 16, "d_ff": 12, "heads": 2, "decoder_layers": 2}
    config = parse_model_config({**table, **settings})
    size = tokens.vocabulary_size
    model = build_any_model(config, size, size, seed=3).double().eval()
    for parameter in model.parameters():
        parameter.data *= 3.0  # fresh weights hardly tell one word from another
    return Bundle(model, tokens, tokens, {}, {})


@pytest.mark.parametrize("search", [{"beam_size": 1}, {"beam_size": 3}, {"sampling": {"seed": 4}}])
def test_banned_words_are_not_continued(search: dict[str, object]):
    bundle = decoder("word")
    settings = DecodingConfig.parse(search)
    [plain] = continue_text(bundle, "le chat", settings, 12)
    said = plain.removeprefix("le chat").split()
    assert said[:1] != ["[UNK]"]
    banned = settings.changed({"banned": [word for word in said if word != "[UNK]"]})
    [other] = continue_text(bundle, "le chat", banned, 12)
    assert other.startswith("le chat")
    assert not set(banned.banned) & set(other.removeprefix("le chat").split())


@pytest.mark.parametrize(("least", "new_tokens"), [(1, 6), (4, 6), (6, 6), (9, 6)])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_least_length_counts_new_tokens(least: int, new_tokens: int, beam_size: int):
    """A stop is the likeliest token everywhere, so that the least length alone delays it."""
    bundle = decoder("word", output_bias=True)
    with torch.no_grad():
        bundle.model.output_bias[EOS_ID] = 50.0
    prompt = "le petit chat noir"
    free = DecodingConfig(beam_size=beam_size)
    assert continue_text(bundle, prompt, free, new_tokens) == [prompt]
    settings = DecodingConfig(beam_size=beam_size, min_length=least)
    [found] = continue_text(bundle, prompt, settings, new_tokens)
    ids = bundle.target_tokenizer.encode(prompt)
    count = len(bundle.target_tokenizer.encode(found)) - len(ids)
    assert count == min(least, new_tokens)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"must": ["chat"]}, "must"),
        ({"mbr": True}, "mbr"),
        ({"coverage_penalty": 0.2}, "coverage_penalty"),
        ({"below": 0.5}, "below"),
        ({"prefix": "le"}, "prefix"),
        ({"align": True, "replace_unknown": True}, "align or replace_unknown"),
    ],
)
def test_settings_of_a_translation_are_refused(settings: dict[str, object], names: str):
    message = f"a model that continues text has no translation, and takes no {names}"
    with pytest.raises(ConfigError) as caught:
        continue_text(decoder(), "le chat", DecodingConfig.parse(settings), 4)
    assert str(caught.value) == message
    table = {"model": {"kind": "decoder"}, "training": {"max_steps": 1}, "decoding": settings}
    with pytest.raises(ConfigError, match=f"decoding: {message}"):
        RunConfig.parse(table)


@pytest.mark.parametrize("settings", [{"use_cache": False}, {"repredict": True, "beam_size": 1}])
def test_a_run_is_refused_whose_model_could_not_continue(settings: dict[str, object]):
    table = {"model": {"kind": "decoder"}, "training": {"max_steps": 1}, "decoding": settings}
    with pytest.raises(ConfigError, match="use_cache=false and repredict are for models of kind"):
        RunConfig.parse(table)


def test_words_that_the_model_does_not_know_are_told():
    """All of them would be read as one and the same token. A mask is no word."""
    words = decoder("word")
    [warning] = text_warnings(words, "Le chat [MASK] 😀")
    assert str(warning) == "the model does not know “Le”, “😀”"
    assert text_warnings(words, "le chat [MASK]") == []
    assert text_warnings(words, "") == []
