"""The recipes of CONTRIBUTING.md, applied to a copy of the package: each adds what it says."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from forks import run_script

ROOT = Path(__file__).parents[2]
FILES = {
    "An activation": 2,
    "A norm": 2,
    "Positions": 2,
    "A learning rate schedule": 3,
    "A length penalty": 2,
    "A tokenizer": 2,
    "A metric": 1,
    "A model setting": 9,
    "A layer kind": 9,
    "A model kind": 4,
    "An exporter": 3,
}
"""How many files each recipe touches: as many as its heading says."""
COUNTS = {
    1: "one file",
    2: "two files",
    3: "three files",
    4: "four files",
    9: "nine files",
}

TRY = r"""
from pathlib import Path
import torch
from tiny_models import VARIANTS, sources, targets, tiny_model
from pellucid.equations import transformer
from pellucid.inspection.parts import parts_of
from pellucid.inspection.report.facts import model_facts
from pellucid.inspection.report.walk import Vocabularies, walk_through
from pellucid.backends.capability import BACKENDS
from pellucid.model.clear import clear_model
from pellucid.model.trace import Trace
from pellucid.training.presets import read_config
from pellucid.training.train import train

CHOSEN = {"activation": "squared_relu", "norm_kind": "l1", "positions": "ramp"}
for name, value in CHOSEN.items():
    assert VARIANTS[f"{name}={value}"] == {name: value}  # every law of models has it
    before, model = tiny_model(), tiny_model(**{name: value})
    source, target, trace = sources(5), targets(1, 4), Trace("*")
    logits = model(source, target, trace)
    expected = transformer.logits(clear_model(model), source, target)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)
    if name == "positions":  # nothing else of the model has changed with them
        before.load_state_dict(model.state_dict())
    assert not torch.allclose(logits, before(source, target), atol=1e-6)
    kept = [part for part in parts_of(model.config) if ".heads." not in part]
    assert kept == list(trace.values)
    assert walk_through(model.config, Vocabularies(13, 13, 13))
    assert model_facts(model.config, None)
for backend in BACKENDS:
    problems = backend.model_problems(tiny_model(**CHOSEN).config)
    for name, value in CHOSEN.items():
        assert any(f"it has no {name}={value}" in problem for problem in problems), problems

from tiny_runs import SETTINGS
from pellucid.training.journal import read_journal
settings = [*SETTINGS, *(f"model.{name}={value}" for name, value in CHOSEN.items())]
settings += ["training.schedule=square", "training.learning_rate=0.004", "tokenizer.kind=hyphens"]
result = train(read_config("demo", [*settings, "training.max_steps=2"]), "run")
events = read_journal(Path("run/journal.jsonl"))
rates = [each["learning_rate"] for each in events if each["event"] == "train"]
# one of four steps of the warm-up, times the square of the half that remains; then the end
assert rates == [0.004 * 1 / 4 * (1 - 0.5) ** 2, 0.0], rates

from pellucid.bundle import load_bundle, save_bundle
from pellucid.text.config import TokenizerConfig
from pellucid.text.tokenizers.tokenizer import load_tokenizer, train_tokenizer
kept = load_bundle(Path("run")).target_tokenizer  # written by the run and read again
assert kept.kind == "hyphens" and kept.normalize("well-known  facts.") == "well-known facts."
learned = train_tokenizer(["well-known well"], TokenizerConfig(kind="hyphens", vocabulary_size=7))
# four special tokens, the most frequent one, then by the alphabet
assert learned.tokens(range(4, 7)) == ["well", "-", "known"], learned.tokens(range(4, 7))
ids = learned.encode("known-well facts")
assert ids == [6, 5, 4, 1] and learned.decode(ids[:3]) == "known-well", ids
learned.save(Path("."), "learned")
assert load_tokenizer(Path("."), "learned").fingerprint == learned.fingerprint

import math
from pellucid.decoding.config import DecodingConfig
from pellucid.backends.ctranslate2.engine import setting_refusals
from pellucid.evaluation.signature import search_signature
from table_models import A, B, C, TableModel, sources as lines
from pellucid.core.special import EOS_ID
from pellucid.decoding.search.beam import beam_search

def language(source, prefix):  # "A" is likelier than "B B B", whose later tokens are certain
    if not prefix:
        return {A: 0.5, B: 0.35, C: 0.15}
    return {EOS_ID: 1.0} if prefix[0] == A or len(prefix) == 3 else {B: 1.0}

searched = {"beam_size": 3, "length_penalty": 1.0, "patience": math.inf, "max_length": 9}
[[usual]] = beam_search(TableModel(language), lines([A]), DecodingConfig(**searched))
linear = DecodingConfig(**searched, length_penalty_kind="linear")
[[found]] = beam_search(TableModel(language), lines([A]), linear)
# with the stop 2 and 4 tokens: log .5 / 3 = -.23 against log .35 / 5 = -.21
assert usual.ids == (A,) and found.ids == (B, B, B), (usual, found)
assert math.isclose(found.score, math.log(0.35) / 5, rel_tol=1e-12), found
assert 'length_penalty_kind="linear"' in setting_refusals(linear, 100)
assert "length_penalty_kind=" in search_signature(linear)

import json
import click.testing
from evaluated_bundle import SOURCES, evaluated_bundle
from pellucid.cli.main import cli
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import corpus_score
# two of the three words; of the twice given "the" the reference has one
assert corpus_score("unigram_precision", ["the the cat"], ["cat the dog"]).score == 100 * 2 / 3
save_bundle(Path("bundle"), evaluated_bundle(), card="", details={})
settings = ["--beam-size", "2", "--max-length", "8"]
translator = Translator(load_bundle(Path("bundle")), DecodingConfig(beam_size=2, max_length=8))
given = [each.text for each in translator.translate(SOURCES)]
right, wrong = given[:2], given[2:]
assert all(right)
references = [" ".join(reversed(line.split())) for line in right] + ["?!"] * len(wrong)
counts = [len(line.split()) for line in given]
percent = 100 * sum(counts[:2]) / sum(counts)
for name, lines in {"source": SOURCES, "reference": references}.items():
    Path(name).write_text("".join(f"{line}\n" for line in lines), "utf-8")

def command(*more):
    words = ["evaluate", "bundle", "source", "reference", *settings, *more]
    done = click.testing.CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return done.stdout

assert json.loads(command("--json"))["unigram_precision"] == percent
chosen = command("--metric", "unigram_precision", "--sentence-scores", "scores.tsv")
assert chosen.startswith(f"unigram_precision {percent:6.1f}   nrefs:1|tok:none|search:"), chosen
assert "\nunigram_precision " in command()
rows = [row.split("\t") for row in Path("scores.tsv").read_text("utf-8").splitlines()]
assert rows[0][1].startswith("unigram_precision|nrefs:1|tok:none|search:"), rows[0]
alone = ["" if n == 0 else "100.0000" if i < 2 else "0.0000" for i, n in enumerate(counts)]
assert [row[1] for row in rows[1:]] == alone, rows

from pellucid.bundle import load_bundle
from pellucid.core.errors import ConfigError
from pellucid.inspection.laws import check_laws, tiny_models
small = tiny_models()["bag"].double()
trace = Trace("*")
small(sources(5), targets(1, 4), trace)
assert list(trace.values) == list(parts_of(small.config))  # inspection has all there is
laws = list(check_laws(small, "bag"))
assert len(laws) == 8 and all(each.holds for each in laws), laws  # all but those of a page
of_transformers = "model.d_ff=16", "model.heads=2", "model.positions=sinusoidal"
settings = [each for each in SETTINGS if each not in of_transformers] + ["model.kind=bag"]
train(read_config("demo", [*settings, "training.max_steps=1"]), "bag")
try:
    read_config("demo", [*settings, "model.heads=2", "model.cell=gru"])
    raise AssertionError("no other kind has them")
except ConfigError as error:
    assert "heads is for model.kind=transformer or encoder or decoder, not for bag" in str(error)
    assert "cell is for model.kind=rnn or rnn-attention, not for bag" in str(error)
kept = load_bundle(Path("bag"))  # written by the run and read again
assert kept.config == read_config("demo", [*settings, "training.max_steps=1"]).model
assert "bag of words of width 16." in (kept.path / "README.md").read_text("utf-8")
sentence = "le chat dort"
three_beams = Translator(kept, DecodingConfig(beam_size=3, n_best=2, max_length=6))
best, second = three_beams.translate(sentence).n_best
assert best.score > second.score and len(best.token_ids) <= 6

def said(*words):
    done = click.testing.CliRunner().invoke(cli, words)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout

options = "--json", "--only", "*", "--report", "bag.html", "--saliency"
seen = json.loads(said("inspect", "bag", sentence, *options))
names = "lookup", "embedding", "output"
assert [each["name"] for each in seen["entries"]] == [
    *(f"{side}.{name}" for side in ("encoder", "decoder") for name in names),
    "logits",
    "probabilities",
], seen["entries"]
assert "mean U" in Path("bag.html").read_text("utf-8")

import numpy
from pellucid.model.stored import model_tensors
refused = click.testing.CliRunner().invoke(cli, ["export", "numpy", "run", "archive"])
assert "it has no activation=squared_relu" in str(refused.exception), refused.exception
said("export", "numpy", "bundle", "archive")
with numpy.load("archive/parameters.npz") as archive:
    tensors = model_tensors(load_bundle(Path("bundle")).model)
    assert set(archive) == set(tensors)
    assert all(numpy.array_equal(archive[name], each) for name, each in tensors.items())
assert Path("archive/manifest.json").is_file()
refused = click.testing.CliRunner().invoke(cli, ["export", "numpy", "bag", "none"])
assert "it has no model.kind=bag (transformer)" in str(refused.exception), refused.exception
assert not Path("none").exists()
# a model setting, and a layer kind
from pellucid.backends.load import choose_engine
from pellucid.inspection.capture import inspect
from pellucid.inspection.why import why
from pellucid.core.special import BOS_ID
from tiny_models import tiny_bundle
new = {"residual_scale": 0.5}, {"residual_scale": 0.5, "norm": "pre"}
new += {"decoder": "average"}, {"decoder": "average", "norm": "pre"}
for chosen in new:
    model = tiny_model(**chosen)
    laws = list(check_laws(model, "new"))
    assert len(laws) == 10 and all(each.holds for each in laws), (chosen, laws)
    trace = Trace("*")
    model(sources(5), targets(1, 4), trace)
    assert [part for part in parts_of(model.config) if ".heads." not in part] == list(trace.values)
    setting, value = next(iter(chosen.items()))
    before = tiny_model(**{**chosen, setting: type(model.config).model_fields[setting].default})
    before.load_state_dict(model.state_dict(), strict=False)
    assert not torch.allclose(model(sources(5), targets(1, 4)), before(sources(5), targets(1, 4)))
    for backend in BACKENDS:
        problems = backend.model_problems(model.config)
        assert any(f"it has no {setting}={value}" in problem for problem in problems), problems
    bundle = tiny_bundle(**chosen)
    found = why(bundle, "a b c", "d e f")
    assert abs(found.total - found.difference) < 1e-9, found
    taken = choose_engine(bundle, "auto")
    assert taken.name == "torch" and f"it has no {setting}={value}" in taken.reason, taken.reason

# a page adds up what is scaled nowhere, and the table of parts says so
scaled = parts_of(tiny_model(residual_scale=0.5).config)
formulas = {each.formula for name, each in scaled.items() if name.endswith(".residual")}
assert formulas == {"R = X + α O"}, formulas
pages = walk_through(tiny_model(residual_scale=0.5).config, Vocabularies(13, 13, 13))
sums = [step.how for page in pages for step in page.steps if step.name == "residual"]
assert sums == [{"kind": "unexplained"}] * 10, sums

settings = [*SETTINGS, "model.decoder=average", "training.max_steps=2"]
train(read_config("demo", settings), "average")
kept = load_bundle(Path("average"))  # written by the run and read again
assert kept.config.decoder == "average"
names = [name for name, _ in kept.model.named_parameters() if name.startswith("decoder.layers.0")]
assert "decoder.layers.0.average.output.weight" in names
assert not any("self_attention" in name for name in names), names

beams = DecodingConfig(beam_size=3, n_best=3, max_length=6)  # crossed, as the laws above cross them
hypotheses = Translator(kept, beams).translate(sentence).n_best
kept_source = [*kept.source_tokenizer.encode(sentence), EOS_ID]
assert len({each.token_ids for each in hypotheses}) == 3
for each in hypotheses:  # each beam has the state of its own words: it is scored so alone
    target = [BOS_ID, *each.token_ids, EOS_ID][: len(each.token_log_probs) + 1]
    logits = kept.model(torch.tensor([kept_source]), torch.tensor([target[:-1]]))
    log_probs = logits.log_softmax(-1)[0].gather(-1, torch.tensor(target[1:]).unsqueeze(-1))
    expected = torch.tensor(each.token_log_probs).unsqueeze(-1)
    torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-4)
told = said("inspect", "average", sentence, "--json", "--only", "*", "--report", "average.html")
entries = [each["name"] for each in json.loads(told)["entries"]]
assert "decoder.layers.0.average.mean" in entries and entries == list(parts_of(kept.config))
page = Path("average.html").read_text("utf-8")
assert "Decoder layer 0 · Running average" in page and "(Y₁ + … + Yₜ) / t" in page
report = json.loads(page.partition('id="pellucid-report-data">')[2].partition("</script>")[0])
[drawn] = [each for each in report["pages"] if each["name"] == "decoder.layers.0.average"]
assert (drawn["kind"], drawn["heading"]) == ("described", "Running average"), drawn
assert "decoder.layers.0.average.mean" in report["matrices"] and not report["has_rollout"]
part = {each[0]: each[1] for each in report["why"]["parts"]}
assert part["decoder.layers.0.average.output"] == "running average", part
assert why(kept, sentence).source_contributions == ()  # no weights say how much of which word
refused = click.testing.CliRunner().invoke(cli, ["export", "web", "average", "page.html"])
assert "it has no decoder=average" in str(refused.exception), refused.exception
print("trained", result)
"""


def recipes() -> dict[str, str]:
    """The patch under each heading of CONTRIBUTING.md that has one."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    found = {}
    for section in text.split("\n### ")[1:]:
        heading, _, body = section.partition("\n")
        before, fence, rest = body.partition("```diff\n")
        if fence and "\n## " not in before:
            found[heading.partition(":")[0]] = rest.partition("\n```\n")[0] + "\n"
    return found


def hunks(patch: str) -> Iterator[tuple[str, str, str]]:
    """For each change its file, the lines that stand there, and those that replace them."""
    for part in re.split(r"^--- ", patch, flags=re.M)[1:]:
        path, _, body = part.partition("\n")
        for hunk in re.split(r"^@@\n", body, flags=re.M):
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in "- ")
            yield path, before, "".join(line[1:] for line in lines if line[0] in "+ ")


def apply(patch: str, folder: Path) -> set[str]:
    """Change the files below ``folder`` as ``patch`` says; their paths."""
    touched = set()
    for path, before, after in hunks(patch):
        is_new = before == ""
        assert is_new != (folder / path).exists(), f"{path} must be new if no line of it is quoted"
        text = "" if is_new else (folder / path).read_text("utf-8")
        assert is_new or text.count(before) == 1, (
            f"a recipe of CONTRIBUTING.md quotes lines that {path} does not have once: quote them"
            f" there as they stand now:\n{before}"
        )
        (folder / path).write_text(after if is_new else text.replace(before, after), "utf-8")
        touched.add(path)
    return touched


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with every recipe applied."""
    folder = tmp_path_factory.mktemp("recipes")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "pellucid", folder / "pellucid", ignore=ignored)
    for name, patch in recipes().items():
        assert len(apply(patch, folder)) == FILES[name]
    return folder


def test_a_heading_says_how_many_files_its_recipe_touches():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert set(recipes()) == set(FILES)
    for name, count in FILES.items():
        assert f"### {name}: {COUNTS[count]}" in text


def test_what_the_recipes_add_is_trained_and_equals_its_equation(patched: Path):
    tests = ROOT / "tests"
    paths = [patched, tests, tests / "evaluation", tests / "decoding"]
    done = run_script(TRY, patched, paths)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("trained"), done.stdout
