"""A decoder-only model goes on with a text."""

import torch

from pellucid.bundle import Bundle
from pellucid.core.errors import BundleError
from pellucid.core.special import STOP_ID
from pellucid.decoding.batching import inference
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.constraints import Demands
from pellucid.decoding.requests import check_texts
from pellucid.decoding.search import search
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.text_models import DecoderOnly


def continue_text(
    bundle: Bundle[SequenceModel], prompt: str, settings: DecodingConfig, new_tokens: int
) -> list[str]:
    """``prompt`` and what may follow it, at most ``new_tokens`` tokens, the likeliest first.

    Searches as a translator does; the prompt is a prefix that is forced.

    EQ: 123, 138.  Raises BundleError for a bundle of another kind, DataError for what is not
    text, ConfigError if the model cannot number so many tokens.
    """
    model = bundle.model
    if not isinstance(model, DecoderOnly):
        raise BundleError(
            f"{bundle.path} holds a model of kind {model.config.kind}; a text is continued by a"
            " decoder"
        )
    check_texts([prompt], 1)
    prefix = tuple(bundle.target_tokenizer.encode(prompt))
    wanted = settings.changed({"max_length": len(prefix) + new_tokens})
    device = next(model.parameters()).device
    source = torch.tensor([[*prefix, STOP_ID]], device=device)
    with inference(model):
        [found] = search(model, source, wanted, Demands(prefixes=(prefix,)))
    return [bundle.target_tokenizer.decode(hypothesis.ids) for hypothesis in found]
