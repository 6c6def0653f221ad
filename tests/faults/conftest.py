from pathlib import Path

import pytest
import tiny_runs


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, to be read; see ``tiny_runs``."""
    return tiny_runs.tiny_run(tmp_path_factory.getbasetemp())
