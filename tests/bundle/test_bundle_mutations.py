"""T5: whatever happens to the bytes of a bundle, it is refused with the file named."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny_runs

from pellucid.bundle import CARD_FILE, load_bundle
from pellucid.core.errors import BundleError, CorruptError, InputMissingError

MUTATION_COUNT = 240


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for all: each mutation puts back what it took."""
    run = tiny_runs.copy_of_tiny_run(
        tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("mutations") / "run"
    )
    return next((run / "bundles").iterdir())


def flip(content: bytes, random: np.random.Generator) -> bytes:
    place, bit = int(random.integers(len(content))), int(random.integers(8))
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def truncate(content: bytes, random: np.random.Generator) -> bytes:
    return content[: int(random.integers(len(content)))]


def zero(content: bytes, random: np.random.Generator) -> bytes:
    """A block of the disk that reads as zeros."""
    begin = int(random.integers(len(content)))
    length = min(4096, len(content) - begin)
    return content[:begin] + bytes(length) + content[begin + length :]


def append(content: bytes, random: np.random.Generator) -> bytes:
    return content + random.bytes(int(random.integers(1, 9)))


MUTATIONS: list[Callable[[bytes, np.random.Generator], bytes]] = [flip, truncate, zero, append]


def computing(bundle: Path) -> list[Path]:
    """The files that decide what is computed: all but the card."""
    return sorted(path for path in bundle.iterdir() if path.name != CARD_FILE)


def test_every_mutation_is_an_error_that_names_the_file(bundle: Path):
    random = np.random.default_rng(0)
    paths = computing(bundle)
    assert len(paths) >= 5
    done = 0
    while done < MUTATION_COUNT:
        path = paths[done % len(paths)]
        mutate = MUTATIONS[(done // len(paths)) % len(MUTATIONS)]
        content = path.read_bytes()
        mutated = mutate(content, random)
        if mutated == content:  # zeros that were zeros
            mutated = flip(content, random)
        path.write_bytes(mutated)
        try:
            with pytest.raises(CorruptError) as caught:
                load_bundle(bundle)
            assert str(path) in str(caught.value)
        finally:
            path.write_bytes(content)
        done += 1
    assert load_bundle(bundle).path == bundle


def test_every_file_is_missed(bundle: Path):
    for path in computing(bundle):
        content = path.read_bytes()
        path.unlink()
        try:
            with pytest.raises((BundleError, InputMissingError)) as caught:
                load_bundle(bundle)
            assert path.name in str(caught.value)
        finally:
            path.write_bytes(content)


def test_every_two_files_that_change_places_are_noticed(bundle: Path):
    paths = [path for path in computing(bundle) if path.name != "manifest.json"]
    for first, second in itertools.pairwise(paths):
        contents = first.read_bytes(), second.read_bytes()
        first.write_bytes(contents[1])
        second.write_bytes(contents[0])
        try:
            with pytest.raises(CorruptError) as caught:
                load_bundle(bundle)
            assert str(first) in str(caught.value) or str(second) in str(caught.value)
        finally:
            first.write_bytes(contents[0])
            second.write_bytes(contents[1])


def test_a_card_may_be_edited_or_left_out_and_that_is_told(
    bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """As people do where a model is published."""
    assert load_bundle(bundle).path == bundle
    assert caplog.messages == []
    edited = shutil.copytree(bundle, tmp_path / "edited")
    with (edited / CARD_FILE).open("a") as file:
        file.write("\nWe use it for the forecasts of the weather.\n")
    assert load_bundle(edited).path == edited
    (edited / CARD_FILE).unlink()
    assert load_bundle(edited).path == edited
    told = f"{edited / CARD_FILE} is not as it was saved; nothing is computed from it"
    assert caplog.messages == [told, told]


def test_a_file_of_another_bundle_is_noticed(bundle: Path, tmp_path: Path):
    """Each file is whole, but they do not belong together."""
    other = shutil.copytree(bundle, tmp_path / "other")
    model = other / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-4] + bytes(4))
    with pytest.raises(CorruptError, match=r"model\.safetensors should have SHA-256"):
        load_bundle(other)
