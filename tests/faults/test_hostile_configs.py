"""S: whatever a bundle's config.toml asks for, opening it and a short line stay within bounds."""

import json
import math
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from fuzz import tiny_bundle
from limited import MOST_BYTES, run_limited
from sealing import reseal

from pellucid.backends.load import load
from pellucid.bundle import save_bundle
from pellucid.core.errors import BundleError, ConfigError, CorruptError
from pellucid.core.files import manifest_text
from pellucid.training.presets import read_config

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 12345\n"
)
Spoil = Callable[[str], str]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To be copied."""
    path = tmp_path_factory.mktemp("hostile") / "bundle"
    save_bundle(path, tiny_bundle(), card="", details={"step": 1, "score": 1.0})
    load(path, "torch").translate("un chat")  # what a first use imports is not the config's doing
    return path


def with_values(section: str, **values: Any) -> Spoil:
    def spoil(text: str) -> str:
        table = tomllib.loads(text)
        return tomli_w.dumps({**table, section: {**table[section], **values}})

    return spoil


def with_line(line: str) -> Spoil:
    return lambda text: f"{text}{line}\n"


def dotted(count: int) -> str:
    return f"{'a.' * count}a = 1"


LARGEST = r"cannot read .*config\.toml: it has more than 1,048,576 bytes"
REFUSED: dict[str, tuple[Spoil, str]] = {
    "20,000 dotted parts": (with_line(dotted(20_000)), "must have at most 10 levels, has 20,0"),
    "100,000 dotted parts": (with_line(dotted(100_000)), "must have at most 10 levels, has 100,0"),
    "20,000 keys": (
        with_line("\n".join(f"key{number} = 1" for number in range(20_000))),
        r"config\.toml must have at most 2,000 settings, has 20,0",
    ),
    "dotted behind a string": (
        with_line(f"'#' = '''[''' # ]\n{dotted(20_000)}"),
        "must have at most 10 levels",
    ),
    "200,000 lists in one another": (
        with_line("x = " + "[" * 200_000 + "]" * 200_000),
        "must have at most 10 levels, has 200,000",
    ),
    "5 million numbers": (with_line(f"must = [{'1,' * 5_000_000}]"), LARGEST),
    "500,000 numbers": (
        with_line(f"must = [{'1,' * 500_000}]"),
        "must have lists of at most 20,000 values in all, has 500,",
    ),
    "19,000 wrong numbers": (
        with_line(f"must = [{'1,' * 19_000}]"),
        r"must\.0: input should be a valid string, got 1; .*; and 18,?98\d more",
    ),
    "a comment of 200 MB": (lambda text: f"#{'#' * 200_000_000}\n{text}", LARGEST),
    "a name of 900,000 characters": (
        with_line(f"'{'x' * 900_000}' = 1"),
        f"{'x' * 60} is not a setting",
    ),
    "a number of 4,000 digits": (
        with_line(f"n_best = {'9' * 4000}"),
        r"decoding: .*got a number of 13,288 bits",
    ),
    "100,000 required phrases": (with_values("decoding", must=["chat"] * 100_000), LARGEST),
    "20,000 banned phrases": (
        with_values("decoding", banned=["chat"] * 20_000),
        "decoding: banned must have at most 10000 phrases, got 20,000",
    ),
    "a long banned phrase": (
        with_values("decoding", banned=["chat " * 20_000]),
        "decoding: a phrase must have at most 1000 characters, got 100,000",
    ),
    "a phrase longer than a model may bring": (
        with_values("decoding", banned=["chat " * 100]),
        "decoding: a phrase must have at most 100 characters, got 500 in the settings of a model",
    ),
    "a beam of 10,000": (
        with_values("decoding", beam_size=10_000),
        "decoding: beam_size must be at most 64, got 10000 in the settings of a model",
    ),
    "131,072 tokens": (
        with_values("decoding", max_length=131_072, min_length=131_072),
        "max_length must be at most 1024, got 131072 .*; min_length must be at most 512, got",
    ),
    "10,000 samples": (
        with_values("decoding", sampling={}, n_best=10_000),
        "decoding: n_best must be at most 64, got 10000 in the settings of a model",
    ),
    "the best of 10,000": (
        with_values("decoding", mbr=True, beam_size=10_000),
        "decoding: beam_size must be at most 64",
    ),
    "10,000 groups": (
        with_values("decoding", diverse_groups=10_000, beam_size=10_000),
        "decoding: beam_size must be at most 64, .*diverse_groups must be at most 16",
    ),
    "much of all that is allowed": (
        with_values("decoding", beam_size=64, max_length=1024),
        r"beam_size \(or n_best\) times the longest translation of a line of 32 tokens must be at"
        r" most 8,192, got 64 times 1,024 in the settings of a model",
    ),
    "a length penalty of 1e308": (
        with_values("decoding", length_penalty=1e308),
        r"decoding: length_penalty must be at most 6, got 1e\+308",
    ),
    "a length penalty of -1e308": (
        with_values("decoding", length_penalty=-1e308),
        r"decoding: length_penalty must be at least -6, got -1e\+308",
    ),
    "an infinite norm_eps": (
        with_values("model", norm_eps=math.inf),
        "model: norm_eps: input should be a finite number, got inf",
    ),
    "a norm_eps that leaves nothing": (
        with_values("model", norm_eps=1e30),
        r"model: norm_eps: input should be less than or equal to 1, got 1e\+30",
    ),
    "a temperature near zero": (
        with_values("decoding", sampling={"temperature": 1e-300}),
        "temperature must be from 1e-09 to 1e\\+09, got 1e-300",
    ),
    "a seed no generator takes": (
        with_values("decoding", sampling={"seed": 2**63}),
        r"seed must be at least 0 and below 2\^63, got 9223372036854775808",
    ),
}

ALLOWED: dict[str, Spoil] = {
    "the widest beam": with_values("decoding", beam_size=64, max_length=128, min_length=128),
    "the longest translation": with_values("decoding", beam_size=4, max_length=1024),
    "the best of 64 samples": with_values(
        "decoding", beam_size=64, mbr=True, sampling={}, max_length=128, min_length=128
    ),
    "16 groups": with_values("decoding", beam_size=64, diverse_groups=16, max_length=128),
    "required phrases": with_values(
        "decoding", must=[f"chat dort {number} " * 8 for number in range(4)], max_length=128
    ),
    "1,000 banned phrases": with_values(
        "decoding", banned=[f"chat {number} table " * 6 for number in range(1000)], max_length=100
    ),
    "no cache": with_values("decoding", use_cache=False, beam_size=4, max_length=256),
}


def spoilt(bundle: Path, spoil: Spoil, folder: Path) -> Path:
    """A copy of the bundle whose manifest vouches for the spoilt config."""
    copy = shutil.copytree(bundle, folder / "bundle")
    config = copy / "config.toml"
    config.write_text(spoil(config.read_text()))
    reseal(copy)
    return copy


@pytest.mark.parametrize("name", REFUSED)
def test_an_absurd_config_is_refused_by_name_in_bounds(name: str, bundle: Path, tmp_path: Path):
    spoil, message = REFUSED[name]
    folder = spoilt(bundle, spoil, tmp_path)
    outcome = run_limited(lambda: load(folder, "torch").translate("un chat"))
    assert outcome.is_ours, outcome
    assert outcome.is_bounded, outcome
    assert len(outcome.message) <= 2000
    assert re.search(message, outcome.message), outcome.message


MOST_WORK = {"the widest beam", "required phrases", "1,000 banned phrases"}


@pytest.mark.parametrize(
    "name",
    [
        name if name in MOST_WORK else pytest.param(name, marks=pytest.mark.nightly)
        for name in ALLOWED
    ],
)
def test_the_most_a_model_may_ask_for_stays_in_bounds(name: str, bundle: Path, tmp_path: Path):
    folder = spoilt(bundle, ALLOWED[name], tmp_path)
    outcome = run_limited(lambda: load(folder, "torch").translate("un chat"))
    assert outcome.error == "" or outcome.is_ours, outcome  # else it was ended as endless
    assert outcome.bytes < MOST_BYTES, outcome


def test_a_run_is_refused_what_its_bundle_could_not_bring_along():
    """Else it would train for hours, and its bundle could not be opened."""
    with pytest.raises(ConfigError) as caught:
        read_config("demo", ["decoding.beam_size=100"])
    assert str(caught.value) == (
        "demo: decoding.beam_size must be at most 64, got 100 in the settings of a model"
    )


def test_a_caller_may_ask_for_more_than_a_model(bundle: Path):
    translation = load(bundle, "torch").translate("un chat", beam_size=100, max_length=3)
    assert len(translation.tokens) <= 3


def test_thirty_gigabytes_of_nothing_are_not_hashed(bundle: Path, tmp_path: Path):
    copy = shutil.copytree(bundle, tmp_path / "bundle")
    os.truncate(copy / "model.safetensors", 30 << 30)
    manifest = json.loads((copy / "manifest.json").read_bytes())
    manifest["files"]["model.safetensors"]["size"] = 30 << 30
    (copy / "manifest.json").write_bytes(manifest_text(manifest))
    outcome = run_limited(lambda: load(copy, "torch"))
    assert outcome.error == "CorruptError"
    assert (
        "model.safetensors must be whole, is 32,212,254,720 bytes mostly of holes"
        in outcome.message
    )
    assert outcome.is_bounded, outcome


def test_opening_a_model_ends_at_its_deadline(bundle: Path):
    with pytest.raises(BundleError) as caught:
        load(bundle, "torch", seconds=1e-9)
    assert str(caught.value) == (
        "the model must be open after 1e-09 seconds, and was still being read"
    )
    assert caught.value.hint == "a slow disk needs more: load(path, seconds=...)"


@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json"])
def test_a_folder_cloned_without_git_lfs_is_told_so(name: str, bundle: Path, tmp_path: Path):
    copy = shutil.copytree(bundle, tmp_path / "bundle")
    (copy / name).write_bytes(POINTER)
    with pytest.raises(CorruptError) as caught:
        load(copy, "torch")
    assert name in str(caught.value)
    assert caught.value.hint == (
        "the folder was cloned without git-lfs: install it and run git lfs pull there"
    )
