import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.decoding.search.candidates import best_candidates, best_continuations, first_largest


def in_full(totals: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = totals.sort(dim=1, descending=True, stable=True)
    return values[:, :count], places[:, :count]


@settings(deadline=None, max_examples=25)  # how long it takes is for the benchmarks
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 4),
    width=st.integers(1, 2000),
    count=st.integers(1, 12),
    levels=st.sampled_from([2, 5, 100, 10_000_000]),
)
def test_the_few_best_are_those_of_a_full_stable_sort(seed, rows, width, count, levels):
    """Few levels give ties everywhere, many give none; widths on both sides of a block."""
    generator = torch.Generator().manual_seed(seed)
    totals = -torch.randint(levels, (rows, width), generator=generator).double()
    values, places = best_candidates(totals, count)
    expected_values, expected_places = in_full(totals, count)
    assert torch.equal(values, expected_values)
    assert torch.equal(places, expected_places)


def test_the_best_may_each_lie_in_another_block():
    """Every 100th of 5,000 candidates is large, and the larger the further back."""
    totals = torch.zeros(1, 5000)
    totals[0, ::100] = torch.arange(1.0, 51.0)
    values, places = best_candidates(totals, 20)
    assert values[0].tolist() == [50.0 - rank for rank in range(20)]
    assert places[0].tolist() == [4900 - 100 * rank for rank in range(20)]


@pytest.mark.parametrize("step", [1, -1])
def test_a_tie_for_the_last_place_goes_to_the_first(step):
    """Nineteen are larger, thirty-one are tied, each in a block of its own."""
    totals = torch.zeros(1, 5000)
    totals[0, ::100] = torch.cat([torch.arange(20.0, 1.0, -1.0), torch.ones(31)])
    totals = totals if step == 1 else totals.flip(1)
    _, places = best_candidates(totals, 20)
    assert places[0, 19].item() == (1900 if step == 1 else 99)


def test_all_equal_gives_the_first():
    values, places = best_candidates(torch.zeros(2, 1000), 5)
    assert places.tolist() == [[0, 1, 2, 3, 4]] * 2
    assert values.tolist() == [[0.0] * 5] * 2


def test_ruled_out_candidates_come_last_with_places_that_exist():
    totals = torch.full((1, 500), -torch.inf)
    totals[0, 400], totals[0, 30] = -2.0, -2.0
    values, places = best_candidates(totals, 4)
    assert values[0].tolist() == [-2.0, -2.0, -torch.inf, -torch.inf]
    assert places[0, :2].tolist() == [30, 400]
    assert len(set(places[0].tolist())) == 4


@pytest.mark.parametrize("width", [8, 500])
def test_nan_does_not_stop_the_sort(width):
    totals = torch.zeros(1, width)
    totals[0, 3] = torch.nan
    values, _ = best_candidates(totals, 3)
    assert values[0].isnan().tolist() == [True, False, False]


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    beams=st.integers(1, 4),
    width=st.integers(1, 500),
    count=st.integers(1, 12),
    levels=st.sampled_from([2, 5, 100, 10_000_000]),
)
def test_the_best_continuations_are_those_of_a_full_stable_sort_of_all_sums(
    seed, beams, width, count, levels
):
    """In float32, where different numbers may have equal sums; some beams are no hypothesis."""
    generator = torch.Generator().manual_seed(seed)
    log_probs = -torch.randint(levels, (3, beams, width), generator=generator).float() / 64
    so_far = -torch.randint(5, (3, beams), generator=generator).float() * 1e5 / 3
    so_far[0, 1:] = -torch.inf
    values, places = best_continuations(log_probs, so_far, count)
    expected_values, expected_places = in_full((log_probs + so_far[:, :, None]).flatten(1), count)
    assert torch.equal(values, expected_values)
    possible = values > -torch.inf
    assert torch.equal(places[possible], expected_places[possible])


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    width=st.sampled_from([1, 63, 64, 100, 128, 640]),
    levels=st.sampled_from([1, 3, 10_000_000]),
    odd=st.sampled_from([0.0, -torch.inf, torch.nan]),
)
def test_the_first_largest_is_that_of_argmax(seed, width, levels, odd):
    generator = torch.Generator().manual_seed(seed)
    values = -torch.randint(levels, (5, 2, width), generator=generator).float()
    values[torch.rand(values.shape, generator=generator) < 0.05] = odd
    values[0] = -torch.inf
    assert torch.equal(first_largest(values), values.argmax(dim=-1))
