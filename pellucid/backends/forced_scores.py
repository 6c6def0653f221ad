"""The self-check of converted models: log-probabilities of lines of ids that are drawn at random.

Random ids need no text that the vocabulary can spell, so they check every model alike.
"""

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.core.special import BOS_ID, EOS_ID, SPECIAL_COUNT
from pellucid.decoding.search.search import inference
from pellucid.model.seq2seq import Seq2Seq, SequenceModel
from pellucid.model.text_models import DecoderOnly, EncoderOnly

_LENGTHS = ((1, 2), (7, 5), (12, 16))
"""Tokens of the source and of the target of each line."""


def random_lines(bundle: Bundle[SequenceModel]) -> list[tuple[Tensor, Tensor]]:
    """The ids of source and target of three lines, without start and stop; always the same ones.

    A model that numbers few positions has shorter lines.
    """
    generator = torch.Generator().manual_seed(0)
    # one position is for the stop, or for the start
    longest = _LENGTHS[-1][1] if bundle.max_length is None else bundle.max_length - 1
    sizes = bundle.source_tokenizer.vocabulary_size, bundle.target_tokenizer.vocabulary_size
    if isinstance(bundle.model, Seq2Seq):
        # the ids that both have, in case they differ
        known = bundle.model.source_vocabulary_size, bundle.model.target_vocabulary_size
        sizes = min(sizes[0], known[0]), min(sizes[1], known[1])

    def draw(size: int, length: int) -> Tensor:
        # a vocabulary without a word has its special tokens alone
        first = SPECIAL_COUNT if size > SPECIAL_COUNT else 0
        return torch.randint(first, size, (min(length, longest),), generator=generator)

    return [(draw(sizes[0], lengths[0]), draw(sizes[1], lengths[1])) for lengths in _LENGTHS]


def forced_log_probs(model: SequenceModel, source: Tensor, target: Tensor) -> Tensor:
    """log p of each token of a line and of its stop, in float32 on the CPU.

    An encoder of plain text reads the source and is asked for its own words; a decoder reads no
    source.
    """
    device = next(model.parameters()).device
    start, stop = torch.tensor([BOS_ID]), torch.tensor([EOS_ID])
    read = torch.cat([source, stop])[None].to(device)
    written = torch.cat([start, target])[None].to(device)
    expected = torch.cat([target, stop])

    with inference(model):
        match model:
            case Seq2Seq():
                logits: Tensor = model(read, written)
            case EncoderOnly():
                logits, expected = model(read), torch.cat([source, stop])
            case DecoderOnly():
                logits = model(written)
            case _:
                raise AssertionError(f"{type(model).__name__} gives words no probabilities")
    log_probs = logits[0].float().log_softmax(dim=-1).cpu()  # (token, vocabulary)
    return log_probs.gather(-1, expected[:, None])[:, 0]
