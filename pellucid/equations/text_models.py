"""Encoder-only and decoder-only models on one page: the blocks of the Transformer over one text.

The blocks are those of ``transformer.py``; who attends to whom differs, and what is predicted.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from pellucid.core.special import BOS_ID, PAD_ID
from pellucid.equations.embedding import output_logits, shift_right
from pellucid.equations.losses import smoothed_cross_entropy
from pellucid.equations.masks import causal_mask, padding_mask
from pellucid.equations.shapes import Number
from pellucid.equations.transformer import embed_tokens, encoder_block, last_norm
from pellucid.equations.weights import TextModel

Ids = Int[Tensor, "text length"]
Logits = Float[Tensor, "text length vocabulary"]


def fill_logits(model: TextModel, ids: Ids) -> Logits:
    """Encoder-only: the logits of the word at every position, given all positions.

        Z = X⁽ᴺ⁾ W^S + b^S

    EQ: 137.  Source: Lee, Conclusion; Devlin et al. (2019), §3.
    """
    return _run_blocks(model, ids, padding_mask(ids, PAD_ID).unsqueeze(1))  # (text, 1, length)


def fill_loss(
    model: TextModel, ids: Ids, labels: Ids, chosen: Bool[Tensor, "text length"], smoothing: Number
) -> Float[Tensor, ""]:
    """The loss of an encoder-only model: cross-entropy at the chosen positions alone, in nats.

        L = Σᵢ CE(qᵢ, softmax(zᵢ)) over the positions i that were chosen

    EQ: 118, 137.  Source: Devlin et al. (2019), §3.1.
    Symbols: ids = the text with the chosen words hidden or replaced, labels = the text itself.
    """
    # labels that are PAD do not count, so all but the chosen positions leave the loss
    taught = labels.masked_fill(~chosen, PAD_ID)
    return smoothed_cross_entropy(fill_logits(model, ids), taught, smoothing, "sum", PAD_ID)


def continue_logits(model: TextModel, ids: Ids) -> Logits:
    """Decoder-only: the logits of the next word at every position, given the words up to it.

        Z = Y⁽ᴺ⁾ W^S + b^S, with causal masks

    EQ: 138.  Source: Lee, Conclusion; Radford et al. (2018), §3.1. The first id is BOS.
    """
    # (1, length, length), the same for every text; padding comes after all words, so no word
    # attends to it
    return _run_blocks(model, ids, causal_mask(ids.shape[1]).unsqueeze(0))


def continue_loss(model: TextModel, labels: Ids, smoothing: Number) -> Float[Tensor, ""]:
    """The loss of a decoder-only model: cross-entropy of every next word, summed, in nats.

    EQ: 106, 118, 138.  Source: Radford et al. (2018), eq. (1).
    """
    # one pass gives the loss of every next word, because the causal mask hides the words to come
    z = continue_logits(model, shift_right(labels, BOS_ID))
    return smoothed_cross_entropy(z, labels, smoothing, "sum", PAD_ID)


def _run_blocks(
    model: TextModel, ids: Ids, may_attend: Bool[Tensor, "#text #length length"]
) -> Logits:
    settings = model.settings
    x = embed_tokens(ids, model.embedding, settings)
    for weights in model.blocks:
        if not settings.training.skips_layer(settings.layer_drop):
            x = encoder_block(x, may_attend, weights, settings)
    return output_logits(last_norm(x, model.last_norm, settings), model.w_s, model.b_s)
