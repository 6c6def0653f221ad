"""POST /v1/walk: the data behind a report, and the report itself."""

import functools
import json
import signal
from pathlib import Path

import pytest
from served_models import bundle, model, serving, translator
from server_processes import serving_process, wait_until

from pellucid.bundle import Bundle, save_bundle
from pellucid.core.errors import CancelledError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.documents.protected import literals_in
from pellucid.inspection.report.page import make_report
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.serve.inspection import look_inside, walk_through
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel, ModelPlace
from pellucid.serve.schema import InspectRequest, WalkRequest

TEXT = "je suis étudiant"


def test_the_data_is_that_of_the_report(client):
    answer = client.post("/v1/walk", json={"text": TEXT})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    walk = answer.json()
    assert walk["sentence"]["source"] == TEXT
    assert walk["sentence"]["target"] == translator().translate(TEXT).text
    assert {"format", "pages", "matrices", "predictions"} <= walk.keys()


@pytest.mark.parametrize("route", ["walk", "inspect"])
def test_the_warnings_of_the_translation_are_there(client, route):
    """The toy model repeats itself."""
    answer = client.post(f"/v1/{route}", json={"text": "je ♬♬"})
    warned = translator().translate("je ♬♬").warnings
    assert "loop" in {each.kind for each in warned}
    assert answer.json()["warnings"] == [
        {"kind": each.kind, "message": each.message} for each in warned
    ]


def test_the_report_is_the_library_s_and_no_browser_opens_it_here(client):
    body = {"text": TEXT, "target": "le chat", "format": "html"}
    answer = client.post("/v1/walk", json=body)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.text == make_report(bundle(), TEXT, "le chat")


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"text": "x" * 9}, "text", "must have at most 8 tokens, got 10"),
        ({"text": "a", "target": "x" * 9}, "target", "must have at most 8 tokens, got 10"),
        ({"text": "x" * 101}, "text", "must have at most 100 characters, got 101"),
        ({"text": "a", "target": "x" * 101}, "target", "must have at most 100 characters, got 101"),
    ],
)
def test_what_is_too_much_is_refused(body, field, message):
    with serving(Limits(max_inspect_tokens=8, max_text_chars=100)) as client:
        answer = client.post("/v1/walk", json=body)
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["field"], error["message"]) == (field, message)
    assert json.dumps(body)[:20] not in answer.text


def served(max_length_ratio: float = 1.0) -> LoadedModel:
    """The tiny model as ``pellucid serve`` opens it."""
    table = {**bundle().settings["decoding"], "max_length_ratio": max_length_ratio}
    settings = DecodingConfig.parse(table)
    own = Translator(bundle(), settings, logs_warnings=False, literals_in=literals_in)
    return LoadedModel(ModelPlace("tiny", Path("tiny")), own, bundle())


def test_an_inspection_is_of_the_translation_that_is_served():
    """A web address is copied."""
    text = "https://example.com/a"
    model = served()
    answer = json.loads(look_inside(model, InspectRequest(text=text), Limits(), Watcher(0)))
    [translation] = model.translate([text], model.settings)
    assert answer["text"] == translation.text == text


def test_the_model_s_own_translation_is_no_longer_than_may_be_inspected():
    """With 16 tokens for each of the source only the model's 64 positions would end it."""
    model = served(max_length_ratio=16)
    limits = Limits(max_inspect_tokens=8)
    answer = json.loads(look_inside(model, InspectRequest(text="je"), limits, Watcher(0)))
    assert len(answer["target_tokens"]) == 8 + 1


class Watcher:
    """Ends the work at its ``last`` call."""

    needs_steps = False

    def __init__(self, last: int) -> None:
        self.last = last
        self.calls = 0

    def before_step(self, length: int) -> None:
        self.calls += 1
        if self.calls == self.last:
            raise CancelledError("nobody waits any more")

    def saw_step(self, step: object) -> None: ...


@pytest.mark.parametrize(
    "ask",
    [
        functools.partial(walk_through, request=WalkRequest(text="je")),
        functools.partial(look_inside, request=InspectRequest(text=TEXT)),
    ],
)
def test_every_step_can_be_ended(ask):
    """When nobody waits any more: at the first step, at the last, and at some between."""
    tiny, limits = model(), Limits()
    whole = Watcher(0)
    assert ask(tiny, limits=limits, watcher=whole)
    assert whole.calls > 10
    for last in (1, whole.calls // 3, 2 * whole.calls // 3, whole.calls - 1, whole.calls):
        watcher = Watcher(last)
        with pytest.raises(CancelledError):
            ask(tiny, limits=limits, watcher=watcher)
        assert watcher.calls == last


def write_larger_bundle(folder: Path) -> Path:
    """A walk over 120 tokens takes it most of a minute."""
    tokenizer = bundle().source_tokenizer
    table = {"d_model": 128, "d_ff": 512, "heads": 4, "encoder_layers": 2, "decoder_layers": 2}
    config = parse_model_config(table)
    made = build_model(config, tokenizer.vocabulary_size, tokenizer.vocabulary_size, seed=0)
    settings = {"model": config.to_table(), "decoding": {"max_length": 8}}
    larger = Bundle(made.eval(), tokenizer, tokenizer, settings, manifest={})
    save_bundle(folder, larger, card="A model for tests.", details={"step": 1})
    return folder


def test_a_long_walk_holds_up_neither_others_nor_the_end(tmp_path: Path):
    folder = write_larger_bundle(tmp_path / "larger")
    text = "un " * 60
    body = json.dumps({"text": text, "target": text}).encode()
    head = b"POST /v1/walk HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with (
        serving_process(folder, "--engine", "torch", "--max-grace-seconds", 0.1) as server,
        server.connect() as client,
    ):
        client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: "pellucid_inflight 2.0" in server.ask("GET", "/metrics")[1]["text"])
        assert server.ask("POST", "/v1/translate", {"text": "le chat"})[0] == 200
        assert server.ask("GET", "/livez")[0] == 200
        server.signal(signal.SIGTERM)  # in the midst of it; serving_process expects exit code 0
