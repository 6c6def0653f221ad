"""Imports Pellucid once, then runs each command line it is sent in a fork of itself.

A command is a whole process with its own exit code, signals and streams, as on the command
line, without the seconds that importing torch takes. Requests and answers are JSON lines on a
connection to a socket; one server serves all workers of a run of the tests, each by a fork of
itself that runs one command after the other, and ends with the last of them.
What many commands import is imported here, or each fork would import it again; not
``prometheus_client``, which at its import looks whether there are several workers. What a process
compiles and lists once is there as well: it took most of the time of a short translation.
"""

import ctypes
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from pathlib import Path

import ctranslate2  # noqa: F401
import fastapi  # noqa: F401
import h11  # noqa: F401
import matplotlib.backends.backend_agg
import matplotlib.figure  # noqa: F401
import rich._emoji_codes  # noqa: F401
import sacrebleu.metrics
import sacrebleu.tokenizers.tokenizer_13a
import sacrebleu.tokenizers.tokenizer_none
import sacrebleu.tokenizers.tokenizer_re
import sacrebleu.tokenizers.tokenizer_spm  # noqa: F401
import sacremoses  # noqa: F401
import torch._dynamo  # noqa: F401 - with SymPy: an optimizer's first step asks for it

import pellucid.backends.ctranslate2.engine
import pellucid.backends.ctranslate2.export
import pellucid.backends.ctranslate2.search
import pellucid.backends.load
import pellucid.backends.web.export
import pellucid.cli.ablate
import pellucid.cli.check
import pellucid.cli.demo
import pellucid.cli.display
import pellucid.cli.doctor
import pellucid.cli.evaluate
import pellucid.cli.exchange
import pellucid.cli.inspect_
import pellucid.cli.serve
import pellucid.cli.synthesis
import pellucid.cli.train
import pellucid.cli.translate
import pellucid.decoding.attention
import pellucid.decoding.ensemble
import pellucid.decoding.search.scoring
import pellucid.evaluation.evaluate
import pellucid.inspection.ablation
import pellucid.inspection.capture
import pellucid.inspection.doctor
import pellucid.inspection.figures.canvas
import pellucid.inspection.heads
import pellucid.inspection.laws
import pellucid.inspection.lens
import pellucid.inspection.plain
import pellucid.inspection.saliency
import pellucid.inspection.value_zeroing
import pellucid.parts
import pellucid.serve.models
import pellucid.serve.schema
import pellucid.serve.server.process
import pellucid.serve.shelf
import pellucid.text.check.sides
import pellucid.text.corpus.cleaning
import pellucid.text.corpus.similar
import pellucid.training.automatic
import pellucid.training.calibration
import pellucid.training.measure
import pellucid.training.synthesis
import pellucid.training.train  # noqa: F401
from pellucid.cli import main
from pellucid.documents.protected import has_literals, protect
from pellucid.documents.segments import Segment
from pellucid.model.build import parameter_shapes
from pellucid.model.config import TransformerConfig
from pellucid.text.look_alikes import LookAlikes
from pellucid.text.scripts import wide_characters


def give_up_capabilities() -> None:
    """Let root obey the modes of files and folders as everybody else does."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    none = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, none) == 0


def run_here(request: dict) -> None:
    """Become the command: streams, folder, umask, environment, limits, arguments."""
    os.chdir(request["folder"])
    if request["umask"] is not None:
        os.umask(request["umask"])
    os.environ.update(request["environment"])
    if request["obeys_modes"]:
        give_up_capabilities()
    streams = ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY))
    for (number, flags), path in zip(streams, request["streams"], strict=True):
        if path is None:
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)
            continue
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    if request["largest_file"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest_file"],) * 2)
    sys.argv = ["pellucid", *request["arguments"]]
    try:
        main()
    except SystemExit as leaving:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(leaving.code or 0)  # taking torch down takes longer than most commands


def serve(client: socket.socket) -> None:
    """Fork for each request; the child leaves through the interpreter's own exit."""
    requests, answers = client.makefile("r"), client.makefile("w")
    for line in requests:
        child = os.fork()
        if child == 0:
            requests.detach()
            answers.detach()
            client.close()
            # a suite run in the background of a shell inherits "ignore", which no terminal has
            signal.signal(signal.SIGINT, signal.default_int_handler)
            run_here(json.loads(line))
            return
        print(child, file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def is_over(listener: socket.socket, lock: int) -> bool:
    """Whether nobody is there any more and nobody is about to come, who would hold the lock."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    is_called, _, _ = select.select([listener], [], [], 0)
    if is_called:
        fcntl.flock(lock, fcntl.LOCK_UN)
    return not is_called


def main_loop(path: Path) -> None:
    """Fork for each worker that connects to the socket ``path``, which the caller has locked."""
    # the first tensor on the meta device makes torch import more
    parameter_shapes(TransformerConfig(), 8, 8)
    # what each process makes when it translates for the first time, or writes a page
    has_literals("a")
    protect(Segment(("a",)), keep_numbers=True)
    LookAlikes.of(frozenset(), str, has_bytes=False)
    wide_characters()
    gc.freeze()  # or every fork would copy what its first collection touches
    gc.set_threshold(20_000)  # as in conftest.py: collections took a thirteenth of all time

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    print("ready", flush=True)
    sessions: set[int] = set()
    has_served = False
    while True:
        is_called, _, _ = select.select([listener], [], [], 0.2)
        if is_called:
            client, _ = listener.accept()
            session = os.fork()
            if session == 0:
                listener.close()
                serve(client)
                return
            client.close()
            sessions.add(session)
            has_served = True
            continue
        sessions -= {each for each in sessions if os.waitpid(each, os.WNOHANG)[0]}
        # asked again and again: another run of the tests may hold the lock for seconds
        if has_served and not sessions:
            lock = os.open(path.with_name("lock"), os.O_RDWR)
            if is_over(listener, lock):
                path.unlink()
                return
            os.close(lock)


if __name__ == "__main__":
    main_loop(Path(sys.argv[1]))
