from collections.abc import Iterator

import pytest
from served_models import serving
from starlette.testclient import TestClient


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with serving() as client:
        yield client
