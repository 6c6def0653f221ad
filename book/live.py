"""A page with a small model at work: trained on the phrasebook, one file under 1.5 MB.

The same machine writes the same bytes each time: the seed, one thread and float32 decide them, and
no clock does. Another kind of processor or another version of PyTorch rounds its sums otherwise and
gets another model of the same quality. The page is kept in ``docs``; what is code in it is written
again without training by ``remake_page``.
"""

from collections.abc import Sequence
from pathlib import Path

from pellucid.backends.load import load
from pellucid.backends.web.export import make_page
from pellucid.bundle import load_bundle
from pellucid.core.errors import ConfigError
from pellucid.core.files import write_user_file
from pellucid.inspection.film import film
from pellucid.training.presets import read_config
from pellucid.training.train import train

PAGE = Path(__file__).parents[1] / "docs" / "live.html"
MOST_BYTES = 1_500_000
"""The size of a page that opens at once on a phone."""
EXAMPLE = "je vois un chat noir"
"""Its translation is short and crosses: *chat noir* becomes *black cat*."""
FRAMES = 20
"""The models of the film: from the first numbers, which say nothing, to the trained ones."""
_FILM_BYTES = 700_000
"""Before the film is packed, to a third: what the model leaves of the page's size."""
SETTINGS = (
    # whole words as tokens, so that a row is a word, and positions of the paper, which are added
    "phrasebook.style=plain",
    "tokenizer.vocabulary_size=1200",
    "model.positions=sinusoidal",
    "model.d_model=96",
    "model.d_ff=192",
    "training.film_every=10",
    # the same numbers on each run of one machine, whatever else it does
    "training.precision=fp32",
    "training.threads=1",
)
"""Differences from the preset ``demo``, whose page is larger and has rows of pieces."""


def train_live(run: Path, settings: Sequence[str] = SETTINGS) -> None:
    """Train the model into the run folder ``run``, or go on with it."""
    train(read_config("demo", settings), run, resume=run.exists())


def write_live(run: Path, out: Path, most_bytes: int = MOST_BYTES) -> int:
    """Write the page of the run's best model; return its size.

    Raises ConfigError if it is larger than ``most_bytes``, WriteError, and what ``load_bundle``
    and ``film`` raise.
    """
    frames = film(run, EXAMPLE, most=FRAMES)
    bundle = load_bundle(run)
    page = make_page(
        bundle, "int8", name="demo", example=EXAMPLE, film=frames, film_budget=_FILM_BYTES
    ).encode()
    if len(page) > most_bytes:
        raise ConfigError(
            f"the page must have at most {most_bytes:,} bytes, got {len(page):,}",
            hint="train a narrower model: see SETTINGS in book/live.py",
        )
    write_user_file(out, page)
    return len(page)


def translated(run: Path) -> str:
    """The model's translation of the example."""
    return load(run, "torch").translate([EXAMPLE])[0].text
