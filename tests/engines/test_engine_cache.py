"""A bundle is converted once, beside itself, and what is found there is whole."""

import logging
import shutil
import threading
from pathlib import Path

import pytest
from engine_bundles import said, saved, sentences

from pellucid.bundle import load_bundle
from pellucid.core.errors import WriteError
from pellucid.engines.cache import CACHE_FOLDER, converted
from pellucid.engines.load import load

LINES = sentences(20)


def conversions(folder: Path) -> list[str]:
    """Which bundles are kept converted in ``folder``, and how."""
    kept = sorted((folder / CACHE_FOLDER).glob("[!.]*"))
    return ["-".join(each.name.split("-")[::2]) for each in kept]


def times_converted(caplog: pytest.LogCaptureFixture) -> int:
    return sum("converting the model" in record.getMessage() for record in caplog.records)


@pytest.fixture(autouse=True)
def _informed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pellucid")


def test_the_second_start_takes_what_the_first_converted(tmp_path: Path, caplog):
    folder = saved(tmp_path / "bundle")
    first = load(folder, engine="ctranslate2", device="cpu").translate(LINES)
    second = load(folder, engine="ctranslate2", device="cpu").translate(LINES)
    assert times_converted(caplog) == 1
    assert conversions(tmp_path) == ["bundle-float32"]
    assert first == second
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


def test_with_no_place_at_all_auto_takes_torch_and_ctranslate2_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = saved(tmp_path / "bundle")
    (tmp_path / CACHE_FOLDER).touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / CACHE_FOLDER))
    engine = load(folder, device="cpu").engine
    assert engine.name == "torch"
    assert engine.reason.startswith(
        "the model cannot be converted for ctranslate2: a converted model must be kept somewhere:"
        " cannot write "
    )
    with pytest.raises(WriteError, match="must be kept somewhere") as caught:
        load(folder, engine="ctranslate2", device="cpu")
    assert "XDG_CACHE_HOME" in caught.value.hint
