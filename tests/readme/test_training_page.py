"""Every command of docs/training.md works as typed, in the order it is given (only smaller)."""

import re
import shlex
from pathlib import Path

import pytest
from commands import pellucid
from tiny_runs import set_options

from pellucid import phrasebook

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
SMALLER = [
    "training.max_steps=2",
    "training.batch_tokens=256",
    "training.validate_every=2",
    "decoding.max_length_extra=4",
]
SMALLER_MODEL = [
    "model.d_model=16",
    "model.d_ff=16",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "tokenizer.kind=word",
]


def commands() -> list[list[str]]:
    """The arguments of every ``pellucid`` in the page's blocks, continued lines joined."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    lines = (
        "".join(block for language, block in blocks if not language)
        .replace("\\\n", " ")
        .splitlines()
    )
    return [shlex.split(line)[1:] for line in lines if line.startswith("pellucid ")]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training page")
    splits = phrasebook.split(200, 6, seed=0)
    parts = {"train": splits.train, "valid": splits.valid, "test": splits.test, "my": splits.train}
    for name, pairs in parts.items():
        (folder / f"{name}.en").write_text("".join(f"{pair.source}\n" for pair in pairs))
        (folder / f"{name}.de").write_text("".join(f"{pair.target}\n" for pair in pairs))
        (folder / f"{name}.links").write_text("0-0\n" * len(pairs))
    return folder


def test_every_command_works_in_the_order_it_is_given(workplace: Path):
    found = commands()
    assert {"check", "train", "evaluate", "runs", "plot"} <= {command[0] for command in found}
    assert [command for command in found if "--resume" in command]
    for command in found:
        if command[0] == "train":
            model = [] if "--init" in command else SMALLER_MODEL
            steps = ["training.max_steps=3"] if "--resume" in command else []
            # the only layer there is
            layer = [each for each in command if each.startswith("decoding.align_layer")]
            steps += [f"{each.partition('=')[0]}=0" for each in layer]
            command = [*command, *set_options([*SMALLER, *model, *steps])]
        elif command[0] == "recombine":
            command = [*command, "--lines", "20"]
        result = pellucid(*command, folder=workplace)
        assert result.code == 0, (command, result.err)
