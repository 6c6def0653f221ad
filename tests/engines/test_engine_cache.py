"""A bundle is converted once, beside itself, and what is found there is whole."""

import logging
import shutil
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from engine_bundles import random_bundle, said, saved, sentences
from processors import pretend_processor

from pellucid.backends.ctranslate2.cache import (
    CACHE_FOLDER,
    converted,
    own_folder,
    own_secret,
    prove,
)
from pellucid.backends.ctranslate2.export import export_ctranslate2
from pellucid.backends.load import load
from pellucid.bundle import load_bundle
from pellucid.core.errors import WriteError

LINES = sentences(20)


def conversions(folder: Path) -> list[str]:
    """Which bundles are kept converted in ``folder``, and how."""
    kept = sorted((folder / CACHE_FOLDER).glob("[!.]*"))
    return ["-".join(each.name.split("-")[::2]) for each in kept]


def times_converted(caplog: pytest.LogCaptureFixture) -> int:
    return sum("converting the model" in record.getMessage() for record in caplog.records)


@pytest.fixture(autouse=True)
def _informed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pellucid.backends")


def test_a_bundle_with_the_longest_name_there_is_is_kept_converted_too(tmp_path: Path, caplog):
    long = saved(tmp_path / ("é" + "b" * 253))
    for _ in range(2):
        load(long, engine="ctranslate2", device="cpu")
    assert times_converted(caplog) == 1
    load(saved(tmp_path / "other"), engine="ctranslate2", device="cpu")
    assert len(conversions(tmp_path)) == 2, (
        "neither is taken for the leftover of a bundle that went"
    )


def test_the_second_start_takes_what_the_first_converted(
    tmp_path: Path, caplog, monkeypatch: pytest.MonkeyPatch
):
    folder = saved(tmp_path / "bundle")
    first = load(folder, engine="ctranslate2", device="cpu").translate(LINES)
    second = load(folder, engine="ctranslate2", device="cpu").translate(LINES)
    assert times_converted(caplog) == 1
    assert conversions(tmp_path) == ["bundle-float32"]
    assert first == second
    pretend_processor("AuthenticAMD", "fpu avx_vnni", tmp_path, monkeypatch)
    load(folder, engine="ctranslate2", device="cpu", compute_type="int8")
    assert conversions(tmp_path) == ["bundle-float32", "bundle-int8"]


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


def test_another_model_under_the_same_name_is_converted_anew_and_the_old_one_goes(tmp_path: Path):
    folder = saved(tmp_path / "bundle")
    saved(tmp_path / "step-7")
    saved(tmp_path / "gone")
    before = load(folder, device="cpu").translate(LINES)
    load(tmp_path / "step-7", device="cpu")
    load(tmp_path / "gone", device="cpu")
    shutil.rmtree(tmp_path / "gone")
    saved(folder, seed=1)
    after = load(folder, device="cpu").translate(LINES)
    assert said(before) != said(after)
    assert said(after) == said(load(folder, engine="torch", device="cpu").translate(LINES))
    assert len(list((tmp_path / CACHE_FOLDER).glob("[!.]*"))) == 2
    assert any(path.name.startswith("step-7-") for path in (tmp_path / CACHE_FOLDER).iterdir())


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


def test_where_nothing_can_be_written_the_cache_folder_of_the_user_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    folder = saved(tmp_path / "bundle")
    (tmp_path / CACHE_FOLDER).touch()  # in the way
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for _ in range(2):
        assert load(folder, device="cpu").engine.name == "ctranslate2"
    assert conversions(tmp_path / "home" / "pellucid") == ["bundle-float32"]
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


def planted(folder: Path) -> Path:
    """Where the conversion of ``folder`` lies, another model in its place, with its manifest."""
    with converted(load_bundle(folder), "float32") as kept:
        place = kept
    whole = {each.name: each.read_bytes() for each in place.iterdir()}
    shutil.rmtree(place)
    export_ctranslate2(random_bundle(seed=1), place)
    other = {each.name: each.read_bytes() for each in place.iterdir()}
    assert other["model.bin"] != whole["model.bin"]
    return place


@pytest.mark.parametrize("proof", ["none", "copied", "made with another secret"])
def test_a_planted_conversion_of_another_model_is_never_opened(
    proof: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    folder = saved(tmp_path / "bundle")
    expected = load(folder, engine="torch", device="cpu").translate(LINES)
    with converted(load_bundle(folder), "float32") as kept:
        genuine = (kept / "proof").read_bytes()
    place = planted(folder)
    if proof == "copied":
        (place / "proof").write_bytes(genuine)
    if proof == "made with another secret":
        prove(place, b"\x01" * 32)
    caplog.clear()
    assert said(load(folder, device="cpu").translate(LINES)) == said(expected)
    assert f"was not made here and will be made again: {place}" in caplog.text
    assert times_converted(caplog) == 1
    load(folder, device="cpu")
    assert times_converted(caplog) == 1


def test_a_conversion_of_ours_under_the_name_of_another_bundle_is_made_again(tmp_path: Path):
    one, other = saved(tmp_path / "a" / "bundle"), saved(tmp_path / "b" / "bundle", seed=1)
    expected = load(one, engine="torch", device="cpu").translate(LINES)
    with converted(load_bundle(one), "float32") as mine, converted(load_bundle(other), "float32"):
        [theirs] = (tmp_path / "b" / CACHE_FOLDER).glob("bundle-*")
    assert mine.name != theirs.name
    shutil.rmtree(mine)
    shutil.copytree(theirs, mine)
    assert said(load(one, device="cpu").translate(LINES)) == said(expected)


def test_a_file_slipped_into_a_conversion_of_ours_is_noticed(tmp_path: Path, caplog):
    folder = saved(tmp_path / "bundle")
    with converted(load_bundle(folder), "float32") as kept:
        (kept / "another.json").write_text("[]")
    with converted(load_bundle(folder), "float32") as kept:
        assert not (kept / "another.json").exists()
    assert "was not made here" in caplog.text


def test_a_cache_folder_that_is_a_link_is_left_alone(tmp_path: Path):
    """Else whoever packed a run chose where we write, and what we take for outdated and delete."""
    folder = saved(tmp_path / "run" / "bundle")
    (tmp_path / "run" / "theses").mkdir()
    precious = tmp_path / "run" / "theses" / "my-last-thesis"
    precious.mkdir()
    (tmp_path / "run" / CACHE_FOLDER).symlink_to("theses")
    assert load(folder, device="cpu").engine.name == "ctranslate2"
    assert [each.name for each in (tmp_path / "run" / "theses").iterdir()] == ["my-last-thesis"]
    assert conversions(tmp_path / "cache home" / "pellucid") == ["bundle-float32"]


def test_the_secret_is_its_owners_alone_and_one_that_others_can_read_is_drawn_anew(tmp_path: Path):
    secret = own_secret()
    path = tmp_path / "cache home" / "pellucid" / "secret"
    assert secret == path.read_bytes()
    assert len(secret) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert own_secret() == secret
    path.chmod(0o644)
    drawn = own_secret()
    assert drawn not in (None, secret)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    (tmp_path / "given").write_bytes(b"\0" * 32)
    (tmp_path / "given").chmod(0o600)
    path.symlink_to(tmp_path / "given")
    assert own_secret() not in (None, b"\0" * 32)


def test_a_relative_cache_home_counts_for_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Else the folder that one happens to stand in could bring a secret of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own_folder() == tmp_path / ".cache" / "pellucid"
