"""GET /v1/models: what is served, under which name, and who searches for it."""

from pathlib import Path

import pytest
from served_models import client_of, make_service, write_bundle
from starlette.testclient import TestClient

from pellucid.cli.serve import _places
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


def test_a_path_with_an_equals_sign_is_no_name(tmp_path: Path):
    folder = write_bundle(tmp_path / "lr=0.1")
    options = {"languages": (), "glossary": (), "engine": "auto", "compute_type": None}
    places = _places((str(folder), f"fast={folder}", f"={folder}"), options)
    assert [each.name for each in places] == ["lr=0.1", "fast", "lr=0.1-2"]
    assert {each.path for each in places} == {folder}
