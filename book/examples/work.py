"""Computes a worked example by its name."""

from typing import assert_never

from book.examples import attention, blocks, inputs, training_and_decoding
from book.examples.names import ExampleName
from book.examples.page import Example


def work_out(name: ExampleName) -> Example:
    """Compute the example called ``name``."""
    match name:
        case "tokenization":
            return inputs.tokenization()
        case "subwords":
            return inputs.subwords()
        case "bert-tokenizer":
            return inputs.bert_tokenizer()
        case "vocabulary":
            return inputs.vocabulary()
        case "skip-gram":
            return inputs.skip_gram()
        case "embedding":
            return inputs.embedding()
        case "positional-encoding":
            return inputs.positional_encoding()
        case "wavelengths":
            return inputs.wavelengths()
        case "softmax":
            return attention.softmax_examples()
        case "softmax-scale":
            return attention.softmax_scale()
        case "softmax-jacobian":
            return attention.softmax_jacobian_example()
        case "attention":
            return attention.attention_example()
        case "why-divide":
            return attention.why_divide()
        case "two-words":
            return attention.two_words()
        case "nine-words":
            return attention.nine_words()
        case "exp-cosine":
            return attention.exp_cosine_example()
        case "masked-softmax":
            return attention.masked_softmax_example()
        case "masked-attention":
            return attention.masked_attention_example()
        case "parameters":
            return blocks.parameters()
        case "layer-norm":
            return blocks.layer_norm_example()
        case "feed-forward":
            return blocks.feed_forward_example()
        case "right-shift":
            return training_and_decoding.right_shift()
        case "teacher-forcing":
            return training_and_decoding.teacher_forcing()
        case "cross-entropy":
            return training_and_decoding.cross_entropy_example()
        case "learning-rate":
            return training_and_decoding.learning_rate()
        case "inference":
            return training_and_decoding.inference()
        case "re-predicting":
            return training_and_decoding.re_predicting()
        case "beam-search":
            return training_and_decoding.beam_search()
        case _:
            assert_never(name)
