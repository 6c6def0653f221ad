"""Bundles: what was saved is what is loaded, and each problem of a folder is named."""

import dataclasses
import logging
import os
import shutil
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest
import torch
from forks import fork

from pellucid.bundle import (
    LONGEST_KEY,
    MODEL_FILE,
    UNSURE_KEY,
    Bundle,
    StoredModel,
    clear,
    find_bundle,
    load_bundle,
    open_bundle,
    save_bundle,
)
from pellucid.core.config import read_toml
from pellucid.core.errors import (
    BundleError,
    ConfigError,
    CorruptError,
    InputMissingError,
    OutputExistsError,
)
from pellucid.core.files import MANIFEST_NAME, manifest_text, read_manifest, write_folder
from pellucid.core.run_names import CONFIG_FILE
from pellucid.core.tensors import fingerprint
from pellucid.equations import transformer
from pellucid.equations.weights import Transformer, count_parameters, parameter_sets
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.model.stored import load_model_tensors, model_tensors
from pellucid.text.config import TokenizerConfig
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.tokenizer import train_tokenizer

TEXT = ["le chat dort", "un petit chat"]
MODEL = {"d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


def small_bundle(*, shared: bool = True, seed: int = 0) -> Bundle:
    config = parse_model_config({**MODEL, "share_embeddings": shared})
    source = train_tokenizer(TEXT, TokenizerConfig(kind="word"))
    target = source if shared else train_tokenizer(TEXT[:1], TokenizerConfig(kind="character"))
    model = build_model(config, source.vocabulary_size, target.vocabulary_size, seed=seed)
    return Bundle(model, source, target, {"model": config.to_table()}, {})


def saved(path: Path, *, shared: bool = True, score: float = 1.0, step: int = 7) -> Path:
    details = {"step": step, "score": score}
    save_bundle(path, small_bundle(shared=shared), card="# A card\n", details=details)
    return path


def test_words_bounds_and_modes_of_a_bundle(tmp_path: Path):
    """A bound of log-probabilities is below zero; a model to be trained is in training mode."""
    words = SeenWords(frozenset({"chat", "dort"}))
    original = dataclasses.replace(small_bundle(), seen_words=words)
    for bound, expected in ((-1.5, -1.5), (0.5, None), ("-1", None)):
        save_bundle(tmp_path / "b", original, card="", details={UNSURE_KEY: bound})
        assert load_bundle(tmp_path / "b").unsure_below == expected
    for told, longest in ((43, 43), (0, None), ("43", None)):
        save_bundle(tmp_path / "b", original, card="", details={LONGEST_KEY: told})
        assert load_bundle(tmp_path / "b").longest_source == longest
    for trainable in (False, True):
        found = load_bundle(tmp_path / "b", trainable=trainable)
        assert found.seen_words == words
        assert {each.training for each in found.model.modules()} == {trainable}
        assert {each.requires_grad for each in found.model.parameters()} == {trainable}


@pytest.mark.parametrize("shared", [True, False])
def test_what_was_saved_is_loaded(shared: bool, tmp_path: Path):
    original = small_bundle(shared=shared)
    bundle = load_bundle(saved(tmp_path / "b", shared=shared))
    assert (bundle.source_tokenizer is bundle.target_tokenizer) == shared
    assert bundle.source_tokenizer.encode(TEXT[1]) == original.source_tokenizer.encode(TEXT[1])
    assert bundle.target_tokenizer.encode(TEXT[0]) == original.target_tokenizer.encode(TEXT[0])
    tensors = model_tensors(bundle.model)
    for name, tensor in model_tensors(original.model).items():
        assert torch.equal(tensors[name], tensor)
    assert bundle.settings == original.settings
    assert (bundle.manifest["step"], bundle.manifest["kind"]) == (7, "bundle")
    assert bundle.path == tmp_path / "b"


def test_a_loaded_model_is_ready_for_inference(tmp_path: Path):
    model = load_bundle(str(saved(tmp_path / "b"))).model
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_a_bundle_is_these_files_readable_by_everyone(tmp_path: Path):
    folder = saved(tmp_path / "b", shared=False)
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "config.toml",
        "manifest.json",
        "model.safetensors",
        "source.vocab.json",
        "target.vocab.json",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}
    assert (folder / "README.md").read_text() == "# A card\n"


def test_a_tied_matrix_is_stored_once(tmp_path: Path):
    """Shared and tied, one matrix serves both embeddings and the output."""
    names = {"source_embedding.weight", "target_embedding.weight", "output_weight"}
    assert len(names & read_manifest(saved(tmp_path / "b"))["tensors"].keys()) == 1


def test_the_same_bundle_gives_the_same_bytes(tmp_path: Path):
    first, second = saved(tmp_path / "a"), saved(tmp_path / "b")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def run_of(path: Path, **scores: float) -> Path:
    for step, (name, score) in enumerate(scores.items()):
        saved(path / "bundles" / name, score=score, step=step)
    (path / CONFIG_FILE).touch()
    return path


def test_of_a_run_the_bundle_with_the_best_score_is_taken(tmp_path: Path):
    run = run_of(tmp_path / "run", a=1.0, b=3.0, c=2.0)
    assert find_bundle(run) == run / "bundles" / "b"
    assert load_bundle(run).path == run / "bundles" / "b"
    assert find_bundle(run / "bundles" / "a") == run / "bundles" / "a"


def test_of_equal_scores_the_latest_is_taken_and_nan_is_no_score(tmp_path: Path):
    run = run_of(tmp_path / "run", a=1.0, b=1.0, c=float("nan"))
    assert find_bundle(run) == run / "bundles" / "b"


def test_a_bundle_that_is_not_finished_is_not_seen(tmp_path: Path):
    run = run_of(tmp_path / "run", a=1.0)
    shutil.copytree(run / "bundles" / "a", run / "bundles" / ".tmp-123")
    shutil.rmtree(run / "bundles" / "a")
    with pytest.raises(InputMissingError, match="holds no model"):
        find_bundle(run)


def test_a_bundle_whose_manifest_cannot_be_read_is_passed_over_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    run = run_of(tmp_path / "run", a=1.0, b=3.0)
    (run / "bundles" / "b" / MANIFEST_NAME).write_text("{")
    with caplog.at_level(logging.WARNING, "pellucid"):
        assert find_bundle(run) == run / "bundles" / "a"
    assert f"skipped {run / 'bundles' / 'b'}: " in caplog.text
    assert "manifest.json is damaged" in caplog.text


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(InputMissingError) as caught:
        load_bundle(tmp_path / "none")
    assert str(caught.value) == f"there is no folder {tmp_path / 'none'}"


@pytest.mark.parametrize("kind", ["empty", "a run that has not validated yet"])
def test_a_folder_without_a_model_says_what_to_name_instead(kind: str, tmp_path: Path):
    if kind != "empty":
        run_of(tmp_path)
    with pytest.raises(InputMissingError) as caught:
        load_bundle(tmp_path)
    assert str(caught.value) == f"{tmp_path} holds no model"
    assert caught.value.hint == (
        "name a bundle folder, or a run folder whose training has validated once"
    )


def test_a_checkpoint_is_not_taken_for_a_bundle(tiny_run: Path):
    checkpoint = tiny_run / "checkpoints" / "step-00000004"
    with pytest.raises(BundleError) as caught:
        load_bundle(checkpoint)
    assert str(caught.value) == f"{checkpoint} is not a bundle: its manifest is of kind checkpoint"
    assert caught.value.hint == "name a bundle folder, or the run folder that holds it"


def rewritten(folder: Path, name: str, content: bytes) -> Path:
    """The bundle with another file in it, complete with a manifest that fits."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = read_manifest(folder)
    files[name] = content
    del files[MANIFEST_NAME]

    def fill(inner: Path) -> None:
        for each, each_content in files.items():
            (inner / each).write_bytes(each_content)

    details = {key: manifest[key] for key in manifest if key not in ("files", "version", "sha256")}
    write_folder(folder, fill, details=details)
    return folder


def test_tensors_of_another_model_are_listed_all_at_once(tmp_path: Path):
    folder = saved(tmp_path / "b")
    settings = (folder / CONFIG_FILE).read_text().replace("d_ff = 8", "d_ff = 9")
    rewritten(folder, CONFIG_FILE, settings.encode())
    with pytest.raises(BundleError) as caught:
        load_bundle(folder)
    assert str(caught.value).startswith(f"{folder / 'model.safetensors'} does not fit its config: ")
    assert "encoder.layers.0.feed_forward.inner.bias should be (9,), is (8,)" in str(caught.value)
    assert "decoder.layers.0.feed_forward.outer.weight should be (8, 9)" in str(caught.value)


def test_missing_and_left_over_tensors_are_named():
    model = small_bundle().model
    tensors = model_tensors(model)
    tensors["strange"] = tensors.pop("encoder.layers.0.self_attention.w_o")
    with pytest.raises(BundleError) as caught:
        load_model_tensors(model, tensors, Path("x"))
    assert str(caught.value) == (
        "x does not fit its config: encoder.layers.0.self_attention.w_o is missing;"
        " strange is not part of this model"
    )


def test_problems_of_the_config_in_a_bundle_are_told_with_the_file(tmp_path: Path):
    folder = rewritten(saved(tmp_path / "b"), CONFIG_FILE, b"[model]\nheadz = 2\n")
    with pytest.raises(ConfigError) as caught:
        load_bundle(folder)
    assert str(caught.value) == (
        f"{folder / CONFIG_FILE}: model: headz is not a setting; did you mean heads?"
    )


def test_a_model_section_that_is_a_value_is_told(tmp_path: Path):
    folder = rewritten(saved(tmp_path / "b"), CONFIG_FILE, b"model = 3\n")
    with pytest.raises(ConfigError, match="should be a section of settings"):
        load_bundle(folder)


def test_a_tokenizer_that_was_put_there_later_is_refused(tmp_path: Path):
    """The manifest knows nothing of it, yet it would be read first."""
    folder = saved(tmp_path / "b", shared=False)
    shutil.copy(folder / "source.vocab.json", folder / "shared.vocab.json")
    with pytest.raises(CorruptError) as caught:
        load_bundle(folder)
    assert str(caught.value) == (
        f"{folder / 'shared.vocab.json'} was put there later: the manifest does not list it"
    )


def test_notes_of_ones_own_in_a_bundle_do_no_harm(tmp_path: Path):
    folder = saved(tmp_path / "b")
    (folder / "notes.txt").write_text("good")
    assert load_bundle(folder).manifest["step"] == 7


def test_an_altered_number_is_told_with_file_and_tensor(tmp_path: Path):
    path = saved(tmp_path / "b") / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptError) as caught:
        load_bundle(path.parent)
    last = sorted(read_manifest(path.parent)["tensors"])[-1]
    assert str(caught.value).startswith(f"{path} should have SHA-256 ")
    assert str(caught.value).endswith(f"; damaged: {last}")


@pytest.mark.parametrize("back", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_bundle_that_is_exchanged_while_it_is_read_is_never_mixed(back: int, tmp_path: Path):
    """Exchanged, or exchanged and put back ``back`` openings later, at each single opening of one
    of its files."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, seed in ((one, 1), (other, 2)):
        bundle = small_bundle(seed=seed)
        settings = {**bundle.settings, "seed": {"is": seed}}
        bundle = dataclasses.replace(bundle, settings=settings)
        save_bundle(folder, bundle, card=f"{seed}", details={})

    def seen(bundle: Bundle) -> tuple[int, str]:
        weight = next(iter(bundle.model.parameters()))
        return bundle.settings["seed"]["is"], fingerprint(weight)

    whole = {seen(load_bundle(one)), seen(load_bundle(other))}
    exchanges: set[int] = set()
    openings = 0
    watching = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal openings
        if watching and event == "open" and str(arguments[0]).startswith(f"{one}/"):
            openings += 1
            if openings in exchanges:
                one.rename(tmp_path / "aside")
                other.rename(one)
                (tmp_path / "aside").rename(other)

    sys.addaudithook(watch)  # it stays for good, so it can be told to rest
    try:
        for opened in (load_bundle, open_bundle):
            openings, exchanges = 0, set()
            seen(opened(one))
            count = openings
            assert count > 3
            for first in range(1, count + 1):
                for then in (0, first + back):
                    openings, exchanges = 0, {first, then}
                    assert seen(opened(one)) in whole, exchanges
    finally:
        watching = False


def test_a_bundle_that_is_removed_as_soon_as_it_is_found_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A run removes its worse bundles while it goes on."""
    run = run_of(tmp_path / "run", a=1.0, b=3.0)

    def found_and_removed(path: Path) -> Path:
        monkeypatch.undo()
        folder = find_bundle(path)
        shutil.rmtree(folder)
        return folder

    monkeypatch.setattr("pellucid.bundle.find_bundle", found_and_removed)
    assert load_bundle(run).path == run / "bundles" / "a"


def test_the_model_of_an_opened_bundle_is_read_when_it_is_used(tmp_path: Path):
    bundle = open_bundle(saved(tmp_path / "b"))
    told: list[str] = []
    bundle.when_read(lambda: told.append("then"))
    assert isinstance(bundle.held, StoredModel)
    assert (bundle.config.d_model, bundle.max_length, bundle.device) == (8, None, "cpu")
    assert not bundle.held.is_read
    assert told == []

    read = model_tensors(bundle.model)
    assert told == ["then"]
    bundle.when_read(lambda: told.append("at once"))
    assert told == ["then", "at once"]
    assert bundle.model is bundle.held.read()
    for name, tensor in model_tensors(load_bundle(tmp_path / "b").model).items():
        assert torch.equal(read[name], tensor)
        assert not read[name].requires_grad


def test_a_fork_reads_a_model_that_a_thread_of_its_parent_is_reading(tmp_path: Path):
    bundle = open_bundle(saved(tmp_path / "b"))
    begun, goes_on = threading.Event(), threading.Event()
    told: list[str] = []

    def wait() -> None:
        begun.set()
        goes_on.wait()

    bundle.when_read(wait)
    bundle.when_read(lambda: told.append("then"))
    thread = threading.Thread(target=lambda: bundle.model)
    thread.start()
    begun.wait()
    if (child := fork()) == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)  # a fork that waits for that thread would wait forever
        os._exit(not (bundle.model is bundle.model and told == ["then"]))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    goes_on.set()
    thread.join()
    assert code == 0
    assert told == ["then"]


def test_callbacks_that_an_error_left_are_called_by_the_next_reading(tmp_path: Path):
    bundle = open_bundle(saved(tmp_path / "b"))
    told: list[str] = []
    bundle.when_read(lambda: told.remove("nothing"))
    bundle.when_read(lambda: told.append("then"))
    with pytest.raises(ValueError, match="not in list"):
        bundle.model  # noqa: B018
    assert bundle.model is bundle.model
    assert told == ["then"]


@pytest.mark.parametrize("happened", ["replaced", "removed"])
def test_a_model_that_is_read_late_is_that_of_its_manifest(happened: str, tmp_path: Path):
    folder = saved(tmp_path / "b")
    expected = model_tensors(load_bundle(folder).model)
    bundle = open_bundle(folder)
    if happened == "replaced":
        save_bundle(folder, small_bundle(seed=1), card="", details={})
    else:
        shutil.rmtree(folder)
    for name, tensor in model_tensors(bundle.model).items():
        assert torch.equal(tensor, expected[name])


def test_a_model_that_was_changed_in_place_before_it_was_read_is_refused(tmp_path: Path):
    path = saved(tmp_path / "b") / "model.safetensors"
    bundle = open_bundle(path.parent)
    with path.open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"\x7f\x7f\x7f\x7f")
    with pytest.raises(CorruptError, match=r"model\.safetensors should have SHA-256 "):
        bundle.model  # noqa: B018


def test_a_damaged_model_is_refused_when_its_bundle_is_opened(tmp_path: Path):
    path = saved(tmp_path / "b") / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptError, match="damaged: "):
        open_bundle(path.parent)


def test_an_altered_file_without_tensors_is_told_alone(tmp_path: Path):
    path = saved(tmp_path / "b") / CONFIG_FILE
    path.write_bytes(path.read_bytes().replace(b"8", b"9"))
    with pytest.raises(CorruptError) as caught:
        load_bundle(path.parent)
    assert str(caught.value).startswith(f"{path} should have SHA-256 ")
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("lacking", ["torch", "fingerprints"])
def test_a_damaged_bundle_is_told_without_torch_or_fingerprints_too(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = saved(tmp_path / "b")
    if lacking == "torch":
        monkeypatch.setitem(sys.modules, "pellucid.core.tensors", None)  # importing it raises
    else:
        manifest = {**read_manifest(folder), "tensors": 7}
        (folder / MANIFEST_NAME).write_bytes(manifest_text(manifest))
    (folder / CONFIG_FILE).write_bytes(b"# changed\n" + (folder / CONFIG_FILE).read_bytes())
    with pytest.raises(CorruptError, match=r"config\.toml should have \d+ bytes"):
        open_bundle(folder)


def test_a_pickle_under_the_name_of_a_model_is_never_opened(tmp_path: Path):
    """Even with a manifest that vouches for it."""
    folder = saved(tmp_path / "b")
    victim = tmp_path / "owned"
    pickle = b"cos\nsystem\n(S'touch " + str(victim).encode() + b"'\ntR."
    rewritten(folder, "model.safetensors", pickle)
    with pytest.raises(CorruptError, match=r"model\.safetensors is not a readable safetensors"):
        load_bundle(folder)
    assert not victim.exists()


def test_the_whole_config_of_a_run_travels_with_its_bundle(tiny_run: Path):
    bundle = load_bundle(tiny_run)
    assert bundle.settings == read_toml(tiny_run / "config.toml")


def test_a_manifest_that_names_no_score_ranks_last(tmp_path: Path):
    run = run_of(tmp_path / "run", a=-5.0, b=1.0)
    manifest = read_manifest(run / "bundles" / "b")
    del manifest["score"]
    (run / "bundles" / "b" / MANIFEST_NAME).write_bytes(manifest_text(manifest))
    assert find_bundle(run) == run / "bundles" / "a"


def test_a_bundle_opens_as_the_weights_of_its_page_of_equations(tmp_path: Path):
    """From a path or from a bundle; every parameter is there once, and a gradient arrives at it."""
    bundle = load_bundle(saved(tmp_path / "bundle"))
    source = torch.tensor([[5, 6, 3]])
    for page in (clear(str(tmp_path / "bundle")), clear(bundle)):
        assert isinstance(page, Transformer)
        logits = transformer.logits(page, source, torch.tensor([[2, 7]]))
        torch.testing.assert_close(logits, bundle.model(source, torch.tensor([[2, 7]])))
        assert count_parameters(page) == sum(each.numel() for each in bundle.model.parameters())
    names = [name for name, _ in parameter_sets(page)]
    assert "encoder.0.self_attention.w_q" in names
    assert names[-1] == "w_s"


def test_a_bundle_replaces_a_bundle_and_nothing_else(tmp_path: Path):
    """A whole run must not go with one wrong path."""
    folder = saved(tmp_path / "run" / "bundles" / "step-1")
    with pytest.raises(OutputExistsError, match="holds something that is no bundle"):
        save_bundle(tmp_path / "run", small_bundle(), card="", details={})
    assert folder.is_dir()
    save_bundle(folder, small_bundle(seed=1), card="new", details={})
    assert (folder / "README.md").read_text() == "new"


@pytest.mark.parametrize("kind", ["file", "link", "foreign", "no manifest", "notes"])
def test_what_a_bundle_would_replace_is_kept_unless_it_is_a_bundle(kind: str, tmp_path: Path):
    """Every folder of Hugging Face has a model.safetensors too, and may hold anything else."""
    path, thesis = tmp_path / "out", tmp_path / "out" / "thesis.txt"
    match kind:
        case "file":
            path.write_text("kept")
            thesis = path
        case "link":
            path.symlink_to(tmp_path / "nowhere")
        case "foreign":
            write_folder(path, lambda folder: (folder / MODEL_FILE).touch(), details={})
            thesis.write_text("kept")
        case "no manifest":
            path.mkdir()
            (path / MODEL_FILE).touch()
            thesis.write_text("kept")
        case "notes":
            saved(path)
            thesis.write_text("kept")
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(OutputExistsError) as caught:
        save_bundle(path, small_bundle(seed=1), card="", details={})
    assert str(caught.value).startswith(f"{path} ")
    assert sorted(tmp_path.rglob("*")) == before
    assert kind == "link" or thesis.read_text() == "kept"
    if kind == "notes":
        assert str(caught.value) == f"{path} holds thesis.txt, which is no part of the bundle there"
