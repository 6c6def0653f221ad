"""``pellucid translate`` as one of the processes of ``torchrun``."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING

import click

from pellucid.core.errors import InputMissingError

if TYPE_CHECKING:
    from pellucid.decoding.requests import Request
    from pellucid.decoding.result import Translation
    from pellucid.decoding.translator import Translator


def shard_of_run(file: str, *, explains: bool) -> bool:
    """Whether this process is one of several.

    Raises InputMissingError if they are to read what only one of them can, ConfigError if the
    environment makes no sense, click.UsageError for what a shard cannot do.
    """
    from pellucid.core.world import world_of_environment

    if world_of_environment().is_alone:
        return False
    if file == "-":
        raise InputMissingError(
            "under torchrun each process reads the input itself, and standard input is one's alone",
            hint="name a file",
        )
    if explains:
        raise click.UsageError("--explain-search is for one process, not for torchrun.")
    return True


def write_shards(
    translator: "Translator",
    lines: "Iterable[str | Request]",
    render: "Callable[[int, Translation], bytes]",
    opened: Callable[[], AbstractContextManager[IO[bytes]]],
) -> None:
    """Translate this process's share; the first one writes everything, in order."""
    from pellucid.core.world import joined, world_of_environment
    from pellucid.engines.sharding import in_order

    beginning = world_of_environment()
    block_size = max(1, translator.settings.stream_lines // beginning.size)

    def work(first: int, block: "Sequence[str | Request]") -> bytes:
        found = translator.translate(list(block))
        return b"".join(render(first + index, each) for index, each in enumerate(found))

    with joined(beginning) as world:
        blocks = in_order(world, lines, block_size, work)
        if world.is_first:
            with opened() as out:
                out.writelines(blocks)
        else:
            logging.getLogger("pellucid").setLevel(logging.WARNING)
            for _ in blocks:
                pass
