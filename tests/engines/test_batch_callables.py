"""The callables of ``pellucid.batch`` take what Ray, Spark, Dask and datasets hand them."""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest
import tiny_runs
import torch

from pellucid import batch
from pellucid.backends.load import load
from pellucid.batch import Check, Score, Translate
from pellucid.bundle import load_bundle, save_bundle
from pellucid.core.errors import DataError, InputMissingError

TEXTS = ["je suis étudiant", "", "le chat dort", "vous partez"]
TARGETS = ["i am a student", "you", "the cat sleeps", "you leave"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: what is converted beside it is signed for the cache home of this folder's tests."""
    shared = tiny_runs.tiny_run(tmp_path_factory.getbasetemp())
    return shutil.copytree(shared, tmp_path_factory.mktemp("batch") / "run", symlinks=True)


@pytest.fixture(scope="module")
def said(run: Path) -> list[str]:
    return [each.text for each in load(run).translate(TEXTS, beam_size=2)]


def translate(run: Path) -> Translate:
    return Translate(str(run), column="fr", into="en", score="points", beam_size=2)


def test_a_dictionary_of_arrays_gives_arrays_and_one_of_lists_gives_lists(run: Path, said):
    arrays = {"fr": np.array(TEXTS, dtype=object), "id": np.arange(4)}
    found = translate(run)(arrays)
    assert list(found) == ["fr", "id", "en", "points"]
    assert (found["en"].dtype, found["points"].dtype) == (object, float)
    assert list(found["en"]) == said
    assert list(arrays) == ["fr", "id"]
    found = translate(run)({"fr": TEXTS})
    assert found["en"] == said
    assert found["points"][1] == 0.0


def test_a_frame_of_pandas_gives_a_frame(run: Path, said):
    frame = pandas.DataFrame({"fr": [*TEXTS[:1], None, *TEXTS[2:]]}, index=[5, 6, 7, 9])
    found = translate(run)(frame)
    assert list(found["en"]) == said
    assert list(found.index) == [5, 6, 7, 9]
    assert list(frame.columns) == ["fr"]


def test_a_table_of_pyarrow_gives_a_table(run: Path, said):
    table = pyarrow.table({"fr": TEXTS, "en": ["old"] * 4})
    for each in (table, table.to_batches()[0]):
        found = translate(run)(each)
        assert isinstance(found, type(each))
        assert found["en"].to_pylist() == said
        assert found.schema.names == ["fr", "en", "points"]


def test_what_pandas_calls_missing_gives_an_empty_translation(run: Path, said):
    for dtype in ("string", "string[pyarrow]"):
        frame = pandas.DataFrame({"fr": pandas.array([*TEXTS[:1], None, *TEXTS[2:]], dtype)})
        assert list(translate(run)(frame)["en"]) == said


def test_an_empty_block_has_the_types_of_a_full_one(run: Path):
    full = pyarrow.table({"fr": TEXTS})
    tables = [translate(run)(each) for each in (full, full.slice(0, 0))]
    assert pyarrow.concat_tables(tables).num_rows == len(TEXTS)
    assert translate(run)(pandas.DataFrame({"fr": []}))["points"].dtype == float
    assert translate(run)({"fr": np.array([], object)})["points"].dtype == float
    pairs = Score(str(run))({"source": [], "target": []})
    assert pairs["log_prob"] == []


def test_a_file_that_pandas_reads_in_chunks_is_an_iterator(run: Path, said, tmp_path: Path):
    pandas.DataFrame({"fr": TEXTS}).to_csv(tmp_path / "texts.csv", index=False)
    chunks = pandas.read_csv(tmp_path / "texts.csv", chunksize=3)
    assert [text for frame in translate(run)(chunks) for text in frame["en"]] == said


def test_an_iterator_of_frames_gives_an_iterator_as_spark_wants_it(run: Path, said):
    frames = (pandas.DataFrame({"fr": [text]}) for text in TEXTS)
    found = translate(run)(frames)
    assert next(found)["en"].tolist() == said[:1]
    assert len(list(found)) == 3


def test_a_callable_is_sent_as_a_small_recipe_and_opens_its_model_once(
    run: Path, said, monkeypatch: pytest.MonkeyPatch
):
    opened = []

    def load_and_count(*arguments):
        opened.append(arguments)
        return load(*arguments)

    monkeypatch.setattr(batch, "load", load_and_count)
    batch._opened.cache_clear()
    sent = pickle.dumps(translate(run))
    assert len(sent) < 1000
    received = pickle.loads(sent)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(received, [{"fr": TEXTS}] * 4))
    assert [each["en"] for each in found] == [said] * 4
    assert pickle.loads(sent)({"fr": TEXTS[:1]})["en"] == said[:1]
    assert len(opened) == 1
    batch._opened.cache_clear()


@pytest.fixture(scope="module")
def other(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with the tokenizers of ``run`` and other parameters."""
    bundle = load_bundle(run)
    with torch.no_grad():
        for parameter in bundle.model.parameters():
            parameter.neg_()
    path = tmp_path_factory.mktemp("other") / "bundle"
    save_bundle(path, bundle, card="", details={})
    return path


def torch_of(path: Path | str) -> Translate:
    return Translate(str(path), column="fr", into="en", engine="torch", max_length=6)


def test_a_model_that_took_the_place_of_another_translates_and_scores(
    run: Path, other: Path, tmp_path: Path
):
    """Of a bundle that was replaced, and of a link that leads to another one."""
    batch_of = {"fr": TEXTS, "source": TEXTS, "target": TARGETS}
    said = [torch_of(path)(batch_of)["en"] for path in (run, other)]
    scored = [Score(str(path))(batch_of)["log_prob"] for path in (run, other)]
    assert said[0] != said[1]
    assert scored[0] != scored[1]

    folder, link = tmp_path / "model", tmp_path / "link"
    for number, path in enumerate([run, other, run]):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(path, folder, symlinks=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        for place in (folder, link):
            assert torch_of(place)(batch_of)["en"] == said[number % 2]
            assert Score(str(place))(batch_of)["log_prob"] == scored[number % 2]


def test_a_relative_path_is_read_in_the_current_folder(
    run: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, path in (("a", run), ("b", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model").symlink_to(path)
    said = [torch_of(path)({"fr": TEXTS})["en"] for path in (run, other)]
    for number, name in enumerate("aba"):
        monkeypatch.chdir(tmp_path / name)
        assert torch_of("model")({"fr": TEXTS})["en"] == said[number % 2]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputMissingError):
        torch_of("model")({"fr": TEXTS})


def test_an_unchanged_model_is_opened_once(run: Path, monkeypatch: pytest.MonkeyPatch):
    opened = []
    monkeypatch.setattr(batch, "load", lambda *given: opened.append(given) or load(*given))
    batch._opened.cache_clear()
    for _ in range(3):
        torch_of(run)({"fr": TEXTS})
    assert len(opened) == 1
    batch._opened.cache_clear()


def test_targets_are_scored(run: Path):
    table = {"source": TEXTS, "target": TARGETS}
    found = Score(str(run), perplexity="perplexity")(table)
    wanted = load(run, "torch").score(TEXTS, TARGETS)
    np.testing.assert_allclose(found["log_prob"], [sum(each.token_log_probs) for each in wanted])
    np.testing.assert_allclose(found["perplexity"], [each.perplexity for each in wanted])


def test_pairs_are_checked():
    pairs = {
        "a good pair": ("ein gutes Paar", ""),
        " ": ("x", "empty"),
        "same": ("same", "source_equals_target"),
        "short": (
            "a much longer side than the other one is, by far and without any reason",
            "length_ratio",
        ),
        "nul \0": ("null", "nul"),
        "broken\nline": ("zwei Zeilen", ""),
    }
    table = {"source": list(pairs), "target": [target for target, _ in pairs.values()]}
    assert Check()(table)["problems"] == [problems for _, problems in pairs.values()]
    assert Check(usual_ratio=10.0)({"source": ["abcdefgh"], "target": ["abcdefg."]})[
        "problems"
    ] == ["length_ratio"]
    assert Check()({"source": [], "target": []})["problems"] == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"en": ["a"]}, "there is no column fr"),
        ({"fr": ["a", 3]}, "column fr, row 1: must be text, got '3'"),
        ({"fr": [["a"]]}, r"column fr, row 0: must be text"),
        (pyarrow.table({"fr": [1]}), "column fr, row 0"),
        # a row in place of a batch, as dataset.map gives it without batched=True
        ({"fr": "je"}, r"column fr must hold a list of texts, got str: a batch has several rows"),
        ({"fr": None}, r"column fr must hold a list of texts, got NoneType"),
        (pandas.Series(["a"], name="fr"), "a batch must be a dictionary of columns.*got Series"),
        (7, "a batch must be a dictionary of columns"),
        ("text", "a batch must be a dictionary of columns"),
    ],
)
def test_what_is_no_batch_of_text_is_refused(given, message):
    with pytest.raises(DataError, match=message):
        Translate("nowhere", column="fr")(given)


def test_datasets_map_takes_one(run: Path, said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"fr": TEXTS})
    assert rows.map(translate(run), batched=True, batch_size=4)["en"][:] == said


def test_warnings_are_a_column_or_a_line_of_the_log(run: Path, caplog: pytest.LogCaptureFixture):
    texts = {"fr": ["le chat dort", "Привет"]}
    found = Translate(str(run), column="fr", warnings="doubts", beam_size=1)(texts)
    assert "unknown" in found["doubts"][1].split()
    assert "unknown" not in found["doubts"][0].split()
    assert caplog.messages == []
    assert "doubts" not in Translate(str(run), column="fr", beam_size=1)(texts)
    [said] = caplog.messages
    assert said.startswith("2 translations, with warnings: unknown 1")
