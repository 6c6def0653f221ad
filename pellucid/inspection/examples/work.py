"""Computes a worked example by its name."""

from typing import assert_never

from pellucid.inspection.examples import numbers, words
from pellucid.inspection.examples.page import Example, ExampleName


def work_out(name: ExampleName) -> Example:
    """Compute the example called ``name``."""
    match name:
        case "tokenization":
            return words.tokenization()
        case "subwords":
            return words.subwords()
        case "bert-tokenizer":
            return words.bert_tokenizer()
        case "vocabulary":
            return words.vocabulary()
        case "skip-gram":
            return words.skip_gram()
        case "embedding":
            return numbers.embedding()
        case "positional-encoding":
            return numbers.positional_encoding()
        case "wavelengths":
            return numbers.wavelengths()
        case "softmax":
            return numbers.softmax_examples()
        case "softmax-scale":
            return numbers.softmax_scale()
        case "softmax-jacobian":
            return numbers.softmax_jacobian_example()
        case "attention":
            return numbers.attention_example()
        case "why-divide":
            return numbers.why_divide()
        case "two-words":
            return numbers.two_words()
        case "nine-words":
            return numbers.nine_words()
        case "exp-cosine":
            return numbers.exp_cosine_example()
        case "masked-softmax":
            return numbers.masked_softmax_example()
        case "masked-attention":
            return numbers.masked_attention_example()
        case "parameters":
            return numbers.parameters()
        case "layer-norm":
            return numbers.layer_norm_example()
        case "feed-forward":
            return numbers.feed_forward_example()
        case "right-shift":
            return words.right_shift()
        case "teacher-forcing":
            return words.teacher_forcing()
        case "cross-entropy":
            return numbers.cross_entropy_example()
        case "learning-rate":
            return numbers.learning_rate()
        case "inference":
            return words.inference()
        case "re-predicting":
            return words.re_predicting()
        case "beam-search":
            return words.beam_search()
        case _:
            assert_never(name)
