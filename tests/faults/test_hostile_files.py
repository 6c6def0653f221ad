"""S2: whatever a stranger's folder holds, opening it runs no code and gives a named error."""

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiny_runs
from fuzz import tiny_bundle
from sealing import reseal

from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.backends.huggingface.import_folder import read_huggingface
from pellucid.backends.load import load
from pellucid.bundle import load_bundle
from pellucid.core.errors import PellucidError, UnsafeFormatError
from pellucid.core.files import manifest_text
from pellucid.text.tokenizers.tokenizer import load_tokenizer

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


@pytest.fixture
def bundle(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to be harmed."""
    run = tiny_runs.copy_of_tiny_run(tmp_path_factory.getbasetemp(), tmp_path / "run")
    return next((run / "bundles").iterdir())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_in_a_bundle_is_a_named_error(name: str, bundle: Path, no_code: list[str]):
    """Each file in turn, once as found and once with a manifest that vouches for it."""
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


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian folder; each test puts back what it took."""
    folder = tmp_path_factory.mktemp("hostile") / "marian"
    export_huggingface(tiny_bundle(), folder)
    return folder


READ_BY_IMPORT = ("config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_in_a_marian_folder_is_a_named_error(
    name: str, marian: Path, no_code: list[str]
):
    weights = marian / "model.safetensors"
    for path in (marian / each for each in READ_BY_IMPORT):
        content = path.read_bytes()
        path.write_bytes(HOSTILE[name])
        with pytest.raises(PellucidError):
            read_huggingface(marian)
        path.write_bytes(content)
    aside = weights.rename(weights.with_suffix(".aside"))
    (marian / "pytorch_model.bin").write_bytes(HOSTILE[name])
    with pytest.raises(UnsafeFormatError, match=r"pytorch_model\.bin"):
        read_huggingface(marian)
    (marian / "pytorch_model.bin").unlink()
    aside.rename(weights)
    read_huggingface(marian)
    assert no_code == []


def test_a_search_that_would_never_end_is_refused(bundle: Path):
    change_config(bundle, "max_length = 6\n", "max_length = 1000000000\n")
    change_config(bundle, "beam_size = ", "beam_size = 1000000")
    with pytest.raises(PellucidError) as caught:
        load(bundle, "torch")
    assert "max_length must be at most 131072, got 1000000000" in str(caught.value)
    assert "beam_size must be at most 10000, got 1000000" in str(caught.value)


def change_config(bundle: Path, line: str, by: str) -> None:
    path = bundle / "config.toml"
    text = path.read_text()
    assert line in text
    path.write_text(text.replace(line, by))
    reseal(bundle)


@pytest.mark.parametrize(
    ("line", "by", "message"),
    [
        ("d_model = 16", "d_model = 65536", r"should be \(\d+, 65536\), is \(\d+, 16\)"),
        ("d_model = 16", "d_model = 1000000000", "d_model: input should be less than or equal"),
        ("encoder_layers = 2", "encoder_layers = 200", "and [0-9]+ more"),
        ("encoder_layers = 2", "encoder_layers = 99999999", "less than or equal to 1000"),
        ("d_ff = 16", "d_ff = 1000000", r"should be \(1000000, 16\), is \(16, 16\)"),
        ("heads = 2", "heads = 99999999", "less than or equal to 65536"),
    ],
)
def test_absurd_sizes_are_refused_before_memory_is_taken(
    line: str, by: str, message: str, bundle: Path, monkeypatch: pytest.MonkeyPatch
):
    change_config(bundle, line, by)
    # were it called, it would fail
    monkeypatch.setattr("pellucid.model.stored.build_unfilled", None)
    with pytest.raises(PellucidError, match=message) as caught:
        load_bundle(bundle)
    assert str(bundle) in str(caught.value)


def test_a_config_that_contradicts_its_tokenizers_names_the_folder(bundle: Path):
    change_config(bundle, "share_embeddings = false", "share_embeddings = true")
    with pytest.raises(PellucidError, match="needs one vocabulary for both sides") as caught:
        load_bundle(bundle)
    assert str(bundle / "config.toml") in str(caught.value)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "a\0b", "..", ""])
def test_a_manifest_that_names_a_path_is_refused(name: str, bundle: Path):
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["files"][name] = {"size": 0, "sha256": ""}
    path.write_bytes(manifest_text(manifest))
    message = "manifest.json is damaged" if "\0" in name else "is missing or not a plain file"
    with pytest.raises(PellucidError, match=message):
        load_bundle(bundle)


@pytest.mark.parametrize("kind", ["symlink", "device", "pipe"])
def test_links_devices_and_pipes_in_a_bundle_are_refused(kind: str, bundle: Path):
    for path in sorted(bundle.iterdir()):
        content = path.read_bytes()
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/etc/hostname" if kind == "symlink" else "/dev/zero")
        with pytest.raises(PellucidError) as caught:
            load_bundle(bundle)
        assert path.name in str(caught.value)
        path.unlink()
        path.write_bytes(content)


@pytest.mark.parametrize("name", ["config.toml", "model.safetensors", "source.vocab.json"])
def test_a_file_that_the_manifest_does_not_list_is_not_opened(name: str, bundle: Path):
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["files"][name]
    path.write_bytes(manifest_text(manifest))
    (bundle / name).unlink()
    (bundle / name).symlink_to("/dev/zero")
    with pytest.raises(PellucidError, match=f"{name} .*the manifest does not list it"):
        load_bundle(bundle)


def test_an_endless_number_in_a_config_is_not_toml(bundle: Path):
    change_config(bundle, "d_model = 16", "d_model = " + "1" * 5000)
    with pytest.raises(PellucidError, match=r"config\.toml is not valid TOML"):
        load_bundle(bundle)
