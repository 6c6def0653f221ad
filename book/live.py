"""A page with a small model at work: trained on the phrasebook, one file under 1.5 MB.

The same machine writes the same bytes each time: the seed, one thread and float32 decide them, and
no clock does. Another machine rounds its sums otherwise and gets another model of the same quality.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from pellucid.backends.load import load
from pellucid.backends.web.export import make_page
from pellucid.bundle import load_bundle
from pellucid.core.errors import ConfigError
from pellucid.core.files import write_user_file
from pellucid.training.presets import read_config
from pellucid.training.train import train

MOST_BYTES = 1_500_000
"""The size of a page that opens at once on a phone."""
EXAMPLE = "un chat noir"
"""Its translation is short and crosses: the second word of one side is the third of the other."""
SETTINGS = (
    "tokenizer.vocabulary_size=1000",
    "model.d_model=96",
    "model.d_ff=192",
    # the same numbers on each run of one machine, whatever else it does
    "training.precision=fp32",
)
"""The differences from the preset ``demo``, whose page would have two megabytes."""


def train_live(run: Path, settings: Sequence[str] = SETTINGS) -> None:
    """Train the model into the run folder ``run``, or go on with it. Sets one thread."""
    torch.set_num_threads(1)
    train(read_config("demo", settings), run, resume=run.exists())


def write_live(run: Path, out: Path, most_bytes: int = MOST_BYTES) -> int:
    """Write the page of the run's best model; return its size.

    Raises ConfigError if it is larger than ``most_bytes``, WriteError, and what ``load_bundle``
    raises.
    """
    page = make_page(load_bundle(run), "int8", name="demo", example=EXAMPLE).encode()
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
