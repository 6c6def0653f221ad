"""One forward pass for whoever looks inside."""

import torch
from torch import Tensor

from pellucid.inspection.sentence import Opened, Sentence, at_rest
from pellucid.model.recurrent import RecurrentSeq2Seq
from pellucid.model.seq2seq import Seq2Seq
from pellucid.model.trace import Trace
from pellucid.model.transformer import Transformer


def run(opened: Opened, sentence: Sentence, trace: Trace) -> Tensor:
    """The logits of each target token, (target, vocabulary); no gradients, no dropout."""
    opened.before_pass()
    with torch.no_grad(), at_rest(opened.model):
        logits: Tensor = opened.model(*sentence.tensors(opened.model), trace)[0]
    return logits


def log_probabilities(logits: Tensor, sentence: Sentence) -> Tensor:
    """log p of each token that was said, in nats, from logits (…, target, vocabulary)."""
    said = torch.tensor(sentence.target_ids, device=logits.device)
    index = said.expand(logits.shape[:-1]).unsqueeze(-1)
    return logits.log_softmax(-1).gather(-1, index).squeeze(-1)


def read_out(model: Seq2Seq, hidden: Tensor) -> Tensor:
    """What the end of the model makes of a decoder's rows: last norm, then the output matrix."""
    if isinstance(model, Transformer):
        hidden = model.decoder.last_norm(hidden)
    assert isinstance(model, Transformer | RecurrentSeq2Seq)
    return torch.nn.functional.linear(hidden, model.output_weight, model.output_bias)
