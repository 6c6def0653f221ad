"""A watcher sees every step of a search, and can end it."""

import dataclasses

import pytest
import torch
from table_models import A, B, TableModel, random_language, sources, toy

from pellucid.core.errors import CancelledError
from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig, SamplingConfig
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.candidates import NO_CONSTRAINTS, WatchedStep
from pellucid.decoding.search.greedy import greedy_search, sample


@dataclasses.dataclass
class Watcher:
    """Keeps what it is told; has enough after ``patience`` steps."""

    patience: int = 1000
    needs_steps: bool = True
    lengths: list[int] = dataclasses.field(default_factory=list)
    steps: list[WatchedStep] = dataclasses.field(default_factory=list)

    def before_step(self, length: int) -> None:
        self.lengths.append(length)
        if len(self.lengths) > self.patience:
            raise CancelledError("enough")

    def saw_step(self, step: WatchedStep) -> None:
        self.steps.append(step)


def settings(**changes) -> DecodingConfig:
    return DecodingConfig.parse({"length_penalty": 0.0, "max_length": 6, **changes})


def draw(model, source, wanted, constraints, watcher):
    return sample(model, source, wanted, SamplingConfig(seed=1), constraints, watcher)


@pytest.mark.parametrize("search", [greedy_search, beam_search, draw])
def test_a_search_can_be_ended_before_any_step(search):
    model = TableModel(toy)
    watcher = Watcher(patience=1)
    with pytest.raises(CancelledError, match="enough") as error:
        search(model, sources([A]), settings(), NO_CONSTRAINTS, watcher)
    assert error.value.exit_code == 130
    assert model.rows_asked == [1]  # the second step was never made
    assert watcher.lengths == [0, 1]
    assert len(watcher.steps) == 1


@pytest.mark.parametrize("search", [greedy_search, beam_search, draw])
def test_watching_changes_nothing_and_unwanted_steps_are_not_told(search):
    batch = sources(*[[4 + n] for n in range(8)])
    found = []
    for watcher in (None, Watcher(), Watcher(needs_steps=False)):
        model = TableModel(random_language(3))
        found.append(search(model, batch, settings(n_best=2), NO_CONSTRAINTS, watcher))
        if watcher is not None:
            assert len(watcher.lengths) == len(model.rows_asked)
            assert watcher.lengths == list(range(len(model.rows_asked)))
            assert len(watcher.steps) == (len(watcher.lengths) if watcher.needs_steps else 0)
    assert found[0] == found[1] == found[2]


@pytest.mark.by_hand
def test_what_two_beams_consider_finish_and_keep_in_the_toy_language():
    """EQ-127: after A .6, B .4 come (B, stop) .36, (A, stop) .24, (A, A) and (A, B) .18."""
    watcher = Watcher()
    beam_search(TableModel(toy), sources([A]), settings(beam_size=2), NO_CONSTRAINTS, watcher)
    first, second = watcher.steps
    assert first.candidates.id[0, :2].tolist() == [A, B]
    assert first.goes_on[0].tolist() == [True, True, False, False]
    assert not first.finishes.any()
    assert first.done == (False,)
    assert (second.length, second.beam_count, second.sentences) == (1, 2, (0,))
    assert second.candidates.id.tolist() == [[EOS_ID, EOS_ID, A, B]]
    assert second.candidates.row.tolist() == [[1, 0, 0, 0]]
    expected = torch.tensor([[0.36, 0.24, 0.18, 0.18]], dtype=torch.float64)
    torch.testing.assert_close(second.candidates.total.exp(), expected)
    torch.testing.assert_close(second.candidates.log_prob.exp()[0, 0].item(), 0.9)
    assert second.finishes.tolist() == [[True, True, False, False]]
    assert second.goes_on.tolist() == [[False, False, True, True]]
    assert second.done == (True,)


def test_the_rows_of_the_steps_lead_back_to_every_finished_hypothesis():
    """Candidates that go on are numbered as the next step says, sentences that leave included."""
    batch = sources(*[[4 + n] for n in range(6)])
    watcher = Watcher()
    wanted = settings(beam_size=3, n_best=3)
    found = beam_search(TableModel(random_language(2)), batch, wanted, NO_CONSTRAINTS, watcher)
    words: dict[tuple[int, int], tuple[int, ...]] = {(s, 0): () for s in range(6)}
    finished: list[set[tuple[int, ...]]] = [set() for _ in range(6)]
    for step in watcher.steps:
        following = {}
        for place, sentence in enumerate(step.sentences):
            beam = 0
            for candidate in range(step.candidates.id.shape[1]):
                parent = step.candidates.row[place, candidate].item() - place * step.beam_count
                said = words[sentence, parent]
                if step.finishes[place, candidate]:
                    finished[sentence].add(said)
                if step.goes_on[place, candidate]:
                    following[sentence, beam] = (*said, step.candidates.id[place, candidate].item())
                    beam += 1
        words = following
    for hypotheses, seen in zip(found, finished, strict=True):
        assert {h.ids for h in hypotheses} <= seen
    assert any(len(step.sentences) < 6 for step in watcher.steps)


def test_greedy_search_tells_the_token_it_chose():
    watcher = Watcher()
    greedy_search(TableModel(toy), sources([A]), settings(), NO_CONSTRAINTS, watcher)
    assert [step.candidates.id.tolist() for step in watcher.steps] == [[[A]], [[EOS_ID]]]
    assert watcher.steps[1].candidates.total.exp().item() == pytest.approx(0.24)
    assert [step.done for step in watcher.steps] == [(False,), (True,)]
    assert watcher.steps[1].finishes.item()
