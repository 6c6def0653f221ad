"""A bundle is converted once, into the user's cache, and what is found there is whole."""

import dataclasses
import errno
import logging
import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from engine_bundles import random_bundle, said, saved, sentences
from processors import pretend_processor

from pellucid.backends.ctranslate2 import cache
from pellucid.backends.ctranslate2.cache import cache_folder, converted
from pellucid.backends.load import load
from pellucid.backends.user_cache import locked_folder
from pellucid.bundle import load_bundle, open_bundle
from pellucid.core import system
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


def test_where_only_the_lock_can_be_written_the_model_is_converted_for_one_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    """A folder of another user, whose lock all may write."""
    bundle = load_bundle(saved(tmp_path / "bundle"))

    def refuse(*_: object) -> None:
        raise WriteError("cannot write: permission denied")

    monkeypatch.setattr(cache, "_fill", refuse)
    with converted(bundle, "float32") as folder:
        assert (folder / "model.bin").exists()
    assert not folder.exists()
    assert "for this time alone" in caplog.text


def test_a_file_system_without_locks_keeps_conversions_and_loses_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    opened = []

    def refuse(descriptor: int, **_: bool) -> None:
        opened.append(descriptor)
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(system, "lock", refuse)
    with locked_folder(tmp_path / "hub"):
        assert os.fstat(opened[0]).st_size == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])

    bundle = load_bundle(saved(tmp_path / "bundle"))
    for _ in range(2):
        with converted(bundle, "float32"):
            pass
    assert times_converted(caplog) == 1
    assert len(conversions()) == 1


def test_a_link_that_leads_nowhere_does_not_switch_the_cache_off(tmp_path: Path):
    kept = cache_folder()
    assert kept is not None
    kept.mkdir(parents=True)
    (kept / "elsewhere").symlink_to(tmp_path / "gone")
    with converted(load_bundle(saved(tmp_path / "bundle")), "float32") as folder:
        assert folder.parent == kept


def test_models_that_compute_otherwise_with_equal_tensors_have_keys_of_their_own():
    """Neither was saved, and the settings of neither name the model."""
    relu, swish = (
        dataclasses.replace(random_bundle(activation=each), settings={})
        for each in ("relu", "swish")
    )
    with converted(relu, "float32") as one:
        pass
    with converted(swish, "float32") as other:
        assert one != other


def test_a_changed_model_in_memory_is_not_kept_as_that_of_its_bundle(tmp_path: Path):
    folder = saved(tmp_path / "bundle")
    changed = load_bundle(folder)
    changed.model.get_parameter("decoder.layers.1.cross_attention.w_qkv").data.zero_()
    with converted(changed, "float32") as one:
        pass
    with converted(open_bundle(folder), "float32") as other:
        assert one != other
