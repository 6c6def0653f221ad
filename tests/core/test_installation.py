"""The command that adds an extra, from wherever Pellucid was installed."""

import json
import sys
from pathlib import Path

import pytest

from pellucid.core import installation
from pellucid.core.installation import cpu_index, install_command, kind_of_installation


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with pip, into which Pellucid was installed from an index."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(installation.shutil, "which", lambda _: str(tmp_path / "bin" / "pip"))
    monkeypatch.setattr(installation, "has_nvidia_card", lambda: False)
    monkeypatch.setattr(installation, "cpu_index", lambda: "https://cpu.example/cpu")
    monkeypatch.setattr(sys, "platform", "linux")
    _set_pip(monkeypatch, True)
    return tmp_path


def _set_pip(monkeypatch: pytest.MonkeyPatch, is_there: bool) -> None:
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda _: is_there or None)


def installed_from(environment: Path, url: str, **info: object) -> None:
    folder = environment / "packages" / "pellucid-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "direct_url.json").write_text(json.dumps({"url": url, **info}))


def test_pip_in_an_environment(environment: Path, monkeypatch: pytest.MonkeyPatch):
    assert kind_of_installation() == "pip"
    assert install_command("plot") == "pip install 'pellucid[plot]'"
    monkeypatch.setattr(installation.shutil, "which", lambda _: "/another/bin/pip")
    assert install_command("plot") == f"{sys.executable} -m pip install 'pellucid[plot]'"


def test_pytorch_without_cuda_unless_there_is_a_card(
    environment: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = "pip install 'pellucid[train]'"
    first = "pip install torch --index-url https://cpu.example/cpu"
    assert install_command("train") == f"{first} && {whole}"
    monkeypatch.setattr(installation, "cpu_index", lambda: None)
    assert install_command("train") == whole, "an installation without its README"
    monkeypatch.setattr(installation, "has_nvidia_card", lambda: True)
    assert install_command("train") == whole


def test_the_index_for_cpus_is_the_one_that_the_readme_names():
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    found = cpu_index(readme)
    assert found is not None
    assert f"--index-url {found}`" in readme
    assert cpu_index() == found, "by the metadata of the installation"
    assert cpu_index("no address") is None


def test_uv_has_environments_without_pip(environment: Path, monkeypatch: pytest.MonkeyPatch):
    _set_pip(monkeypatch, False)
    assert install_command("plot") == "uv pip install 'pellucid[plot]'"
    assert install_command("train") == "uv pip install --torch-backend auto 'pellucid[train]'"


@pytest.mark.parametrize("origin", ["", " @ file:///a/b.whl"], ids=["index", "wheel"])
def test_tools_of_uv_and_pipx(environment: Path, origin: str):
    if origin:
        installed_from(environment, "file:///a/b.whl", archive_info={})
    (environment / "pipx_metadata.json").touch()
    assert install_command("plot") == f"pipx install --force 'pellucid[plot]{origin}'"
    (environment / "uv-receipt.toml").touch()
    expected = f"uv tool install --torch-backend auto 'pellucid[train]{origin}'"
    assert install_command("train") == expected


def test_a_run_of_uvx(environment: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "prefix", "/cache/uv/archive-v0/abc")
    assert install_command("plot") == "uvx --from 'pellucid[plot]' pellucid"


def test_a_checkout(environment: Path, monkeypatch: pytest.MonkeyPatch):
    folder = environment / "a checkout"
    folder.mkdir()
    installed_from(environment, folder.as_uri(), dir_info={"editable": True})
    assert kind_of_installation() == "checkout"
    expected = f"pip install -c '{folder}/constraints.txt' -e '{folder}[plot]'"
    assert install_command("plot") == expected
    monkeypatch.chdir(folder)
    assert install_command("plot") == "pip install -c constraints.txt -e '.[plot]'"
    assert install_command("train") == (
        "python scripts/install_torch.py && pip install -c constraints.txt -e '.[train]'"
    )
