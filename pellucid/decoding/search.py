"""Which search answers what was asked: the one place where that is chosen."""

from jaxtyping import Int
from torch import Tensor

from pellucid.decoding.beam import beam_search
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.constraints import Demands
from pellucid.decoding.greedy import greedy_search
from pellucid.decoding.open_beam import open_beam_search
from pellucid.decoding.protocols import MemoryT, Searchable
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.sampling import sample
from pellucid.decoding.watch import SearchWatcher


def search(
    model: Searchable[MemoryT],
    source: Int[Tensor, "sentence source"],
    settings: DecodingConfig,
    demands: Demands,
    watcher: SearchWatcher | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, best first. Raises as the searches and the watcher do."""
    if settings.sampling is not None:
        return sample(model, source, settings, settings.sampling, demands, watcher)
    if settings.diverse_groups > 1 or any(demands.musts):
        return open_beam_search(model, source, settings, demands, watcher)
    if settings.beam_size == 1:  # the same answer, sooner
        return [[best] for best in greedy_search(model, source, settings, demands, watcher)]
    return beam_search(model, source, settings, demands, watcher)
