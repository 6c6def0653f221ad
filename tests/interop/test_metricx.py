"""MetricX from a folder: a tiny checkpoint of transformers' own making is the referee."""

import functools
import io
import json
import pickle
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sentencepiece
import torch
from click.testing import CliRunner
from safetensors.torch import save_file
from small_bundles import small_bundle

from pellucid.backends.metricx import MetricX, MetricXVersion
from pellucid.bundle import save_bundle
from pellucid.cli.evaluate import evaluate as evaluate_command
from pellucid.core.errors import BundleError, InputMissingError, UnsafeFormatError

if TYPE_CHECKING:
    from transformers import MT5ForConditionalGeneration as Referee

SCORE_ID, VOCABULARY = 250_089, 250_100
LINES = [
    ("le chat dort", "the cat sleeps", "the cat is sleeping"),
    ("il pleut", "", "it rains"),
    ("où est la gare ?" * 9, "where is the station?" * 9, "where is the station?" * 9),
    ("le chien", "a dog and a cat " * 30, "the dog"),
]


@functools.cache
def vocabulary() -> bytes:
    """As mT5's, whose ids are those of sentencepiece: padding 0, stop 1, unknown 2."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(line) for line in LINES]),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def referee() -> "Referee":
    from transformers import MT5Config, MT5ForConditionalGeneration  # takes seconds

    config = MT5Config(
        vocab_size=VOCABULARY,
        d_model=8,
        d_kv=3,
        d_ff=12,
        num_layers=2,
        num_decoder_layers=3,
        num_heads=2,
        relative_attention_num_buckets=12,
        relative_attention_max_distance=20,
    )
    config.tie_word_embeddings = False  # an mT5 has two tables, whatever the class says
    config.scale_decoder_outputs = False
    torch.manual_seed(0)
    model = MT5ForConditionalGeneration(config).eval()
    model.set_input_embeddings(model.shared)  # but both stacks read one
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "layer_norm" in name:
                parameter += 0.3 * torch.randn_like(parameter)
            elif "shared" not in name and "lm_head" not in name:
                parameter += 0.4 * torch.randn_like(parameter)
        model.lm_head.weight[SCORE_ID] *= 5  # scores within 0 and 25, far apart
    return model


@pytest.fixture(scope="module")
def folder(referee: "Referee", tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("metricx")
    (path / "config.json").write_text(referee.config.to_json_string())
    save_file(parameters(referee), path / "model.safetensors")
    (path / "spiece.model").write_bytes(vocabulary())
    return path


def parameters(model: "Referee") -> dict[str, torch.Tensor]:
    """As a checkpoint has them; a tensor with two names once."""
    named = model.state_dict().items()
    return {name: each.clone() for name, each in named if "embed_tokens" not in name}


@pytest.mark.referee
@pytest.mark.parametrize(
    ("version", "form"),
    [
        ("metricx-23", "candidate: {1} reference: {2}"),
        ("metricx-23-qe", "candidate: {1} source: {0}"),
        ("metricx-24", "source: {0} candidate: {1} reference: {2}"),
        ("metricx-24-qe", "source: {0} candidate: {1}"),
    ],
)
def test_scores_are_those_of_transformers(
    referee: "Referee", folder: Path, version: MetricXVersion, form: str
):
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(vocabulary())
    expected = []
    for line in LINES:
        ids = torch.tensor([processor.encode(form.format(*line))])
        with torch.inference_mode():
            logits = referee(input_ids=ids, decoder_input_ids=torch.tensor([[0]])).logits
        expected.append(float(logits[0, 0, SCORE_ID].clamp(0, 25)))
    assert len({round(each, 3) for each in expected}) > 1
    found = MetricX(folder, version).judge(*zip(*LINES, strict=True))
    torch.testing.assert_close(found.by_sentence, expected, rtol=1e-4, atol=1e-4)
    assert found.score == pytest.approx(sum(expected) / len(expected), rel=1e-4)
    assert found.signature.startswith(f"{version}|model:")


def test_a_model_in_several_files_and_one_of_pytorch_give_the_same(
    referee: "Referee", folder: Path, tmp_path: Path
):
    expected = MetricX(folder, "metricx-24").judge(*zip(*LINES, strict=True)).by_sentence
    for name in ("several", "torch"):
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("*.safetensors"))
    named = list(parameters(referee).items())
    for number, part in enumerate((named[:9], named[9:]), start=1):
        save_file(dict(part), tmp_path / "several" / f"model-0000{number}-of-00002.safetensors")
    torch.save(dict(named), tmp_path / "torch" / "pytorch_model.bin")
    for name in ("several", "torch"):
        found = MetricX(tmp_path / name, "metricx-24").judge(*zip(*LINES, strict=True))
        assert found.by_sentence == expected, name


def test_what_is_no_metricx_model_is_refused_by_name(folder: Path, tmp_path: Path):
    def spoiled(name: str, **files: bytes | None) -> Path:
        path = tmp_path / name
        shutil.copytree(folder, path)
        for file, content in files.items():
            target = path / file.replace("__", ".")
            target.unlink(missing_ok=True)
            if content is not None:
                target.write_bytes(content)
        return path

    config = json.loads((folder / "config.json").read_text())
    heads = json.dumps({**config, "num_heads": 3}).encode()
    kind = json.dumps({**config, "model_type": "t5"}).encode()
    evil = pickle.dumps(Evil())
    for path, error, said in (
        (tmp_path / "none", InputMissingError, "config.json"),
        (spoiled("a", config__json=b"["), BundleError, "is not the config of an mT5"),
        (spoiled("b", config__json=kind), BundleError, "must be of an mT5 with gated-gelu, got t5"),
        (spoiled("c", config__json=heads), BundleError, "does not fit its config.json: "),
        (spoiled("d", model__safetensors=None), InputMissingError, "must hold model.safetensors"),
        (
            spoiled("e", model__safetensors=None, model__ckpt=b""),
            UnsafeFormatError,
            "a pickle that may run code",
        ),
        (
            spoiled("f", model__safetensors=None, pytorch_model__bin=evil),
            UnsafeFormatError,
            "must hold tensors and nothing else",
        ),
        (spoiled("g", spiece__model=None), InputMissingError, "has no spiece.model"),
        (spoiled("h", spiece__model=b"x"), BundleError, "is not a sentencepiece model"),
    ):
        with pytest.raises(error, match=said.replace(".", r"\.")):
            MetricX(path, "metricx-24")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("d_kv", None),
        ("num_layers", "2"),
        ("num_layers", 10**9),
        ("num_heads", True),
        ("num_heads", 0),
        ("relative_attention_num_buckets", 2.5),
        ("relative_attention_num_buckets", 3),
        ("relative_attention_max_distance", 3),
        ("layer_norm_epsilon", "small"),
        ("layer_norm_epsilon", -1),
    ],
)
def test_a_config_with_a_wrong_size_is_refused_by_its_name(
    name: str, value: object, folder: Path, tmp_path: Path
):
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, name: value}))
    with pytest.raises(BundleError, match=rf"config\.json: {name}: "):
        MetricX(tmp_path, "metricx-24")


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


def test_the_command_prints_the_mean_and_writes_each_line(folder: Path, tmp_path: Path):
    save_bundle(tmp_path / "b", small_bundle(), card="", details={})
    (tmp_path / "a.fr").write_text("le chat\nle chien\n")
    (tmp_path / "a.en").write_text("the cat\nthe dog\n")
    scores = tmp_path / "scores.jsonl"
    files = [str(tmp_path / name) for name in ("b", "a.fr", "a.en")]
    metric = ["--metric", f"metricx-24={folder}"]
    result = CliRunner().invoke(
        evaluate_command, [*files, *metric, "--sentence-scores", str(scores)]
    )
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in scores.read_text().splitlines()]
    judge = MetricX(folder, "metricx-24")
    expected = judge.judge(
        ["le chat", "le chien"], [row["translation"] for row in rows], ["the cat", "the dog"]
    )
    assert [row["metricx-24"] for row in rows] == expected.by_sentence
    first = result.stdout.splitlines()[0]
    assert first.startswith(f"metricx-24   {expected.score:6.2f}   {expected.signature}|search:")
    assert "bleu" not in result.stdout

    named = CliRunner().invoke(evaluate_command, [*files, *metric, "--metric", "chrf", "--json"])
    found = json.loads(named.stdout)
    assert found["judged"] == {"metricx-24": pytest.approx(expected.score)}
    assert "chrf" in found
    assert "bleu" not in found
    for given, said in (
        ("comet=x", "a pickle that may run code, and is not read"),
        ("metricx=x", "a metric that is a model is metricx-23, metricx-23-qe,"),
    ):
        refused = CliRunner().invoke(evaluate_command, [*files, "--metric", given])
        assert said in str(refused.exception)
