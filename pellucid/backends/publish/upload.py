"""Sends a folder to a repository of the Hub that the user has named, through the Hub's client."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pellucid.backends import HUB_PREFIX
from pellucid.backends.hub import is_file_of_model, reason_of, repository_of
from pellucid.core.errors import (
    ConfigError,
    InputMissingError,
    MissingExtraError,
    OutputExistsError,
    PellucidError,
    WriteError,
)
from pellucid.core.version import __version__

Kind = Literal["model", "space"]


class Uploader:
    """The way to one name on the Hub, which may be that of a model and of a Space.

    Nothing is sent before ``send``. Raises ConfigError for a wrong address or without a token,
    MissingExtraError without ``huggingface_hub``.
    """

    def __init__(self, address: str) -> None:
        self.repository = repository_of(address)
        try:
            import huggingface_hub
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                str(error.name), "hub", "publishing", instead="write a folder by --out"
            ) from None

        if not huggingface_hub.get_token():
            raise ConfigError(
                f"publishing to {address} needs a token of the Hub that may write",
                hint="hf auth login, or set HF_TOKEN; --out FOLDER alone sends nothing",
            )
        # Read now and not when the client is imported, so that a process may change it.
        self._api = huggingface_hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)

    def check(self, kind: Kind, *, update: bool) -> None:
        """Raise OutputExistsError if there is such a repository, unless it is to be updated.

        Raises InputMissingError if the Hub cannot be reached or refuses.
        """
        with self._errors(kind):
            exists = self._api.repo_exists(self.repository, repo_type=kind)
        if exists and not update:
            raise OutputExistsError(
                f"{self._shown(kind)} exists already", hint="--update adds a commit to it"
            )

    def send(self, folder: Path, kind: Kind, *, public: bool, update: bool) -> str:
        """Send the files of ``folder`` in one commit; returns the address of the commit.

        A new repository is private unless it is to be ``public``, and one that is updated becomes
        public, or stays as it is. Of one that is updated, files of
        an earlier model that the new one does not have are removed; all others stay.
        Raises as ``check``.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        names = sorted(path.name for path in folder.iterdir())
        with self._errors(kind):
            self._api.create_repo(
                self.repository,
                repo_type=kind,
                private=not public,
                exist_ok=update,
                space_sdk="static" if kind == "space" else None,
            )
            there: list[str] = []
            if update and kind == "model":
                there = self._api.list_repo_files(self.repository, repo_type=kind)
            stale = [each for each in there if is_file_of_model(each) and each not in names]
            commit = self._api.create_commit(
                self.repository,
                [
                    *(CommitOperationAdd(each, folder / each) for each in names),
                    *(CommitOperationDelete(each) for each in stale),
                ],
                commit_message=f"Published with Pellucid {__version__}",
                repo_type=kind,
            )
            if public and update:
                # one that was there has kept its visibility
                self._api.update_repo_settings(self.repository, private=False, repo_type=kind)
        return str(commit.commit_url)

    def _shown(self, kind: Kind) -> str:
        return (
            f"{HUB_PREFIX}{self.repository}" if kind == "model" else f"the Space {self.repository}"
        )

    @contextlib.contextmanager
    def _errors(self, kind: Kind) -> Iterator[None]:
        """Raise what goes wrong in the client as an error of ours."""
        from huggingface_hub import errors

        what = self._shown(kind)
        try:
            yield
        except (PellucidError, KeyboardInterrupt):
            raise
        except errors.HfHubHTTPError as error:
            raise InputMissingError(
                f"the Hub refuses {what}: {reason_of(error)}",
                hint="hf auth whoami says whose token it is; it must be one that may write there",
            ) from None
        except OSError as error:
            if error.errno is not None and isinstance(error.filename, str):  # of the disk
                raise WriteError(f"cannot read {error.filename}: {error.strerror}") from None
            raise InputMissingError(f"the Hub cannot be reached for {what}: {error}") from None
        except Exception as error:  # of a library below the client: no network, no answer
            raise InputMissingError(f"cannot send {what}: {reason_of(error)}") from None
