from pathlib import Path

import pytest
import trained_model

from pellucid.bundle import Bundle, load_bundle


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A model that was trained in this session and is used by all referees."""
    return load_bundle(trained_model.trained_run(tmp_path_factory.getbasetemp()))


@pytest.fixture(scope="session")
def exported(trained: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where referees put what they made of it, once."""
    assert trained.path is not None
    return tmp_path_factory.mktemp("exported")
