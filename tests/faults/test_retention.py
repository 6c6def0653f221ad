"""T9: there is never fewer than one intact checkpoint, nor is the best bundle ever lost."""

from typing import Any

from hypothesis import example, given, settings
from retention_stories import stories, tell


@given(stories)
@example((2, [("save", None), ("harm", 0, 0), ("save", None)])).via("a damaged one does not count")
@example((1, [("keep_bundle", None, 5), ("keep_bundle", None, 1)])).via("the latest stays")
@example((1, [("find_good",), ("save", None), ("save", None)])).via("so does the good one")
@settings(max_examples=8, deadline=None, derandomize=True)
def test_whatever_comes_between_saves_an_intact_checkpoint_and_the_best_bundle_are_left(
    story: tuple[int, list[tuple[Any, ...]]],
):
    """A thousand such stories were tried (``benchmarks/results/retention.md``)."""
    tell(story)
