from pathlib import Path

import pytest
from engine_bundles import saved


@pytest.fixture(scope="session")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random bundle, to be read; what engines keep beside it is shared by the tests."""
    return saved(tmp_path_factory.mktemp("engines") / "bundle")


@pytest.fixture(autouse=True)
def _cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache home"))
