"""``pellucid serve``: the options of the server, its preparations, and the command.

The order of the preparations matters: the socket listens and a small process answers 503 before
PyTorch and the models are imported and loaded.
"""

import contextlib
import errno
import functools
import ipaddress
import json
import logging
import os
import re
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pellucid.backends import ComputeType, EngineName
from pellucid.cli.options import NAME, FiniteRange, all_of, require_model
from pellucid.cli.signals import leave
from pellucid.cli.streams import visible
from pellucid.core import system
from pellucid.core.errors import (
    ConfigError,
    InputMissingError,
    MissingExtraError,
    UnsupportedSystemError,
)
from pellucid.serve.limits import Limits
from pellucid.serve.server import SHARED_FIGURES
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.starting import answer_while_starting

if TYPE_CHECKING:
    from pellucid.serve.models import ModelPlace


_Command = TypeVar("_Command", bound=Callable[..., Any])


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the value of an option in the argument ``options`` of the command."""
    ctx.params.setdefault("options", {})[parameter.name] = value


def _option(name: str, default: Any, text: str, kind: Any = None) -> Callable[[_Command], _Command]:
    return click.option(
        name,
        default=default,
        type=kind,
        show_default=default is not None,
        expose_value=False,
        callback=_keep,
        help=text,
    )


def _several(name: str, metavar: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(
        name, multiple=True, metavar=metavar, expose_value=False, callback=_keep, help=text
    )


def _flag(name: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(name, is_flag=True, expose_value=False, callback=_keep, help=text)


_OPTIONS = [
    _option("--host", "127.0.0.1", "Address to listen on."),
    _option(
        "--port", 8000, "Port to listen on; 0 takes any that is free.", click.IntRange(0, 65535)
    ),
    _option("--workers", 1, "Processes that answer.", click.IntRange(1, 64)),
    _option(
        "--threads",
        None,
        "Threads of one operation in a worker; by default its share of the cores, one fewer for"
        " models of up to 10 million parameters.",
        click.IntRange(1),
    ),
    _option(
        "--batch-wait-ms",
        5.0,
        "How long an idle model waits for more requests.",
        FiniteRange(0, 1000),
    ),
    _option(
        "--cache-bytes",
        0,
        "Bytes of translations that each worker remembers, for sentences that come again; 0"
        " remembers none.",
        click.IntRange(0),
    ),
    _option("--engine", "auto", "The engine that searches.", click.Choice(get_args(EngineName))),
    _option(
        "--compute-type",
        None,
        "The type to compute in; float32 unless given, int8 for the engine kernels.",
        click.Choice(get_args(ComputeType)),
    ),
    _several("--languages", "NAME=en-de", "Languages of a model whose bundle does not name them."),
    _several(
        "--glossary", "NAME=FILE", "TSV file of terms that requests may ask for by this name."
    ),
    _option("--api-key-file", None, "File with one key, or sha256:HASH, a line.", NAME),
    _flag("--insecure-no-auth", "Accept requests without a key from any network."),
    _several("--allowed-host", "NAME", "Host name that requests may use; * is any."),
    _several(
        "--cors-origin", "ORIGIN", "Origin whose pages may send requests, as https://example.org."
    ),
    _option(
        "--log-format",
        "text",
        "Lines of the log: text, or an object of JSON each.",
        click.Choice(["text", "json"]),
    ),
    _flag("--log-text", "Write the text of users to the log."),
    *(
        _option(
            "--" + name.replace("_", "-"),
            field.default,
            (field.description or "").replace("``", "").replace("\n", " "),
            field.annotation,
        )
        for name, field in Limits.model_fields.items()
    ),
]


_FOLDERS = "pellucid-figures-"
"""How the names of folders begin that the workers of one server share."""
_KEY_VARIABLE = "PELLUCID_API_KEY"
_OTHER_FILES = 256
"""Files that may be open beside connections: of models, metrics, documents and the process."""
_HINTS_TO_LISTEN = {
    errno.EADDRINUSE: "; hint: end the program that has it, or choose another --port (0: any free)",
    errno.EACCES: "; hint: ports below 1024 are for the system; choose another --port",
    errno.EADDRNOTAVAIL: "; hint: --host must be an address of this machine",
}
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?")
"""A code with a script and a region, as BCP 47 writes them."""
_HOST = re.compile(r"[A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\]")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


@click.command()
@click.argument("bundles", type=NAME, nargs=-1, required=True, metavar="[NAME=]BUNDLE...")
@all_of(_OPTIONS)
@click.pass_obj
def serve(obj: dict[str, bool], bundles: tuple[str, ...], options: dict[str, Any]) -> None:
    """Answer requests over HTTP with each BUNDLE: a bundle folder, a run folder or hf://ORG/NAME.

    The printed address shows a page to try it, and describes its interface at /docs. The
    environment variable PELLUCID_API_KEY may hold a key as well. SIGTERM lets running requests
    end, SIGHUP reads the models and the key file again.

    \b
    Examples:
      pellucid serve runs/demo
      pellucid serve de=runs/en-de runs/demo --port 8080 --workers 2
    """
    begun = time.monotonic()
    if system.LACKS_POSIX:
        raise UnsupportedSystemError("the server")

    # Wrong options fail first, before the port is opened.
    keys = _read_keys(options["api_key_file"])
    _check_exposure(options["host"], has_key=bool(keys), is_open=options["insecure_no_auth"])
    limits = Limits.parse({name: options[name] for name in Limits.model_fields}, "limits")
    hosts, origins = _hosts(options), _origins(options)
    _raise_open_files(limits.max_connections)

    for each in bundles:
        require_model(_name_and_path(each)[1])

    # The port is taken before anything heavy is imported: clients wait instead of being refused.
    listener = listen(options["host"], options["port"])
    # Until the workers install their own handlers.
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the models are about to be loaded anyway

    # Forked before any heavy import, so that the child answers at once and stays small.
    starting = answer_while_starting(
        listener,
        max_seconds=limits.max_receipt_seconds,
        max_connections=limits.max_connections,
        max_head_bytes=limits.max_header_bytes,
    )

    with _shared_folder(options["workers"]) as shared:
        try:
            # Imports prometheus_client, which reads the variable that `_shared_folder` sets.
            from pellucid.serve.server.process import ServerPlan
            from pellucid.serve.server.supervisor import run_workers
        except ModuleNotFoundError as error:
            raise MissingExtraError(str(error.name), "serve", "pellucid serve") from None

        from pellucid.serve.http.serving import Serving
        from pellucid.serve.server.guard import Policy

        serving = Serving(
            places=_places(bundles, options),
            limits=limits,
            shared=shared,
            policy=Policy(
                keys=KeyRing(keys),
                hosts=hosts,
                origins=origins,
                log_text=options["log_text"],
            ),
            batch_wait_seconds=options["batch_wait_ms"] / 1000,
            threads=options["threads"],
            workers=options["workers"],
            cache_bytes=options["cache_bytes"],
            read_keys=functools.partial(_read_keys, options["api_key_file"]) if keys else None,
        )
        _log_in_lines(quiet=obj["quiet"], kind=options["log_format"])

        def announce() -> None:
            for place in serving.places:
                click.echo(f"serving {place.name} ({place.path})", err=True)
            guarded = "with an API key" if keys else "without an API key"
            seconds = time.monotonic() - begun
            click.echo(f"ready after {seconds:.1f} s {guarded}; stop with Ctrl-C", err=True)
            click.echo(_url_of(listener))

        plan = ServerPlan(serving.open, limits, options["workers"])
        run_workers(plan, listener, announce, starting)


@contextlib.contextmanager
def _shared_folder(workers: int) -> Iterator[Path | None]:
    """A folder in which several workers add up their metrics; gives that of their documents."""
    _remove_folders_of_the_dead()
    if workers == 1:
        yield None
        return

    # Removed when the supervisor ends; if it is killed, by the worker that notices; if all are
    # killed, by the next server of this user. The lock is that of all processes forked from here.
    with tempfile.TemporaryDirectory(prefix=_FOLDERS) as folder:
        descriptor = system.open_to_read(Path(folder))
        system.lock(descriptor)
        os.environ[SHARED_FIGURES] = folder
        documents = Path(folder) / "documents"
        documents.mkdir(mode=0o700)
        try:
            yield documents
        finally:
            os.close(descriptor)


def _remove_folders_of_the_dead() -> None:
    """Remove the folders of servers of this user that were killed with all their workers."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*"):
        try:
            descriptor = system.open_to_read(folder)
        except OSError:
            continue  # of another user, or removed meanwhile

        try:
            about = os.fstat(descriptor)
            # One that is empty may have been made just now, and is not locked yet.
            is_own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
            if is_own and any(folder.iterdir()):
                system.lock(descriptor)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue  # its server lives
        finally:
            os.close(descriptor)


def _read_keys(path: str | None) -> list[str]:
    """The API keys of the environment and the file. Raises ConfigError, InputMissingError."""
    own = os.environ.get(_KEY_VARIABLE, "").strip()  # a secret often ends with a line end
    keys = [own] if own else []

    if path is not None:
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except OSError as error:
            raise InputMissingError(f"cannot read {path}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise ConfigError(f"{path} must be text in UTF-8") from None
        found = [(n, line.strip()) for n, line in enumerate(lines, start=1)]
        found = [(n, line) for n, line in found if line and not line.startswith("#")]
        if not found:
            raise ConfigError(f"{path} holds no API key")
        for number, key in found:
            try:
                KeyRing([key])
            except ConfigError as error:
                raise ConfigError(f"{path}, line {number}: {error}", hint=error.hint) from None
        keys += [key for _, key in found]
    return keys


def _check_exposure(host: str, *, has_key: bool, is_open: bool) -> None:
    """Raise ConfigError if others could reach a server without a key."""
    if has_key or is_open or _is_loopback(host):
        return
    raise ConfigError(
        f"a server that others can reach needs an API key, got --host {host} without one",
        hint="give --api-key-file FILE, or --insecure-no-auth if a proxy before it checks keys",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that early clients are not refused.

    The protocol is given explicitly: asyncio disables Nagle's algorithm only on sockets of
    IPPROTO_TCP. With Nagle's algorithm every answer on a kept-alive connection would wait for the
    client's delayed ACK, 40 ms.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except socket.gaierror as error:
        raise ConfigError(
            f"--host must be an address of this machine, got {host!r} ({error.strerror})"
        ) from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    # A restarted server may bind again while old connections are in TIME_WAIT.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    try:
        listener.bind(address)
        listener.listen()
    except OSError as error:
        hint = _HINTS_TO_LISTEN.get(error.errno or 0, "")
        raise OSError(error.errno, f"{error.strerror}{hint}", f"{host}:{port}") from None
    listener.setblocking(False)
    return listener


def _url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _places(bundles: tuple[str, ...], options: dict[str, Any]) -> "list[ModelPlace]":
    """The models to serve. Raises ConfigError, and InputMissingError if one does not exist."""
    from pellucid.backends.load import is_marian_folder
    from pellucid.bundle import find_bundle
    from pellucid.serve.models import ModelPlace, name_places
    from pellucid.text.glossary import Glossary

    given: dict[str, tuple[str, str]] = {}
    for each in options["languages"]:
        name, _, codes = each.rpartition("=")
        _require_new("--languages", name, given)
        given[name] = _pair_of(codes, each)

    glossaries: list[tuple[str, Path]] = []
    for each in options["glossary"]:
        name, separator, file = each.partition("=")
        if not (name and separator and file):
            raise ConfigError(f"--glossary must look like NAME=FILE, got {each!r}")
        _require_new("--glossary", name, dict(glossaries))
        Glossary.read(Path(file))  # fails now, as the bundles below
        glossaries.append((name, Path(file)))

    places = []
    for name, path in name_places([_name_and_path(each) for each in bundles]):
        if not is_marian_folder(path):
            find_bundle(path)  # fails now, with a clear message, instead of in a worker
        pair = given.get(name, given.get(""))
        engine, compute_type = options["engine"], options["compute_type"]
        places.append(ModelPlace(name, path, pair, engine, compute_type, tuple(glossaries)))

    unknown = given.keys() - {place.name for place in places} - {""}
    if unknown:
        names = ", ".join(place.name for place in places)
        raise ConfigError(f"--languages names {sorted(unknown)[0]!r}; there are: {names}")
    return places


def _require_new(option: str, name: str, given: Container[str]) -> None:
    """Raise ConfigError for a name that stands twice: only one of the two would count."""
    if name in given:
        raise ConfigError(f"{option} is given twice for {name or 'all models'}")


def _name_and_path(bundle: str) -> tuple[str, str]:
    """The two parts of ``NAME=BUNDLE``; the name is empty if all of it is a bundle's path."""
    name, separator, path = bundle.partition("=")
    is_path = not separator or Path(bundle).exists()  # such as runs/lr=0.1
    return ("", bundle) if is_path else (name, path)


def _pair_of(codes: str, option: str) -> tuple[str, str]:
    """Both codes of ``en-de``, ``en-pt-BR`` or ``zh-Hans:en``. Raises ConfigError."""
    if codes.count("-") == 1 and ":" not in codes:
        codes = codes.lower()
    cuts = [at for at, character in enumerate(codes) if character in "-:"]
    pairs = [(codes[:at], codes[at + 1 :]) for at in cuts]
    pairs = [pair for pair in pairs if all(map(_LANGUAGE.fullmatch, pair))]
    if len(pairs) != 1:
        raise ConfigError(
            f"--languages must look like NAME=en-de, got {option!r}",
            hint="codes with a script or a region: NAME=zh-Hans:pt-BR",
        )
    return pairs[0]


def _hosts(options: dict[str, Any]) -> frozenset[str]:
    """The names that requests may use. Raises ConfigError for anything but a name."""
    for name in options["allowed_host"]:
        if name != "*" and not _HOST.fullmatch(name):
            raise ConfigError(
                f"--allowed-host must be a host name, got {name!r}",
                hint="without scheme and port, such as example.org; * is any",
            )
    names = (*options["allowed_host"], options["host"])
    return frozenset(name.lower().removesuffix(".") for name in names)


def _origins(options: dict[str, Any]) -> frozenset[str]:
    """The origins whose pages may send requests. Raises ConfigError for anything else."""
    origins = [origin.lower().rstrip("/") for origin in options["cors_origin"]]
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ConfigError(
                f"--cors-origin must be a scheme and a host, got {origin!r}",
                hint="as browsers send it, such as https://example.org or http://localhost:3000",
            )
    return frozenset(origins)


def _raise_open_files(connections: int) -> None:
    """Let the process open as many files as its connections need, as far as the system allows."""
    wanted = connections + _OTHER_FILES
    most = system.limit_open_files(wanted)
    if most < wanted:
        click.echo(
            f"warning: {most} files may be open, too few for {connections} connections; give"
            f" --max-connections {max(1, most - _OTHER_FILES)}, or raise the limit (ulimit -n)",
            err=True,
        )


class _Lines(logging.Formatter):
    """One line per event: unprintable characters of a client, such as line ends, are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event: its second, level and message."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        text = f"{moment}Z {record.levelname} {record.getMessage()}"
        return visible(text)


class _Objects(logging.Formatter):
    """One object of JSON per event, in ASCII, so that no character of a client ends its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object of an event."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            # Those of a request, by name.
            **getattr(record, "fields", {}),
        }
        return json.dumps(entry)


def _log_in_lines(*, quiet: bool, kind: str) -> None:
    logger: Any = logging.getLogger()
    handler = logging.StreamHandler()
    handler.setFormatter(_Objects() if kind == "json" else _Lines())
    logger.handlers = [handler]
    logger.setLevel(logging.WARNING)
    own = logging.getLogger("pellucid")
    own.handlers = []
    own.setLevel(logging.WARNING if quiet else logging.INFO)

    # A terminal shows the choice of an engine only with --verbose; a server's log always does.
    logging.getLogger("pellucid.backends").setLevel(logging.NOTSET)
