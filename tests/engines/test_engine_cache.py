"""A bundle is converted once, into the user's cache, and what is found there is whole."""

import logging
import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from engine_bundles import said, saved, sentences
from processors import pretend_processor

from pellucid.backends.ctranslate2.cache import cache_folder, converted
from pellucid.backends.load import load
from pellucid.bundle import load_bundle
from pellucid.core.errors import WriteError

LINES = sentences(20)


def conversions() -> list[str]:
    """The names of the conversions that are kept."""
    kept = cache_folder()
    assert kept is not None
    return sorted(each.name for each in kept.glob("[!.]*"))


def times_converted(caplog: pytest.LogCaptureFixture) -> int:
    return sum("converting the model" in record.getMessage() for record in caplog.records)


@pytest.fixture(autouse=True)
def _informed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pellucid.backends")


def test_the_second_start_takes_what_the_first_converted(
    tmp_path: Path, caplog, monkeypatch: pytest.MonkeyPatch
):
    folder = saved(tmp_path / "bundle")
    first = load(folder, engine="ctranslate2", device="cpu").translate(LINES)
    second = load(folder, engine="ctranslate2", device="cpu").translate(LINES)
    assert times_converted(caplog) == 1
    assert [name.rpartition("-")[2] for name in conversions()] == ["float32"]
    assert not (tmp_path / ".ctranslate2").exists()
    assert first == second
    pretend_processor("AuthenticAMD", "fpu avx_vnni", tmp_path, monkeypatch)
    load(folder, engine="ctranslate2", device="cpu", compute_type="int8")
    assert [name.rpartition("-")[2] for name in conversions()] == ["float32", "int8"]


def test_a_damaged_conversion_is_made_again(tmp_path: Path, caplog):
    folder = saved(tmp_path / "bundle")
    with converted(load_bundle(folder), "float32") as kept:
        path = kept / "model.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with converted(load_bundle(folder), "float32") as kept:
        assert (kept / "model.bin").read_bytes() == whole
    assert "is damaged and will be made again" in caplog.text
    (kept / "model.bin").unlink()
    with converted(load_bundle(folder), "float32") as kept:
        assert (kept / "model.bin").read_bytes() == whole


def test_another_model_under_the_same_name_is_converted_anew(tmp_path: Path):
    folder = saved(tmp_path / "bundle")
    before = load(folder, device="cpu").translate(LINES)
    saved(folder, seed=1)
    after = load(folder, device="cpu").translate(LINES)
    assert said(before) != said(after)
    assert said(after) == said(load(folder, engine="torch", device="cpu").translate(LINES))
    assert len(conversions()) == 2


def test_a_conversion_that_was_long_unused_goes_when_another_is_made(tmp_path: Path):
    """The age counts from its last use."""
    long_ago = time.time() - 40 * 24 * 3600
    one, two, three = (saved(tmp_path / str(seed), seed=seed) for seed in range(3))
    for folder in (one, two):
        with converted(load_bundle(folder), "float32") as kept:
            os.utime(kept, (long_ago, long_ago))
    with converted(load_bundle(two), "float32") as used:
        pass
    with converted(load_bundle(three), "float32") as new:
        assert conversions() == sorted([used.name, new.name])


def test_starts_at_the_same_time_convert_once(tmp_path: Path, caplog):
    folder = saved(tmp_path / "bundle")
    answers: list[list[list[tuple[str, ...]]]] = []
    barrier = threading.Barrier(4)

    def start() -> None:
        barrier.wait()
        answers.append(said(load(folder, device="cpu").translate(LINES)))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert all(each == answers[0] for each in answers)
    assert times_converted(caplog) == 1


def test_with_no_place_at_all_the_model_is_converted_for_one_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    folder = saved(tmp_path / "bundle")
    expected = load(folder, engine="torch", device="cpu").translate(LINES)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fast = load(folder, engine="ctranslate2", device="cpu")
    assert said(fast.translate(LINES)) == said(expected)
    assert "for this time alone: nothing can be kept" in caplog.text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bundle", "file"]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    engine = load(folder, device="cpu").engine
    assert engine.name == "torch"
    assert engine.reason.startswith(
        "the model cannot be converted for ctranslate2: a converted model must be kept somewhere:"
    )
    with pytest.raises(WriteError, match="must be kept somewhere") as caught:
        load(folder, engine="ctranslate2", device="cpu")
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_a_relative_cache_home_counts_for_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Else the folder that one happens to stand in could bring a model of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "pellucid" / "ctranslate2"
