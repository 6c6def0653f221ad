"""What a model of plain text says, shown on one line of text."""

from pellucid.bundle import Bundle
from pellucid.core.special import SPECIAL_COUNT
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.plain_text import MASK, continue_text, fill_masks
from pellucid.model.seq2seq import SequenceModel
from pellucid.model.skipgram import SkipGram
from pellucid.model.text_models import DecoderOnly, EncoderOnly
from pellucid.text.vectors import WordVectors

_MOST_NEW_TOKENS = 20


def show(bundle: Bundle[SequenceModel], text: str) -> tuple[str, str, str]:
    """What was asked about ``text``, what would be right, and what the model says."""
    words = text.split()
    middle = len(words) // 2
    model = bundle.model
    if isinstance(model, EncoderOnly):
        masked = " ".join([*words[:middle], MASK, *words[middle + 1 :]])
        return masked, text, fill_masks(bundle, masked).text
    if isinstance(model, DecoderOnly):
        prompt = " ".join(words[: max(1, middle)])
        settings = DecodingConfig(beam_size=1)
        return prompt, text, continue_text(bundle, prompt, settings, _MOST_NEW_TOKENS)[0]
    assert isinstance(model, SkipGram)
    ids = bundle.target_tokenizer.encode(text)
    tokens = bundle.target_tokenizer.tokens(
        range(SPECIAL_COUNT, bundle.target_tokenizer.vocabulary_size)
    )
    vectors = WordVectors(tuple(tokens), model.w_in[SPECIAL_COUNT:].detach().cpu().numpy())
    asked = next((id_ for id_ in ids if id_ >= SPECIAL_COUNT), SPECIAL_COUNT)
    word = tokens[asked - SPECIAL_COUNT]

    return word, text, ", ".join(near for near, _ in vectors.nearest(word, 3))
