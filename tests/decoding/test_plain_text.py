"""Masks are filled from the output of the model at the masks, and nowhere else."""

import torch
from small_bundle import tokenizer

from pellucid.bundle import Bundle
from pellucid.core.special import EOS_ID, MASK_ID, SPECIAL_COUNT
from pellucid.decoding.plain_text import fill_masks
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config


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
