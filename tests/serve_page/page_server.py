"""The real server in a process of its own, with two tiny models whose nonsense never changes."""

import asyncio
import contextlib
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from commands import running

from pellucid.bundle import Bundle, save_bundle
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.serve.http.app import make_app
from pellucid.serve.limits import Limits
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import ModelPlace, open_model
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.connection import Connection, Site
from pellucid.serve.server.guard import Policy
from pellucid.serve.service import Service
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import train_tokenizer

LINES = (
    "je suis étudiant",
    "le petit chat noir ne dort pas sur la grande table rouge",
    "où est la maison de mon père et de ma mère ?",
    "une vieille dame lit le journal dans le train",
)
_TABLE = {"d_model": 32, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}


RECURRENT = {"kind": "rnn", "d_model": 32, "encoder_layers": 1, "decoder_layers": 1}


def write_model(folder: Path, seed: int, table: Mapping[str, object] = _TABLE) -> Path:
    """A bundle of random weights; its tokenizer spells what it does not know in bytes."""
    tokenizer = train_tokenizer(LINES, TokenizerConfig(kind="bpe", vocabulary_size=340))
    config = parse_model_config(dict(table))
    size = tokenizer.vocabulary_size
    model = build_model(config, size, size, seed=seed).eval()
    for parameter in model.parameters():
        parameter.data *= 2.0  # fresh weights hardly tell one word from another
    settings = {
        "model": config.to_table(),
        "decoding": {"beam_size": 2, "max_length_extra": 6},
        "data": {"source": ["train.fr"], "target": ["train.en"]},
    }
    bundle = Bundle(model, tokenizer, tokenizer, settings, manifest={})
    save_bundle(folder, bundle, card="A model for tests.", details={"step": 1})
    return folder


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """``pellucid serve`` on a free port; gives its address and ends it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        out.touch()
        with running("serve", *arguments, "--port", 0, stdout=out, others_run=True) as command:
            try:
                while not (address := out.read_text()).endswith("\n"):
                    assert Path(f"/proc/{command.pid}").exists(), "the server did not start"
                    time.sleep(0.01)
                yield address.strip().rstrip("/")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(command.pid, signal.SIGTERM)


@contextlib.contextmanager
def serving_with_key(path: Path, key: str, limits: Limits | None = None) -> Iterator[str]:
    """The same application in a thread of this process, which starts sooner."""
    service = Service(limits or Limits(), Metrics())
    service.put(open_model(ModelPlace("one", path)))
    service.is_ready = True
    listener = socket.create_server(("127.0.0.1", 0))
    app = make_app(service, Policy(keys=KeyRing([key])))
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()

    async def serve() -> None:
        site = Site(app, service.limits, service.metrics.note_refusal)
        async with await loop.create_server(lambda: Connection(site), sock=listener):
            await stopping.wait()
            for connection in site.connections:
                connection.abort()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        service.stop(10.0)
