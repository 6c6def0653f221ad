"""Models are published through the Hub's own client, to an endpoint of this test."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import yaml
from click.testing import CliRunner
from hub_endpoint import Hub, running_hub
from huggingface_hub import constants
from small_bundles import small_bundle
from trained_model import unseen_sentences

import pellucid
from pellucid.backends.hub import fetch
from pellucid.backends.huggingface.export_folder import marian_problems
from pellucid.backends.publish.card import Card, card_text, figures_of_run, yaml_text
from pellucid.backends.publish.folder import write_publication
from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.cli.main import cli
from pellucid.core.files import read_manifest
from pellucid.decoding.config import DecodingConfig
from pellucid.evaluation.evaluate import evaluate

# The client itself passes httpx a file by a name that httpx deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

NAME = "hf://acme/fr-en"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_test")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    with running_hub(tmp_path, monkeypatch) as server:
        yield server


def publish(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["publish", *map(str, arguments)])


def head_of(card: str) -> dict[str, Any]:
    return yaml.safe_load(card.split("---\n")[1])


def program_of_card(folder: Path) -> tuple[object, object]:
    """What the program of a card prints, and what the card says that it prints."""
    card = (folder / "model" / "README.md").read_text()
    found = re.search(r"```python\n(.*?)# (\[.*?\])\n```", card, re.DOTALL)
    assert found is not None
    printed: list[object] = []
    program = found[1].replace("path/to/this/folder", str(folder / "model"))
    exec(compile(program, "README.md", "exec"), {"print": printed.append})
    [run] = printed
    return run, json.loads(found[2])


@pytest.fixture(scope="module")
def files(trained: Bundle, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small test set: sources, and what another model might have made of them."""
    folder = tmp_path_factory.mktemp("test")
    lines = unseen_sentences()[:20]
    (folder / "test.fr").write_text("\n".join(lines) + "\n")
    (folder / "test.en").write_text("\n".join(f"the {line}" for line in lines) + "\n")
    return folder / "test.fr", folder / "test.en"


def test_a_model_goes_to_the_hub_and_comes_back_by_its_name(
    hub: Hub, trained: Bundle, files: tuple[Path, Path]
):
    assert trained.path is not None
    result = publish(
        trained.path,
        NAME,
        "--license",
        "cc-by-4.0",
        "--test",
        *files,
        "--space",
        "--example",
        "Où ?",
    )
    assert result.exit_code == 0, result.output
    sent = hub.repositories["models/acme/fr-en"]
    assert set(sent) == {
        *("config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"),
        *("source.spm", "target.spm", "model.safetensors", "README.md", "manifest.json"),
    }
    for name, content in sent.items():
        assert f"model/{name}  {len(content):,} bytes" in result.stderr
    assert [each["visibility"] for each in hub.created] == ["private", "private"]
    assert hub.tokens == {"Bearer hf_of_this_test"}
    assert "sending model/ to model acme/fr-en (private, if it is new)" in result.stderr
    assert hub.changed == {}

    line = unseen_sentences()[0]
    came_back = pellucid.load(NAME, engine="torch").translate(line, beam_size=1).text
    assert came_back == pellucid.load(trained.path, "torch").translate(line, beam_size=1).text

    space = hub.repositories["spaces/acme/fr-en"]
    assert set(space) == {"README.md", "index.html"}
    assert hub.created[1]["sdk"] == head_of(space["README.md"].decode())["sdk"] == "static"
    assert head_of(space["README.md"].decode())["models"] == ["acme/fr-en"]
    assert b"<title>fr-en" in space["index.html"]

    card = sent["README.md"].decode()
    data = huggingface_hub.ModelCard(card).data
    assert (data.language, data.license) == (["fr", "en"], "cc-by-4.0")
    assert (data.library_name, data.pipeline_tag) == ("transformers", "translation")
    sources, references = (path.read_text().splitlines() for path in files)
    scored = evaluate(pellucid.load(trained.path), sources, references, language="en")
    assert [
        (each.metric_type, each.metric_value, each.metric_args["signature"], each.dataset_name)
        for each in data.eval_results
    ] == [
        (name, round(getattr(scored, name), 2), scored.signatures[name], "test.fr, test.en")
        for name in ("bleu", "chrf")
    ]


def test_the_program_of_the_card_runs_in_transformers(trained: Bundle, tmp_path: Path):
    assert trained.path is not None
    result = publish(trained.path, "--license", "mit", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    run, stated = program_of_card(tmp_path / "out")
    assert run == stated

    # The scores are those of the validation that the bundle was saved at.
    card = (tmp_path / "out" / "model" / "README.md").read_text()
    [bleu, _] = huggingface_hub.ModelCard(card).data.eval_results
    stored = read_manifest(trained.path)["validation"]["bleu"]
    assert (bleu.metric_value, bleu.metric_args["signature"]) == (round(stored[0], 2), stored[1])
    assert bleu.dataset_name == "validation text of the run"
    assert re.search(r"\|search:beam_size=\d+,.*\|source:\w{12}\|reference:\w{12}\|", stored[1])


def test_the_card_states_the_output_of_transformers(tmp_path: Path):
    """Pellucid reads capitals and emoji in another way: the random model says other words then."""
    text = "IL PLEUT 😀"
    bundle = small_bundle(attention=4.0)
    bundle.settings["decoding"] = {"beam_size": 2, "n_best": 2}
    write_publication(bundle, tmp_path / "out", Card("mit", [], "", text, []), space=False)
    run, stated = program_of_card(tmp_path / "out")
    assert run == stated
    assert stated != [pellucid.Translator(bundle, DecodingConfig(beam_size=1)).translate(text).text]


def test_nothing_is_sent_without_a_name(hub: Hub, tmp_path: Path):
    save_bundle(tmp_path / "b", small_bundle(), card="", details={})
    result = publish(tmp_path / "b", "--license", "mit", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert (hub.asked, hub.repositories) == ([], {})
    card = (tmp_path / "out" / "model" / "README.md").read_text()
    assert "None were measured." in card
    assert "model-index" not in head_of(card)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model"]


def test_what_marian_cannot_express_goes_as_a_bundle_and_says_so(hub: Hub, tmp_path: Path):
    """No path of this machine goes along, and no word list of the training text."""
    bundle = small_bundle(norm="pre")
    bundle.settings["data"] = {"source": ["/home/ann/secret/a.fr"], "target": ["C:\\ann\\a.en"]}
    save_bundle(tmp_path / "b", bundle, card="old", details={"unsure_below": -2.5})
    result = publish(tmp_path / "b", NAME, "--license", "mit", "--public")
    assert result.exit_code == 0, result.output
    assert "left out: files for transformers: it has no norm=pre (post)" in result.stderr
    sent = hub.repositories["models/acme/fr-en"]
    assert b"secret" not in b"".join(sent.values())
    assert b"C:" not in b"".join(sent.values())
    assert head_of(sent["README.md"].decode())["library_name"] == "pellucid"
    assert "cannot express it: it has no norm=pre (post)" in sent["README.md"].decode()
    assert hub.created[0]["visibility"] == "public"
    found = load_bundle(fetch(NAME))
    assert found.unsure_below == -2.5
    assert found.settings["data"] == {"source": ["a.fr"], "target": ["a.en"]}


def test_an_update_replaces_the_model_and_leaves_other_files(hub: Hub, tmp_path: Path):
    there = {"config.toml": b"", "words.txt": b"", "LICENSE": b"text", "source.spm": b"old"}
    theirs = ("source.csv", "target.md", "shared.zip", "source.d/x.txt", "target.txt")
    there |= dict.fromkeys(theirs, b"the user's") | {"target.vocab.json": b"old"}
    hub.repositories["models/acme/fr-en"] = dict(there)
    save_bundle(tmp_path / "b", small_bundle(), card="", details={})
    refused = publish(tmp_path / "b", NAME, "--license", "mit")
    assert refused.exit_code == 1
    assert str(refused.exception) == f"{NAME} exists already"
    assert hub.repositories["models/acme/fr-en"] == there
    result = publish(tmp_path / "b", NAME, "--license", "mit", "--update", "--public")
    assert result.exit_code == 0, result.output
    assert hub.changed == {"/api/models/acme/fr-en/settings": {"visibility": "public"}}
    sent = hub.repositories["models/acme/fr-en"]
    assert sent["LICENSE"] == b"text"
    assert sent["source.spm"] != b"old"
    assert not {"config.toml", "words.txt", "target.vocab.json"} & set(sent)
    assert set(theirs) <= set(sent)


def test_what_is_wrong_is_said_before_anything_is_made(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save_bundle(tmp_path / "b", small_bundle(), card="", details={})
    bundle = tmp_path / "b"
    for arguments, said in (
        ((bundle, "--license", "mit"), "Missing REPOSITORY to send to, or --out"),
        ((bundle, NAME), "Missing option '--license'"),
        ((bundle, NAME, "--license", "My own"), "is no identifier such as apache-2.0"),
        ((bundle, "--license", "mit", "--out", "x", "--public"), "are about REPOSITORY"),
    ):
        result = publish(*arguments)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    for address, said in (
        ("acme/fr-en", "is hf://ORG/NAME"),
        (f"{NAME}@main", "becomes a new revision"),
    ):
        assert said in str(publish(bundle, address, "--license", "mit").exception)
    hub.refuses = "create"
    refused = publish(bundle, NAME, "--license", "mit")
    assert re.fullmatch(r"the Hub refuses hf://acme/fr-en: .*403.*", str(refused.exception))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    unreachable = publish(bundle, NAME, "--license", "mit")
    assert "hf://acme/fr-en" in str(unreachable.exception)
    assert unreachable.exception.exit_code == 66
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    assert "needs a token of the Hub" in str(publish(bundle, NAME, "--license", "mit").exception)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    missing = publish(bundle, NAME, "--license", "mit")
    assert "publishing needs huggingface_hub" in str(missing.exception)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    kept = publish(bundle, "--license", "mit", "--out", tmp_path / "out")
    assert "already holds something" in str(kept.exception)
    assert hub.repositories == {}


@pytest.mark.parametrize("validation", [None, [], {"bleu": 1.0}, {"bleu": ["30", "s"]}, "x"])
def test_no_scores_are_taken_from_a_manifest_that_has_none(validation: object):
    assert figures_of_run({"validation": validation}) == []


def test_the_head_is_yaml_whatever_a_name_holds(tmp_path: Path):
    odd = ['a "b": c', "- x", "é\u2028ü", "{}", "#no", "yes", "1", "tab\tand \\n"]
    table = {"list": odd, "nested": [{"one": odd[0], "two": [1, 2.5, True]}], "empty": ""}
    assert yaml.safe_load(yaml_text(table)) == table
    card = card_text(small_bundle(), Card("mit", [], "acme/x", 'pay "$5"', []))
    assert '["pay \\"$5\\""]' in card
    assert """echo 'pay "$5"' | pellucid""" in card  # a shell would put a variable there


def test_a_folder_that_cannot_be_made_whole_is_not_there(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pellucid.backends.publish.folder.export_web", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_publication(
            small_bundle(), tmp_path / "out", Card("mit", [], "", "a", []), space=True
        )
    assert list(tmp_path.iterdir()) == []


def test_texts_of_a_search_are_no_paths_and_go_along_whole(tmp_path: Path):
    bundle = small_bundle(norm="pre")
    bundle.settings["decoding"] = {"banned": ["and/or", "km/h"]}
    bundle.settings["data"] = {"source": ["/home/me/secret/train.fr"]}
    card = Card("mit", [], "", "a", marian_problems(bundle))
    write_publication(bundle, tmp_path / "out", card, space=False)
    published = load_bundle(tmp_path / "out" / "model").settings
    assert published["decoding"] == {"banned": ["and/or", "km/h"]}
    assert published["data"] == {"source": ["train.fr"]}


def test_a_page_of_another_name_has_the_languages_of_the_models_folder(tmp_path: Path):
    save_bundle(tmp_path / "de-en", small_bundle(), card="", details={})
    bundle = load_bundle(tmp_path / "de-en")
    card = Card("mit", [], "acme/my-translator", "a", marian_problems(bundle))
    write_publication(bundle, tmp_path / "out", card, space=True)
    page = (tmp_path / "out" / "space" / "index.html").read_text()
    assert "<title>my-translator" in page
    assert re.search('"code": ?"de"', page)
