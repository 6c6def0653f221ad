"""Models by name: ``hf://ORG/NAME`` of the Hugging Face Hub, through its own client.

hub/ORG/REVISION/NAME/       the files of one revision
hub/ORG/REVISION/NAME.json   their SHA-256, which are compared whenever they are opened
hub/ORG/NAME.json            which revision each name of one, such as ``main``, was

A revision is fetched once. A model without a revision is the one that was fetched first; ``@main``
asks for the newest. Of a repository only the files of a model are fetched, by their plain names,
and they are read as those of any stranger are: as data.
"""

import contextlib
import hashlib
import http
import json
import logging
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pellucid.backends import is_hub_address
from pellucid.backends.user_cache import locked_folder, user_cache
from pellucid.core.errors import (
    BundleError,
    ConfigError,
    CorruptError,
    InputMissingError,
    MissingExtraError,
    PellucidError,
    WriteError,
)
from pellucid.core.files import (
    LARGEST_TABLE,
    MANIFEST_NAME,
    TEMPORARY_PREFIX,
    read_plain,
    remove_leftovers,
    sha256_of,
    write_errors,
    write_file,
)
from pellucid.core.run_names import CONFIG_FILE
from pellucid.text.seen_words import WORDS_FILE
from pellucid.text.tokenizers.interface import SAVED_AS

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_ADDRESS = re.compile(rf"hf://({_PART})/({_PART})(?:@([A-Za-z0-9](?:[A-Za-z0-9._/-]{{0,99}})))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MARIAN = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "vocab.json",
    "target_vocab.json",
    "source.spm",
    "target.spm",
)
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""Either suffices; the first that is there is fetched."""
_OF_BUNDLE = (CONFIG_FILE, MANIFEST_NAME, WORDS_FILE)
_OF_TOKENIZERS = tuple(
    name + suffix for name in ("shared", "source", "target") for suffix in SAVED_AS
)
_MOST_BYTES = 8 << 30
_MOST_FILES = 100
_FIRST_OF_SERVER_ERRORS = 500
_FETCHED_AGAIN = "remove the folder: it is fetched again"
_FIRST = ""
"""The name under which the revision that was fetched first is kept."""

_log = logging.getLogger("pellucid.hub")


def folder_of(path: str) -> Path:
    """The folder that a command names: the path itself, or that of a model of the Hub.

    Raises as ``fetch`` does.
    """
    return fetch(path) if is_hub_address(path) else Path(path)


def fetch(address: str) -> Path:
    """The folder of a model of the Hub, which is downloaded the first time.

    ``address`` is ``hf://ORG/NAME``, or with ``@`` and a commit, tag or branch behind it. A model
    whose revision is known is opened without network; the log names the revision.

    Raises ConfigError for a wrong address, InputMissingError if there is no such model or it cannot
    be reached, BundleError for a repository without a model, CorruptError for files that are not
    what they should be, MissingExtraError without ``huggingface_hub``, WriteError.
    """
    owner, name, wanted = _parts_of(address)
    base = user_cache()
    if base is None:
        raise WriteError("a model of the Hub needs a cache folder: set XDG_CACHE_HOME or HOME")
    place = base / "hub" / owner

    commit = _known_commit(wanted, _read_table(place / f"{name}.json"))
    if commit is None or not (place / commit / name).is_dir():
        with write_errors(place), locked_folder(place):
            commit = _download(place, owner, name, wanted)
    folder = place / commit / name
    _verify(folder)
    _log.info("hf://%s/%s is revision %s", owner, name, commit)
    return folder


def repository_of(address: str) -> str:
    """``ORG/NAME`` of an address without a revision. Raises ConfigError for any other."""
    owner, name, revision = _parts_of(address)
    if revision is not None:
        raise ConfigError(f"what is sent becomes a new revision, got one in {address!r}")
    return f"{owner}/{name}"


def is_file_of_model(name: str) -> bool:
    """Whether a file of a repository may be one of a model that Pellucid has written there."""
    return name in (*_MARIAN, *_WEIGHTS, *_OF_BUNDLE, *_OF_TOKENIZERS)


def _parts_of(address: str) -> tuple[str, str, str | None]:
    found = _ADDRESS.fullmatch(address)
    owner, name, revision = found.groups() if found is not None else ("", "", None)
    # What the Hub itself allows in no name; its client would refuse it in other words.
    is_wrong = ".." in address or "--" in owner or "--" in name or name.endswith(".git")
    if found is None or is_wrong:
        raise ConfigError(
            f"a model of the Hub is hf://ORG/NAME or hf://ORG/NAME@REVISION, got {address!r}"
        )
    return owner, name, revision


def _known_commit(wanted: str | None, known: Mapping[str, str]) -> str | None:
    """The commit, if it can be told without asking: a full one, or the first that was fetched."""
    if wanted is not None and _COMMIT.fullmatch(wanted):
        return wanted
    return known.get(_FIRST) if wanted is None else None


def _download(place: Path, owner: str, name: str, wanted: str | None) -> str:
    """Fetch a revision unless another process did, and note what it is called; returns its commit.

    The caller holds the lock of ``place``.
    """
    known = _read_table(place / f"{name}.json")
    commit = _known_commit(wanted, known)
    if commit is not None and (place / commit / name).is_dir():
        return commit

    repository = f"{owner}/{name}"
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            str(error.name), "hub", f"hf://{repository}", instead="name a folder"
        ) from None

    # Read now and not when the client is imported, so that a process may change it.
    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        about = huggingface_hub.HfApi(endpoint=endpoint).model_info(
            repository, revision=commit or wanted or "main", files_metadata=True
        )
    except errors.RepositoryNotFoundError:
        raise InputMissingError(
            f"there is no model hf://{repository}, or it is private",
            hint="hf auth login, if it is yours",
        ) from None
    except errors.RevisionNotFoundError:
        raise InputMissingError(f"hf://{repository} has no revision {wanted!r}") from None
    except Exception as error:
        if isinstance(error, errors.HfHubHTTPError):
            status = int(error.response.status_code)
            if status != http.HTTPStatus.TOO_MANY_REQUESTS and status < _FIRST_OF_SERVER_ERRORS:
                raise InputMissingError(
                    f"the Hub refuses hf://{repository}: {reason_of(error)}"
                ) from None
        # It is out of order, or of a library below the client: no network, no name, no answer.
        last = str(known.get(wanted or _FIRST, ""))
        if last and (place / last / name).is_dir():
            _log.warning("the Hub cannot be reached: hf://%s is as last fetched", repository)
            return last
        raise InputMissingError(
            f"hf://{repository} was not fetched before, and the Hub cannot be reached"
            f" ({type(error).__name__})",
            hint="with a network the first time; afterwards none is needed",
        ) from None

    found = str(about.sha)
    if not _COMMIT.fullmatch(found) or (commit is not None and found != commit):
        raise CorruptError(f"the Hub gives no commit for hf://{repository}, but {found[:60]!r}")
    if not (place / found / name).is_dir():
        for revision in place.glob("*/"):
            remove_leftovers(revision)  # of downloads that were killed
        siblings = {each.rfilename: each for each in about.siblings or ()}
        _fill(place / found / name, repository, found, siblings, endpoint)

    changed = {_FIRST: found, **known, wanted or _FIRST: found}
    write_file(place / f"{name}.json", json.dumps(changed).encode())
    return found


def reason_of(error: BaseException) -> str:
    """The first line of an error, and of that which is behind it."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return first if error.__cause__ is None else f"{first} ({reason_of(error.__cause__)})"


def _fill(
    folder: Path, repository: str, commit: str, siblings: Mapping[str, Any], endpoint: str | None
) -> None:
    """Fetch the files of a model into a folder that appears complete, with their hashes beside."""
    from huggingface_hub import hf_hub_download

    temporary = folder.parent / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"

    def get(name: str) -> None:
        _log.info("fetching %s of hf://%s", name, repository)
        with _client_errors(repository, name):
            hf_hub_download(
                repository, name, revision=commit, local_dir=temporary, endpoint=endpoint
            )
        _check_file(temporary / name, siblings[name], repository)

    try:
        temporary.mkdir(parents=True)
        names = _names(temporary, repository, siblings, get)
        for name in names:
            if not (temporary / name).exists():
                get(name)
        shutil.rmtree(temporary / ".cache", ignore_errors=True)  # notes of the client

        # The hashes first: a folder without them is never taken for whole.
        hashes = {name: sha256_of(temporary / name) for name in names}
        write_file(folder.with_name(f"{folder.name}.json"), json.dumps(hashes).encode())
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextlib.contextmanager
def _client_errors(repository: str, name: str) -> Iterator[None]:
    """Raise what goes wrong in the client as an error of ours."""
    try:
        yield
    except (PellucidError, KeyboardInterrupt):
        raise
    except OSError as error:
        if error.errno is not None:  # of the disk
            raise WriteError(f"cannot keep {name} of hf://{repository}: {error.strerror}") from None
        raise InputMissingError(
            f"cannot fetch {name} of hf://{repository}: {reason_of(error)}"
        ) from None
    except Exception as error:
        reason = f"{type(error).__name__}: {reason_of(error)}"
        raise InputMissingError(f"cannot fetch {name} of hf://{repository}: {reason}") from None


def _names(
    temporary: Path, repository: str, siblings: Mapping[str, Any], get: Callable[[str], None]
) -> list[str]:
    """The files of the model in a repository: those of a bundle, or of a Marian folder."""
    if MANIFEST_NAME in siblings and CONFIG_FILE in siblings:
        _check_size(siblings, [MANIFEST_NAME], repository, LARGEST_TABLE)
        get(MANIFEST_NAME)
        listed = _read_table(temporary / MANIFEST_NAME).get("files", {})
        names = [MANIFEST_NAME, *(listed if isinstance(listed, dict) else ())]
        plain = [each for each in names if _PLAIN_NAME.fullmatch(each)]
        if len(plain) != len(names) or len(names) > _MOST_FILES:
            raise BundleError(f"hf://{repository} names files that no bundle has")
    else:
        weights = next((name for name in _WEIGHTS if name in siblings), None)
        names = [name for name in _MARIAN if name in siblings]
        if weights is None or "config.json" not in names:
            raise BundleError(
                f"hf://{repository} must hold a bundle of Pellucid, or a Marian model: config.json,"
                f" and {' or '.join(_WEIGHTS)}"
            )
        names.append(weights)

    missing = [name for name in names if name not in siblings]
    if missing:
        raise BundleError(f"hf://{repository} lacks {', '.join(missing)}")
    _check_size(siblings, names, repository, _MOST_BYTES)
    return names


def _check_size(siblings: Mapping[str, Any], names: list[str], repository: str, most: int) -> None:
    total = sum(int(siblings[name].size or 0) for name in names)
    if total > most:
        raise BundleError(
            f"the files of hf://{repository} must have at most {most >> 20:,} MiB,"
            f" have {total >> 20:,}"
        )


def _check_file(path: Path, sibling: Any, repository: str) -> None:
    """Compare a file with the hash that the Hub has of it: SHA-256, or of a small one git's."""
    if path.is_symlink() or not path.is_file():
        raise CorruptError(f"{path.name} of hf://{repository} is no file")
    if sibling.lfs is not None:
        expected, got = str(sibling.lfs.sha256), sha256_of(path)
    elif sibling.blob_id:
        content = path.read_bytes()
        header = b"blob %d\0" % len(content)
        expected = str(sibling.blob_id)
        # Git's name of a content, by which nothing secret is protected.
        got = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
    else:
        return
    if got != expected:
        raise CorruptError(
            f"{path.name} of hf://{repository} should have the hash {expected}, has {got}"
        )


def _verify(folder: Path) -> None:
    """Compare the files with the hashes that were kept when they were fetched."""
    hashes = _read_table(folder.with_name(f"{folder.name}.json"))
    if not hashes:
        raise CorruptError(f"{folder} has no hashes", hint=_FETCHED_AGAIN)
    for name, expected in hashes.items():
        try:
            found = sha256_of(folder / name)
        except OSError as error:
            raise CorruptError(
                f"cannot read {folder / name}, which was fetched: {error.strerror}",
                hint=_FETCHED_AGAIN,
            ) from None
        if found != expected:
            raise CorruptError(
                f"{folder / name} was changed since it was fetched", hint=_FETCHED_AGAIN
            )


def _read_table(path: Path) -> dict[str, Any]:
    """A table of JSON; an empty one if there is none. Raises CorruptError."""
    try:
        table = json.loads(read_plain(path, LARGEST_TABLE))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{path} is not JSON: {error}") from error
    if not isinstance(table, dict):
        raise CorruptError(f"{path} must hold a table, got {type(table).__name__}")
    return table
