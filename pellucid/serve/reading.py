"""Splits the texts of a request into sentences and tokenizes them."""

import asyncio
import dataclasses
import math
import time

from pellucid.documents.aligned import parts_of
from pellucid.serve.models import LoadedModel
from pellucid.serve.schema import TranslateRequest
from pellucid.serve.server.errors import FieldProblem, refuse
from pellucid.text.languages import with_code
from pellucid.text.splitting import Sentence, split_lines, split_sentences
from pellucid.text.tokenizers.marian import own_code

_CHEAP_CHARS = 2000
"""Texts up to this size are tokenized on the event loop, which takes less than a millisecond."""


@dataclasses.dataclass(frozen=True)
class ReadSentence:
    """A sentence and the tokens of it that the model reads."""

    place: Sentence
    text: str
    """The text that the model reads: behind the code of a target language, if it needs one."""
    ids: list[int]
    """The ids that are read; empty for a blank sentence."""
    tokens: list[str]
    is_truncated: bool
    next_source: str = ""
    """The sentence behind it in the same text."""


ReadText = list[ReadSentence]
"""The sentences of one text of a request."""


async def read_texts(
    model: LoadedModel,
    request: TranslateRequest,
    limit: int,
    *,
    whole: bool = False,
    deadline: float = math.inf,
) -> list[ReadText]:
    """Split the texts into sentences and tokenize them; at most ``limit`` tokens of each are read.

    With ``whole`` a longer sentence is divided, so that all of it is read. Raises
    InvalidError for longer sentences if the request forbids truncation, TimeoutError after the
    ``deadline`` on ``time.monotonic``.
    """
    texts = [request.text] if isinstance(request.text, str) else request.text

    def read_all() -> list[ReadText]:
        found = []
        for text in texts:
            # A thread cannot be cancelled, so it looks at the time itself.
            if time.monotonic() > deadline:
                raise TimeoutError
            found.append(_read_text(model, text, request.split, limit, whole))
        return found

    is_cheap = sum(map(len, texts)) <= _CHEAP_CHARS
    # In a thread, other requests are answered meanwhile.
    read = read_all() if is_cheap else await asyncio.to_thread(read_all)

    if not request.truncate:
        problems = [
            FieldProblem(
                "text" if isinstance(request.text, str) else f"text.{index}",
                f"must have at most {limit} tokens in each sentence;"
                f" the one at character {sentence.place.start} has more",
                "",
            )
            for index, text in enumerate(read)
            for sentence in text
            if sentence.is_truncated
        ]
        refuse(problems)
    return read


def _read_text(model: LoadedModel, text: str, split: bool, limit: int, whole: bool) -> ReadText:
    """Tokenize one text; without ``split`` it is one sentence."""
    if split:
        places = _units(model, text, limit)
    else:
        words = text.strip()
        start = len(text) - len(text.lstrip()) if words else len(text)
        places = [Sentence(text[:start], words, text[start + len(words) :], start)]
    # A code in front of the text holds for all its sentences.
    own = own_code(text, model.bundle.source_tokenizer)
    code = own or model.settings.target_code
    # After splitting, so that only a sentence that is too long is divided.
    if whole:
        room = limit - bool(code)
        places = [part for place in places for part in _divided(model, place, room)]
    read = [with_code(place.text, code) for place in places]
    # All sentences in one call, which is faster than one call for each.
    all_ids = model.source_ids(read)

    found = []
    behind = [*(place.text for place in places[1:]), ""]
    for place, sentence, ids, following in zip(places, read, all_ids, behind, strict=True):
        kept = ids[:limit] if place.text else []
        tokens = model.bundle.source_tokenizer.tokens(kept)
        found.append(ReadSentence(place, sentence, kept, tokens, len(ids) > limit, following))
    return found


def _units(model: LoadedModel, text: str, limit: int) -> list[Sentence]:
    """The sentences of a text, or its lines if the model was trained on lines of several sentences
    and can read the longest of them.
    """
    if not model.splits:
        lines = split_lines(text, model.source_language)
        if all(len(ids) <= limit for ids in model.source_ids([each.text for each in lines])):
            return lines
    return split_sentences(text, model.source_language)


def _divided(model: LoadedModel, place: Sentence, limit: int) -> list[Sentence]:
    """Parts of at most ``limit`` tokens, with the white space between them."""
    tokenizer = model.bundle.source_tokenizer
    parts = parts_of(place.text, tokenizer, limit, model.source_language)
    ends = [start for start, _ in parts[1:]]
    found = [
        Sentence("", part, place.text[start + len(part) : end], place.start + start)
        for (start, part), end in zip(parts, [*ends, len(place.text)], strict=True)
    ]
    found[0] = dataclasses.replace(found[0], before=place.before + place.text[: parts[0][0]])
    return [*found[:-1], dataclasses.replace(found[-1], after=found[-1].after + place.after)]
