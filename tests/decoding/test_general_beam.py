"""General beam search: equal to beam search; diverse beams; required phrases."""

import math

import pytest
import torch
from small_bundle import small_bundle
from table_models import (
    A,
    B,
    C,
    TableModel,
    every_sentence,
    random_language,
    sources,
    toy,
)

from pellucid.core.errors import CancelledError, ConfigError, PellucidError
from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import Request
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.candidates import Constraints
from pellucid.decoding.search.general_beam import Group, Node, general_beam_search
from pellucid.decoding.search.greedy import greedy_search
from pellucid.decoding.search.required_phrases import RequiredPhrases, divide_beam
from pellucid.decoding.translator import Translator

BATCH = sources(*[[token, *range(4, 4 + token % 3)] for token in range(4, 20)])


def settings(**changes) -> DecodingConfig:
    return DecodingConfig.parse(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"beam_size": 1},
        {"beam_size": 3, "n_best": 3},
        {"beam_size": 4, "length_penalty": 2.0, "patience": math.inf},
        {"beam_size": 4, "n_best": 2, "length_penalty": -1.0},
        {"beam_size": 40, "n_best": 9, "max_length": 3, "patience": 2.0},
        {"beam_size": 3, "no_repeat_ngram": 1, "min_length": 2},
        {"beam_size": 3, "n_best": 2, "length_penalty_kind": "power", "forced_stop": "free"},
        {"beam_size": 3, "patience": math.inf, "stop_bound": "current"},
        {"beam_size": 4, "n_best": 2, "patience": 3.0, "stop_bound": "current"},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_general_search_is_beam_search(changes, dtype):
    """The same ids, log-probabilities and scores for a batch of sixteen, whatever is asked."""
    model = TableModel(random_language(3), dtype=dtype)
    wanted = settings(**{"max_length": 6, **changes})
    constraints = Constraints(banned=((B, B),), prefixes=((), (C,)) * 8)
    expected = beam_search(model, BATCH, wanted, constraints)
    assert general_beam_search(model, BATCH, wanted, constraints) == expected
    assert len({tuple(h.ids for h in found) for found in expected}) > 5


@torch.inference_mode()
def test_the_general_search_is_beam_search_on_a_real_model():
    model = small_bundle().model
    wanted = settings(beam_size=5, n_best=3, max_length=8)
    batch = sources([5, 6, 7], [8], [9, 10, 11, 12, 13])
    for open_found, found in zip(
        general_beam_search(model, batch, wanted), beam_search(model, batch, wanted), strict=True
    ):
        assert [h.ids for h in open_found] == [h.ids for h in found]
        assert [h.score for h in open_found] == pytest.approx([h.score for h in found])


def test_later_groups_pay_for_the_tokens_of_earlier_ones():
    """Two groups of one on the toy: the second would choose A too, but .6 e^-λ < .4."""
    wanted = settings(beam_size=2, diverse_groups=2, n_best=2, length_penalty=0.0)
    for strength, ids in ((0.3, [(A,)]), (0.5, [(B,), (A,)])):
        model = TableModel(toy)
        [found] = general_beam_search(
            model, sources([A]), wanted.changed({"diversity_strength": strength})
        )
        expected = ids if strength > math.log(1.5) else [(A,)]
        assert [h.ids for h in found][: len(expected)] == expected
        best = {(A,): 0.24, (B,): 0.36}
        for hypothesis in found[: len(expected)]:
            assert math.exp(hypothesis.score) == pytest.approx(best[hypothesis.ids])


@pytest.mark.parametrize("seed", range(4))
def test_the_first_group_is_a_beam_of_its_own_size(seed):
    """And without a cost every group is."""
    model = TableModel(random_language(seed))
    grouped = settings(beam_size=6, diverse_groups=3, n_best=2, max_length=5)
    alone = beam_search(model, BATCH, settings(beam_size=2, n_best=2, max_length=5))
    for strength in (0.0, 1.0):
        found = general_beam_search(
            model, BATCH, grouped.changed({"diversity_strength": strength, "n_best": 6})
        )
        for mine, first in zip(found, alone, strict=True):
            assert len({h.ids for h in mine}) == len(mine), "each sentence once"
            assert [h.score for h in mine] == sorted((h.score for h in mine), reverse=True)
            if strength:
                assert set(first) <= set(mine)
            else:
                assert mine == first


def test_a_strong_cost_makes_the_groups_begin_differently():
    model = TableModel(random_language(1))
    wanted = settings(
        beam_size=3, diverse_groups=3, n_best=3, diversity_strength=50.0, max_length=5, min_length=1
    )
    for found in general_beam_search(model, BATCH, wanted):
        assert {h.ids[0] for h in found} == {A, B, C}


def test_a_token_costs_a_group_once_for_each_group_before_that_chose_it():
    """A is 1.5 λ likelier than B: the second group still takes it, the third pays 2 λ."""
    strength = 0.4
    share = 1 / (1 + math.exp(-1.5 * strength))

    def language(source, prefix):
        return {EOS_ID: 1.0} if prefix else {A: share, B: 1 - share}

    wanted = settings(
        beam_size=3, diverse_groups=3, n_best=3, diversity_strength=strength, max_length=2
    )
    chosen = []

    class Chosen:
        def considered(self, sentence, group, candidates):
            chosen.append((group, candidates[0].node.ids[0]))

        def expanded(self, sentence, group, expansion): ...

        def left(self, sentence, group, live, reason): ...

    general_beam_search(TableModel(language), sources([A]), wanted, listener=Chosen())
    assert chosen[:3] == [(0, A), (1, A), (2, B)]


def test_every_bank_keeps_its_share_of_the_beam_and_the_best_take_the_rest():
    """One required token, so two banks of a beam of 4: two hypotheses each, whatever their rank."""
    required = RequiredPhrases((((A,),),), frozenset())
    lacking, holding = [(B,), (C,), (7,)], [(B, A), (C, A), (7, A)]
    verdicts = divide_beam([*lacking, *holding], 4, required, 9)
    going = [rank for rank, (verdict, _) in enumerate(verdicts) if verdict == "goes on"]
    assert going == [0, 1, 3, 4]
    # a share that a bank does not need goes to the best of the others
    verdicts = divide_beam([*lacking, *holding[:1]], 4, required, 9)
    assert [verdict for verdict, _ in verdicts] == ["goes on"] * 4
    # with less than one for each bank those that need the fewest tokens go first
    verdicts = divide_beam([*lacking, *holding], 1, required, 9)
    assert [rank for rank, (verdict, _) in enumerate(verdicts) if verdict == "goes on"] == [3]


def test_groups_do_not_change_their_neighbors():
    model = TableModel(random_language(2))
    wanted = settings(beam_size=4, diverse_groups=2, n_best=4, max_length=5)
    together = general_beam_search(model, BATCH, wanted)
    for row, found in zip(BATCH, together, strict=True):
        assert general_beam_search(model, row[None, row > 0], wanted) == [found]


def contains(ids: tuple[int, ...], phrase: tuple[int, ...]) -> bool:
    return any(ids[p : p + len(phrase)] == phrase for p in range(len(ids)))


def alone(phrases):
    """Each phrase as a group of its own."""
    return tuple((phrase,) for phrase in phrases)


GROUPS = [(((B,), (A, B)),), (((A, B), (C, C)), ((B,),)), (((C, A, B), (A,)), ((C, C), (B, A)))]


@pytest.mark.parametrize("groups", GROUPS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_of_alternatives_one_suffices_and_the_best_sentence_with_one_is_found(seed, groups):
    model = TableModel(random_language(seed))
    wanted = settings(beam_size=400, max_length=5, patience=math.inf)
    [[found]] = general_beam_search(model, sources([A]), wanted, Constraints(required=(groups,)))
    ranked = every_sentence(random_language(seed), (A, EOS_ID), 5, alpha=0.6)
    fits = [
        ids for _, ids in ranked if all(any(contains(ids, p) for p in group) for group in groups)
    ]
    assert found.ids == fits[0]


@pytest.mark.parametrize("beam_size", [1, 2, 8])
def test_no_beam_is_too_narrow_for_alternatives(beam_size):
    model = TableModel(random_language(9))
    for groups in GROUPS:
        wanted = settings(beam_size=beam_size, max_length=8)
        found = general_beam_search(model, BATCH, wanted, Constraints(required=(groups,) * 16))
        for [hypothesis] in found:
            assert all(any(contains(hypothesis.ids, p) for p in group) for group in groups)


PHRASES = [((B,),), ((A, B),), ((B,), (C, C)), ((A, B), (B, A)), ((C, A, B),)]


@pytest.mark.parametrize("phrases", PHRASES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_sentence_that_holds_every_word(seed, phrases):
    model = TableModel(random_language(seed))
    wanted = settings(beam_size=400, max_length=5, patience=math.inf)
    [[found]] = general_beam_search(
        model, sources([A]), wanted, Constraints(required=(alone(phrases),))
    )
    ranked = every_sentence(random_language(seed), (A, EOS_ID), 5, alpha=0.6)
    fits = [ids for _, ids in ranked if all(contains(ids, phrase) for phrase in phrases)]
    assert found.ids == fits[0]


@pytest.mark.parametrize("beam_size", [1, 2, pytest.param(3, marks=pytest.mark.nightly), 8])
@pytest.mark.parametrize("phrases", PHRASES, ids=str)
def test_no_beam_is_too_narrow_for_its_required_phrases(beam_size, phrases):
    """Even where there is room for nothing else; each sentence has constraints of its own."""
    model = TableModel(random_language(9))
    room = sum(map(len, phrases))
    constraints = Constraints(required=(alone(phrases), ()) * 8)
    for longest in (room, 8):
        wanted = settings(beam_size=beam_size, n_best=beam_size, max_length=longest)
        found = general_beam_search(model, BATCH, wanted, constraints)
        free = general_beam_search(model, BATCH, wanted)
        for row, hypotheses in enumerate(found):
            for hypothesis in hypotheses:
                assert all(contains(hypothesis.ids, p) for [p] in constraints.required[row])
            if row % 2:
                assert hypotheses == free[row]


def test_a_phrase_inside_another_needs_no_tokens_of_its_own():
    """A B C holds B, whichever of the two is asked for first; alone B needs one token."""
    for phrases in (((A, B, C), (B,)), ((B,), (A, B, C))):
        assert RequiredPhrases(alone(phrases), frozenset()).left(()) == 3
    assert RequiredPhrases(alone(((B,),)), frozenset()).left((A,)) == 1


def test_the_longest_translation_allowed_is_a_reason_of_its_own():
    root = Node(number=0, ids=(), log_probs=(), total=0.0, row=0, parent_row=0)
    group = Group(0, 2, [root])
    assert group.reason_to_leave(settings(beam_size=2), limit=3, length=2) == ""
    reason = group.reason_to_leave(settings(beam_size=2), limit=3, length=3)
    assert reason == "the longest translation allowed was reached"


def test_a_word_must_end_where_it_ends():
    """C goes on with the word before it: « B C » does not hold the word B, « C B » does."""
    model = TableModel(lambda source, prefix: {A: 0.1, B: 0.3, C: 0.5, EOS_ID: 0.1})
    constraints = Constraints(required=(alone(((B,),)),), continues_word=frozenset({C}))
    [found] = general_beam_search(
        model, sources([A]), settings(beam_size=60, n_best=20, max_length=3), constraints
    )
    assert len(found) == 20
    for hypothesis in found:
        followers = zip(hypothesis.ids, (*hypothesis.ids[1:], EOS_ID), strict=True)
        assert any(token == B and following != C for token, following in followers)


def test_a_prefix_counts_towards_the_required_phrases():
    model = TableModel(random_language(0))
    constraints = Constraints(prefixes=((A, B),), required=(alone(((B, C), (A,))),))
    [[found]] = general_beam_search(model, sources([A]), settings(max_length=3), constraints)
    assert found.ids == (A, B, C)
    with pytest.raises(ConfigError, match="must fit into 2 tokens, got 1 after a prefix of 2"):
        general_beam_search(model, sources([A]), settings(max_length=2), constraints)
    with pytest.raises(ConfigError, match=r"must fit into 2 tokens, got 3$"):
        general_beam_search(
            model,
            sources([A]),
            settings(max_length=2),
            Constraints(required=(alone(((A, B, C),)),)),
        )


def test_a_phrase_that_the_model_cannot_generate_is_refused():
    model = TableModel(lambda source, prefix: {A: 0.5, EOS_ID: 0.5})
    with pytest.raises(PellucidError, match="rule out every token"):
        general_beam_search(
            model, sources([A]), settings(max_length=3), Constraints(required=(alone(((B,),)),))
        )


def test_a_watcher_may_end_it():
    class Impatient:
        needs_steps = False

        def before_step(self, length: int) -> None:
            if length == 2:
                raise CancelledError("enough")

        def saw_step(self, step: object) -> None:
            raise AssertionError

    model = TableModel(random_language(0))
    with pytest.raises(CancelledError, match="enough"):
        general_beam_search(
            model, BATCH, settings(max_length=5, min_length=5), Constraints(), Impatient()
        )
    small = Translator(small_bundle(), settings(beam_size=2, max_length=5, min_length=5))
    for asked in (small.settings, settings(beam_size=2, must=("chat",), min_length=5)):
        with pytest.raises(CancelledError, match="enough"):
            small.translate("un", asked, watcher=Impatient())


@pytest.mark.parametrize("kind", ["bpe", "word", "wordpiece", "character"])
def test_words_that_must_appear_do_so_in_the_text(kind):
    """With every tokenizer, the phrase stands in the text as words of their own."""
    bundle = small_bundle(kind=kind)
    wanted = settings(beam_size=6, max_length=26, must=("chat noir",))
    texts = ["un", Request("il pleut", must=("train",))]
    for text, found in zip(texts, Translator(bundle, wanted).translate(texts), strict=True):
        own = text.must if isinstance(text, Request) else ()
        for phrase in ("chat noir", *own):
            assert phrase in found.text
            after = found.text[found.text.index(phrase) + len(phrase) :][:1]
            assert kind == "character" or not after.isalnum()


def test_the_settings_choose_the_search(monkeypatch):
    calls = []
    for name, search in (
        ("greedy_search", greedy_search),
        ("beam_search", beam_search),
        ("general_beam_search", general_beam_search),
    ):

        def noted(*arguments, name=name, search=search):
            calls.append(name)
            return search(*arguments)

        monkeypatch.setattr(f"pellucid.decoding.search.search.{name}", noted)
    small = Translator(small_bundle(), settings(max_length=3, beam_size=4))
    small.translate("un", beam_size=1)
    small.translate("un")
    small.translate("un", small.settings.changed({"diverse_groups": 2}))
    small.translate(Request("un", must=("chat",)), small.settings.changed({"max_length": 12}))
    assert calls == ["greedy_search", "beam_search", "general_beam_search", "general_beam_search"]


def test_a_listener_can_follow_every_candidate_back_to_the_root():
    """The root is number 0; each candidate continues it or one that was considered before."""
    numbers: list[tuple[int, int]] = []

    class Parents:
        def considered(self, sentence, group, candidates):
            known = {number for number, _ in numbers} | {0}
            assert all(each.node.parent in known for each in candidates)
            numbers.extend((each.node.number, each.node.parent) for each in candidates)

        def expanded(self, sentence, group, expansion):
            assert [node.number for node in expansion.live if not node.ids] in ([], [0])

        def left(self, sentence, group, live, reason):
            assert {node.number for node in live} <= {number for number, _ in numbers}

    model = TableModel(random_language(6))
    wanted = settings(beam_size=3, min_length=4, max_length=4)
    general_beam_search(model, sources([A]), wanted, listener=Parents())
    assert [number for number, _ in numbers] == list(range(1, len(numbers) + 1))
    assert {parent for _, parent in numbers[:3]} == {0}
    assert len({parent for _, parent in numbers}) > 3


def test_what_two_groups_find_is_returned_once():
    """Without diversity both groups find the same two sentences."""
    settings = DecodingConfig.parse(
        {"beam_size": 4, "n_best": 4, "diverse_groups": 2, "diversity_strength": 1e-9}
    )
    [found] = general_beam_search(TableModel(toy), sources([A]), settings)
    assert len({each.ids for each in found}) == len(found) >= 2
