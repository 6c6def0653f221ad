"""The commands, as a user runs them."""

from pathlib import Path

from commands import pellucid
from small_bundles import small_bundle

from pellucid.bundle import save_bundle


def test_a_model_goes_out_and_comes_in_again(tmp_path: Path):
    save_bundle(tmp_path / "bundle", small_bundle(norm_eps=1e-6), card="", details={})
    exported = pellucid("export", "huggingface", "bundle", "marian", folder=tmp_path)
    assert (exported.code, exported.out) == (0, "")
    assert exported.err.splitlines()[0].startswith("WARNING: Marian adds 1e-05 to the variance")
    assert exported.err.splitlines()[-1] == "wrote marian"
    imported = pellucid("import", "huggingface", "marian", "again", folder=tmp_path)
    assert imported.code == 0, imported.err
    assert "parameters, self-check passed" in imported.err
    lines = b"je suis\nle chat noir\n"
    said = [
        pellucid("translate", name, "--max-length", "6", folder=tmp_path, stdin=lines).out
        for name in ("bundle", "again")
    ]
    assert said[0] == said[1]
    assert said[0].count("\n") == 2


def test_ctranslate2_is_written_with_the_quantization_asked_for(tmp_path: Path):
    save_bundle(tmp_path / "bundle", small_bundle(), card="", details={})
    arguments = ("export", "ctranslate2", "bundle", "out", "--quantization", "int8")
    result = pellucid(*arguments, folder=tmp_path)
    assert (result.code, result.err.splitlines()[-1]) == (0, "wrote out")
    assert '"int8"' in (tmp_path / "out" / "manifest.json").read_text()
    again = pellucid(*arguments, folder=tmp_path)
    assert again.code == 1
    assert again.error_line == (
        "error: out already holds something; hint: name a new folder, or remove this one first"
    )


def test_an_unknown_format_is_a_wrong_usage(tmp_path: Path):
    result = pellucid("export", "tensorflow", "bundle", "out", folder=tmp_path)
    assert result.code == 2
    assert "No such command 'tensorflow'" in result.err


def test_a_refusal_is_one_line(tmp_path: Path):
    save_bundle(tmp_path / "bundle", small_bundle(norm="pre"), card="", details={})
    result = pellucid("export", "huggingface", "bundle", "out", folder=tmp_path)
    assert result.code == 65
    assert result.error_line == (
        "error: Marian cannot express this model: its norms stand after the residual sum, not"
        " norm=pre"
    )
