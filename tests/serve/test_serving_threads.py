"""How many threads of one operation a worker of the server uses, where no option says so."""

from pathlib import Path

import pytest
from served_models import write_bundle

from pellucid.serve.http import serving
from pellucid.serve.http.serving import Serving
from pellucid.serve.limits import Limits
from pellucid.serve.models import ModelPlace
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Policy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("served") / "tiny")


@pytest.mark.parametrize(
    ("cores", "workers", "largest_small", "threads"),
    [
        pytest.param(8, 1, 10**9, 7, id="a small model leaves connections a core"),
        pytest.param(8, 1, 0, 8, id="a large model takes them all"),
        pytest.param(8, 2, 0, 4, id="workers share them"),
        pytest.param(8, 2, 10**9, 3, id="workers of a small model"),
        pytest.param(1, 4, 10**9, 1, id="at least one"),
    ],
)
def test_threads_are_chosen_by_the_cores_the_workers_and_the_model(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    workers: int,
    largest_small: int,
    threads: int,
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(serving, "thread_count", lambda: cores)
    monkeypatch.setattr(serving, "_SMALL_MODEL", largest_small)
    served = Serving(
        [ModelPlace("tiny", folder)], Limits(), Policy(keys=KeyRing([])), workers=workers
    )
    assert served._fitting_threads() == threads

    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.setattr(serving, "thread_count", lambda: 5)
    assert served._fitting_threads() == 5, "the user's own number"
