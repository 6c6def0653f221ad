"""The one place that chooses a search by the settings."""

from jaxtyping import Int
from torch import Tensor

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.constraints import Demands
from pellucid.decoding.search.greedy import greedy_search, sample
from pellucid.decoding.search.model import MemoryT, Searchable
from pellucid.decoding.search.open_beam import open_beam_search
from pellucid.decoding.search.recompute import Recomputing, repredict_search


def search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    demands: Demands,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, best first. Raises as the searches and the watcher do."""
    if settings.repredict:
        anew = Recomputing(model, mask_at_inference=settings.mask_at_inference)
        return [[only] for only in repredict_search(anew, source, settings, watcher)]

    if not settings.use_cache:
        slow = Recomputing(model, mask_at_inference=settings.mask_at_inference)
        cached_settings = settings.changed({"use_cache": True, "mask_at_inference": True})
        return search(slow, source, cached_settings, demands, watcher)

    if settings.sampling is not None:
        return sample(model, source, settings, settings.sampling, demands, watcher)
    if settings.diverse_groups > 1 or any(demands.musts):
        return open_beam_search(model, source, settings, demands, watcher)
    if settings.beam_size == 1:  # the same result, faster
        return [[best] for best in greedy_search(model, source, settings, demands, watcher)]
    return beam_search(model, source, settings, demands, watcher)
