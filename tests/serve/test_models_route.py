"""GET /v1/models: what is served, and who searches for it."""

from pathlib import Path

import pytest
from served_models import client_of, make_service, write_bundle
from starlette.testclient import TestClient

from pellucid.serve.models import ModelPlace, open_model


def entries(client: TestClient) -> list[dict]:
    return client.get("/v1/models").json()["models"]


@pytest.fixture(autouse=True)
def _cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_each_model_names_the_engine_that_searches_for_it(tmp_path: Path):
    folder = write_bundle(tmp_path / "bundle")
    models = [
        open_model(ModelPlace(engine, folder, engine=engine))
        for engine in ("auto", "ctranslate2", "torch")
    ]
    with client_of(make_service(None, *models)) as client:
        named = {each["name"]: each["engine"] for each in entries(client)}
    assert named == {"auto": "ctranslate2", "ctranslate2": "ctranslate2", "torch": "torch"}
