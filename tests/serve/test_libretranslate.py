"""LibreTranslate's clients work as they are (libretranslatepy, from the package registry)."""

import functools
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI
from served_models import LINES, translator, write_bundle
from server_processes import ServerProcess, serving_process
from starlette.testclient import TestClient

KEY = "a-key-that-is-long-enough"
CHAT = translator().translate(LINES[0]).text


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("libre")
    (folder / "keys").write_text(f"# one key\n{KEY}\n")
    bundle = write_bundle(folder / "tiny")
    with serving_process(bundle, "--api-key-file", folder / "keys") as made:
        yield made


def test_the_real_client_translates_with_its_key(server: ServerProcess):
    client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}", api_key=KEY)
    assert client.translate(LINES[0], "fr", "en") == CHAT
    assert client.languages() == [
        {"code": "fr", "name": "French", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]


def test_the_real_client_is_turned_away_without_one(server: ServerProcess):
    for key in (None, "wrong-wrong-wrong-wrong"):
        client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}", api_key=key)
        for ask in (functools.partial(client.translate, "a", "fr", "en"), client.languages):
            with pytest.raises(urllib.error.HTTPError) as caught:
                ask()
            assert caught.value.code == 401
            caught.value.close()


def test_one_text_or_several_in_json(client: TestClient):
    body = {"q": LINES[0], "source": "fr", "target": "en", "format": "text"}
    assert client.post("/translate", json=body).json() == {"translatedText": CHAT}
    several = client.post("/translate", json=body | {"q": [LINES[0], ""]}).json()
    assert several == {"translatedText": [CHAT, ""]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_each_line_is_translated_for_itself(client: TestClient, end: str):
    text = f"{LINES[0]}{end}{LINES[1]}{end}"
    body = {"q": text, "source": "fr", "target": "en"}
    expected = f"{CHAT}{end}{translator().translate(LINES[1]).text}{end}"
    assert client.post("/translate", json=body).json() == {"translatedText": expected}


def test_alternatives_and_the_detected_language(client: TestClient):
    body = {"q": LINES[0], "source": "auto", "target": "en", "alternatives": 2}
    answer = client.post("/translate", json=body).json()
    assert len(answer["alternatives"]) == 2
    assert answer["detectedLanguage"] == {"confidence": 0, "language": "fr"}
    form = client.post("/translate", data=body)
    assert form.json() == answer


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"source": "de"}, 404),
        ({"target": "fr"}, 404),
        ({"format": "html"}, 422),
        ({"alternatives": 16}, 422),
        ({"q": None}, 422),
        ({"unknown": 1}, 422),
    ],
)
def test_errors_are_told_where_its_clients_look(client: TestClient, change: dict, status: int):
    body = {"q": "a", "source": "fr", "target": "en"} | change
    response = client.post("/translate", json=body)
    assert response.status_code == status
    assert response.json()["error"] == response.json()["detail"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"q=a&q=b&source=fr&target=en", 422),
        (b"q=%ff&source=fr&target=en", 400),
        (b"q", 400),
        (b"&".join(b"f%d=1" % n for n in range(17)), 400),
        ("q=é&source=fr&target=en".encode(), 400),
    ],
)
def test_forms_are_read_strictly(client: TestClient, content: bytes, status: int):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/translate", content=content, headers=headers).status_code == status


def test_health_and_settings(client: TestClient):
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 5000
    assert settings["language"]["source"] == {"code": "fr", "name": "French"}


def test_the_package_is_not_needed_that_parses_uploads(tmp_path: Path):
    """I14: python-multipart must not be there, as nothing here takes uploads."""
    import importlib.util

    assert importlib.util.find_spec("multipart") is None
    assert importlib.util.find_spec("python_multipart") is None
