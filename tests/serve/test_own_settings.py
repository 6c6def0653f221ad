"""Models whose own search has groups, MBR or a least length: they start, and refuse what does not
go with it."""

import dataclasses
from pathlib import Path

import pytest
from served_models import LINES, bundle, client_of, make_service

from pellucid.backends.load import load
from pellucid.bundle import save_bundle
from pellucid.decoding.config import DecodingConfig, contradictions
from pellucid.decoding.translator import Translator
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel, ModelPlace, open_model
from pellucid.serve.schema import TranslateRequest
from pellucid.serve.server.errors import InvalidError
from pellucid.serve.service import search_settings
from pellucid.text.glossary import Glossary

GROUPS = {"beam_size": 4, "diverse_groups": 4}
OWN = {
    "groups": GROUPS,
    "mbr": {"beam_size": 4, "mbr": True},
    "least length": {"beam_size": 4, "min_length": 12},
    "words": {"must": ["chat noir"], "prefix": "je suis"},
    "patience": {"beam_size": 4, "patience": 0.5},
    "no search": {"beam_size": 1, "repredict": True},
    "samples": {"sampling": {"seed": 3}},
}


def served(**own: object) -> LoadedModel:
    settings = DecodingConfig.parse({"max_length_extra": 8, **own})
    translator = Translator(bundle(), settings)
    return LoadedModel(ModelPlace("tiny", Path("tiny")), translator, bundle())


@pytest.mark.parametrize("name", OWN)
def test_a_model_starts_and_translates_with_its_own_search(name: str, tmp_path: Path):
    table = bundle().settings | {"decoding": {"max_length_extra": 8, **OWN[name]}}
    path = tmp_path / "own"
    save_bundle(path, dataclasses.replace(bundle(), settings=table), card="", details={})
    model = open_model(ModelPlace("own", path))
    with client_of(make_service(None, model)) as client:
        answer = client.post("/v1/translate", json={"text": LINES[0]})
    assert answer.status_code == 200, answer.text
    [found] = answer.json()["translations"]
    assert found["text"] == load(path).translate(LINES[0]).text


@pytest.mark.parametrize(
    ("own", "asked", "field", "message"),
    [
        (GROUPS, {"beam_size": 2}, "beam_size", "a multiple of diverse_groups, got beam_size=2"),
        (GROUPS, {"beam_size": 6}, "beam_size", "a multiple of diverse_groups, got beam_size=6"),
        (GROUPS, {"beam_size": 1, "n_best": 3}, "beam_size", "got beam_size=3"),
        (OWN["mbr"], {"beam_size": 1}, "beam_size", "mbr must have beam_size above 1"),
        (OWN["least length"], {"max_new_tokens": 11}, "max_new_tokens", "min_length=12"),
        (OWN["no search"], {"n_best": 2}, "n_best", "it allows no beam_size"),
        (OWN["no search"], {"alternatives": 1}, "alternatives", "it allows no beam_size"),
        (
            {"mask_at_inference": False, "use_cache": False},
            {"alignment": True},
            "alignment",
            "takes no align",
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_does_not_go_with_a_models_own_search_is_refused(
    own: dict[str, object], asked: dict[str, object], field: str, message: str, stream: bool
):
    with client_of(make_service(None, served(**own))) as client:
        answer = client.post("/v1/translate", json={"text": "oui", "stream": stream, **asked})
    assert answer.status_code == 422, answer.text
    [problem] = answer.json()["errors"]
    assert problem["field"] == field
    assert problem["message"].startswith("does not go with the settings of this model: ")
    assert message in problem["message"]


@pytest.mark.parametrize("name", ["groups", "samples", "no search"])
@pytest.mark.parametrize("stream", [False, True])
def test_terms_that_do_not_go_with_a_models_own_search_are_refused(
    name: str, stream: bool, tmp_path: Path
):
    terms = tmp_path / "terms.tsv"
    terms.write_text("source\ttarget\noui\tchat\n")
    model = served(**OWN[name])
    model.glossaries["terms"] = Glossary.read(terms)
    ask = {"text": ["non", "oui"], "glossary": "terms", "stream": stream}
    with client_of(make_service(None, model)) as client:
        answer = client.post("/v1/translate", json=ask)
    said = answer.json()["detail"] if answer.status_code != 200 else answer.text
    assert answer.status_code == 422 or (stream and '"status":422' in said), said
    assert "model cannot do this: " in said


@pytest.mark.parametrize(
    ("own", "asked", "beam_size"),
    [
        (GROUPS, {}, 4),
        (GROUPS, {"beam_size": 8}, 8),
        (GROUPS, {"n_best": 4}, 4),
        (GROUPS, {"n_best": 5}, 8),
        (GROUPS, {"alternatives": 3}, 4),
        (GROUPS, {"alternatives": 4}, 8),
        ({"beam_size": 25, "diverse_groups": 5}, {}, 15),
        ({"beam_size": 25}, {}, 16),
        ({"beam_size": 3}, {"n_best": 5}, 5),
    ],
)
def test_a_beam_that_is_not_asked_for_fits_the_groups(
    own: dict[str, object], asked: dict[str, object], beam_size: int
):
    found = search_settings(served(**own), TranslateRequest(text="oui", **asked), Limits())
    assert found.beam_size == beam_size
    assert not contradictions(found)


def test_the_limits_of_a_server_are_no_fault_of_a_request():
    """A least length beyond them gives way; a beam that no group divides cannot."""
    own = served(min_length=50, max_length=60)
    found = search_settings(own, TranslateRequest(text="oui"), Limits(max_new_tokens=40))
    assert (found.min_length, found.max_length) == (40, 40)
    limits = Limits(max_beam_size=3, max_n_best=2)
    with pytest.raises(InvalidError):
        search_settings(served(**GROUPS), TranslateRequest(text="oui"), limits)
