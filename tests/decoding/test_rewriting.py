"""Each step between a line and its search: the same tests for all of them, and for their order."""

import dataclasses
from collections.abc import Sequence

import pytest

from pellucid.core.errors import DataError
from pellucid.decoding import rewriting
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.rewriting import (
    Codes,
    Doubt,
    Judgement,
    OddLines,
    Sentences,
    Step,
    TermMarks,
    Terms,
)
from pellucid.text.config import TokenizerConfig
from pellucid.text.glossary import Glossary, Term
from pellucid.text.tokenizers.tokenizer import train_tokenizer

SETTINGS = DecodingConfig(copy_symbols=True, recase=True, mark_terms=True)
GLOSSARY = Glossary([Term(("chat",), ("cat",)), Term(("gare",), ("station",))])
LETTERS = train_tokenizer(
    [">>abcdefghijklmnopqrstuvwxyz<<"], TokenizerConfig(kind="character", vocabulary_size=40)
)
STEPS: dict[str, Step] = {
    "codes": Codes(LETTERS),
    "sentences": Sentences("fr"),
    "terms": Terms(GLOSSARY),
    "judgement": Judgement(frozenset(), None),
    "odd lines": OddLines(SETTINGS, copies_numbers=True, literals_in=None),
    "marks": TermMarks(GLOSSARY, SETTINGS),
}
PLAIN = [Request("je suis grand"), Request("il pleut"), Request("tu dors bien")]
"""Nothing in them matches: one sentence each, no term, no emoji, no capitals."""
ODD = [
    Request("Il pleut. Tu dors ! Il neige."),
    Request("le chat \U0001f600 dort"),
    Request("LA GARE EST GRANDE"),
    Request("12 + 30"),
    Request("je suis grand", prefix="i"),
    Request("\U0001f600 il pleut. le chat dort. \U0001f600"),
    Request(">>eng<< Il pleut. Tu dors."),
]


def word_by_word(requests: Sequence[Request], numbers: Sequence[int]) -> list[Translation]:
    """A search that writes x behind each word, and aligns it with that word."""
    assert len(requests) == len(numbers)
    return [_translation(each.source) for each in requests]


def _translation(source: str) -> Translation:
    words = source.split()
    links = tuple((number, number) for number in range(len(words)))
    tokens = tuple(f"{word}x" for word in words)
    best = Translation(
        text=" ".join(tokens),
        score=-1.0,
        tokens=tokens,
        token_log_probs=(),
        n_best=(),
        source=source,
        source_tokens=tuple(words),
        word_alignment=links,
    )
    return dataclasses.replace(best, n_best=(best,))


def links_in_words(found: Translation) -> list[tuple[str, str]]:
    sources, targets = found.source.split(), found.text.split()
    return [(sources[first], targets[second]) for first, second in found.word_alignment or ()]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_step_passes_on_what_does_not_concern_it(step: Step):
    rewritten = step(PLAIN)
    assert rewritten.requests == PLAIN
    found = word_by_word(PLAIN, range(len(PLAIN)))
    assert rewritten.back(found) == found


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_step_gives_one_translation_for_each_request_in_order(step: Step):
    for requests in (ODD, ODD[::-1], [*ODD, *PLAIN, *ODD], []):
        found = rewriting.run([step], requests, 1, word_by_word)
        assert [each.source for each in found] == [each.source for each in requests]
        assert all(each.n_best[0].text == each.text for each in found)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_alignments_of_a_step_join_each_word_with_its_own(step: Step):
    wanted = [each for each in ODD if each.source != "12 + 30"]
    for each in rewriting.run([step], wanted, 1, word_by_word):
        links = links_in_words(each)
        assert links, each.source
        assert all(target.lower() == f"{source}x".lower() for source, target in links), links


def test_all_steps_together_undo_what_they_did():
    steps = list(STEPS.values())
    asked: list[Request] = []

    def search(requests: list[Request], numbers: list[int]) -> list[Translation]:
        asked.extend(requests)
        assert numbers == [7, 7, 7, 8, 9, 10, 11, 12, 12, 12, 13, 13]
        return word_by_word(requests, numbers)

    found = rewriting.run(steps, ODD, 7, search)
    assert [each.source for each in found] == [each.source for each in ODD]
    # Read in lower case, with the term marked: the search saw neither capitals nor a bare source.
    assert asked[4].source.startswith("la gare ")
    assert "station" in asked[4].source
    assert found[2].text.startswith("LAX GAREX ")
    assert found[2].text.isupper()
    assert found[3].text == "12 + 30"
    # The code of the target language stands in front of each sentence that is searched.
    assert [each.read for each in asked[-2:]] == [">>eng<< Il pleut.", ">>eng<< Tu dors."]


@pytest.mark.parametrize("text", ["12:30", "***", "\U0001f600", "\nIl pleut. Tu dors.", "  "])
@pytest.mark.parametrize("is_typed", [True, False])
def test_no_step_reads_the_code_of_a_target_language(text: str, is_typed: bool):
    """A line with a code is searched for as one without it, and only what is searched has it."""
    asked: list[Request] = []

    def search(requests: list[Request], numbers: list[int]) -> list[Translation]:
        asked.extend(requests)
        return word_by_word(requests, numbers)

    steps = list(STEPS.values())
    [bare] = rewriting.run(steps, [Request(text)], 1, search)
    expected = asked.copy()
    asked.clear()
    line = Request(f">>eng<< {text}") if is_typed else Request(text, code=">>eng<<")
    [found] = rewriting.run(steps, [line], 1, search)

    assert [dataclasses.replace(each, code="") for each in asked] == expected
    assert all(each.code == ">>eng<<" or not each.source for each in asked)
    assert (found.text, found.warnings) == (bare.text, bare.warnings)
    assert found.source == line.source


def test_what_is_left_in_the_place_of_a_doubtful_translation_has_no_code():
    step = Doubt(DecodingConfig(below=0.5, doubtful="leave"))
    asked = Sentences("en")([Request("Hello there. How are you?", code=">>fra<<")])

    def search(requests: list[Request], numbers: list[int]) -> list[Translation]:
        return [dataclasses.replace(_translation(each.source), quality=0.4) for each in requests]

    steps = [Codes(LETTERS), Sentences("en"), step]
    [found] = rewriting.run(steps, [Request(">>fra<< Hello there. How are you?")], 1, search)
    assert found.text == "Hello there. How are you?"
    assert [each.read for each in asked.requests] == [
        ">>fra<< Hello there.",
        ">>fra<< How are you?",
    ]


def test_only_the_terms_of_a_request_are_marked():
    """Those that it brings itself take the place of the glossary's."""
    marked = [
        TermMarks(GLOSSARY, SETTINGS)([each]).requests[0].source
        for each in (
            Request("le chat et la gare", terms=(("Bahnhof",),)),
            *Terms(GLOSSARY)([Request("le chat et la gare")]).requests,
        )
    ]
    assert marked[0] == "le chat et la gare"
    assert [each in marked[1] for each in ("cat", "station")] == [True, True]


def test_a_lone_surrogate_beside_an_address_is_refused():
    def addresses_in(text: str) -> list[tuple[int, int]]:
        return [(0, len("https://e.org/"))]

    step = OddLines(SETTINGS, copies_numbers=True, literals_in=addresses_in)
    assert step.read(Request("https://e.org/")).is_copied
    with pytest.raises(DataError, match="surrogate"):
        step.read(Request("https://e.org/ \ud800"))


def test_a_judged_translation_is_compared_with_the_source_as_its_user_wrote_it():
    """The emoji that the search never saw is in the source that warnings quote, and in the text."""
    steps = [STEPS["judgement"], STEPS["odd lines"]]

    def search(requests: list[Request], numbers: list[int]) -> list[Translation]:
        return [dataclasses.replace(_translation(each.source), text="") for each in requests]

    [found] = rewriting.run(steps, [Request("il pleut \U0001f600")], 1, search)
    assert [each.kind for each in found.warnings] == ["empty"]
    assert found.source == "il pleut \U0001f600"
