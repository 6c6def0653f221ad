"""A model with random weights behind the real application, in this process."""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

from starlette.testclient import TestClient

from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.serve.http.app import make_app
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import LoadedModel, ModelPlace
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Policy
from pellucid.serve.service import Service
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer

LINES = (
    "je suis étudiant",
    "le petit chat noir ne dort pas sur la grande table rouge",
    "où est la maison de mon père et de ma mère ?",
    "une vieille dame lit le journal dans le train",
    "il pleut. nous parlons! quoi ?",
)
ADDRESS = "http://127.0.0.1"
OPEN = Policy(keys=KeyRing([]))


@functools.cache
def bundle(kind: str = "transformer") -> Bundle:
    """Two small layers; what it says is nonsense, and always the same."""
    tokenizer = train_tokenizer(LINES, TokenizerConfig(kind="bpe", vocabulary_size=340))
    table = {"d_model": 32, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}
    table |= {"positions": "learned", "max_positions": 64}
    if kind == "rnn":  # without attention
        table = {"kind": "rnn", "d_model": 32, "encoder_layers": 1, "decoder_layers": 1}
    config = parse_model_config(table)
    size = tokenizer.vocabulary_size
    model = build_model(config, size, size, seed=0).eval()
    for parameter in model.parameters():
        parameter.data *= 2.0  # fresh weights hardly tell one word from another
    settings = {
        "model": config.to_table(),
        "decoding": {"beam_size": 2, "max_length_extra": 8},
        "data": {"source": ["train.fr"], "target": ["train.en"]},
    }
    return Bundle(model, tokenizer, tokenizer, settings, manifest={})


def write_bundle(folder: Path, kind: str = "transformer") -> Path:
    """The same on disk, for processes."""
    save_bundle(folder, bundle(kind), card="A model for tests.", details={"step": 1})
    load_bundle(folder)
    return folder


def translator() -> Translator:
    return Translator(bundle(), DecodingConfig.parse(bundle().settings["decoding"]))


def model(name: str = "tiny") -> LoadedModel:
    return LoadedModel(ModelPlace(name, Path(name)), translator(), bundle())


def make_service(limits: Limits | None = None, *models: LoadedModel) -> Service:
    service = Service(limits or Limits(), Metrics())
    for each in models or (model(),):
        service.put(each)
    service.is_ready = True
    return service


@contextlib.contextmanager
def client_of(
    service: Service, policy: Policy = OPEN, shared: Path | None = None
) -> Iterator[TestClient]:
    """A client in this process; the service ends with it."""
    app = make_app(service, policy, shared=shared)
    try:
        with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
            yield client
    finally:
        service.stop(10.0)


@contextlib.contextmanager
def serving(limits: Limits | None = None, policy: Policy = OPEN) -> Iterator[TestClient]:
    with client_of(make_service(limits), policy) as client:
        yield client
