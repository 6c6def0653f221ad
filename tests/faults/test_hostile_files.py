"""S2: whatever a stranger's folder holds, opening it runs no code and gives a named error."""

import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiny_runs

from pellucid.bundle import load_bundle
from pellucid.core.errors import PellucidError
from pellucid.core.files import manifest_text, sha256_of
from pellucid.text.tokenizer import load_tokenizer

PICKLE = b"\x80\x02cos\nsystem\nX\x05\x00\x00\x00false\x85R."


def torch_zip() -> bytes:
    """What torch.save writes: a zip whose data.pkl would be run."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("archive/data.pkl", PICKLE)
        archive.writestr("archive/version", "3\n")
    return memory.getvalue()


def npy() -> bytes:
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + PICKLE


def safetensors_header(size: int) -> bytes:
    return size.to_bytes(8, "little") + b'{"a": 1}'


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "a pickle": PICKLE,
    "a torch.save archive": torch_zip(),
    "a NumPy array of objects": npy(),
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "a header of 2^63 bytes": safetensors_header(2**63),
    "a header of 1 TB": safetensors_header(10**12),
    "deep JSON": b"[" * 200_000,
    "JSON with NaN and a date": b'{"version": NaN, "files": {}}',
    "a lone surrogate": json.dumps({"kind": "word", "tokens": ["\ud800"]}).encode(),
    "YAML that would make an object": b"!!python/object/apply:os.system ['false']",
    "a binary of zeros": bytes(4096),
}


@pytest.fixture
def no_code() -> Iterator[list[str]]:
    """The audit events of code that was run, processes started and sockets opened meanwhile."""
    events: list[str] = []
    watching = [True]

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if watching[0] and event.startswith(
            ("os.system", "subprocess", "socket", "os.exec", "os.posix_spawn", "pickle")
        ):
            events.append(event)

    sys.addaudithook(hear)  # it cannot be taken out again, only silenced
    yield events
    watching[0] = False


def reseal(folder: Path) -> None:
    """Let the manifest vouch for whatever the folder holds, as its maker could."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for name in manifest["files"]:
        file = folder / name
        manifest["files"][name] = {"size": file.stat().st_size, "sha256": sha256_of(file)}
    path.write_bytes(manifest_text(manifest))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_in_a_bundle_is_a_named_error(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, no_code: list[str]
):
    """Each file in turn, once as found and once with a manifest that vouches for it."""
    run = tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")
    [bundle] = (run / "bundles").iterdir()
    whole = {path: path.read_bytes() for path in bundle.iterdir()}
    for path in whole:
        if path.name == "README.md":
            continue
        steps: list[Callable[[Path], None]] = [lambda _: None]
        if path.name != "manifest.json":
            steps.append(reseal)
        for prepare in steps:
            path.write_bytes(HOSTILE[name])
            prepare(bundle)
            with pytest.raises(PellucidError):
                load_bundle(bundle)
        for each, content in whole.items():
            each.write_bytes(content)
    assert no_code == []


@pytest.mark.parametrize("suffix", ["vocab.json", "spm"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_tokenizer_is_a_named_error(
    name: str, suffix: str, tmp_path: Path, no_code: list[str]
):
    (tmp_path / f"source.{suffix}").write_bytes(HOSTILE[name])
    with pytest.raises(PellucidError, match=r"source\."):
        load_tokenizer(tmp_path, "source")
    assert no_code == []
