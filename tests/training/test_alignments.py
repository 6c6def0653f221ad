"""``data.alignments``: given word alignments that the attention of one head learns."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from test_teacher import fingerprints, losses
from tiny_models import sources, targets, tiny_bundle, tiny_model
from tiny_runs import ONE_LAYER, SETTINGS

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.equations.losses import guided_alignment_loss
from pellucid.model.build import build_model
from pellucid.model.trace import Trace
from pellucid.text.batching import Batch, collate_pairs
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.store import TokenStore
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer
from pellucid.training.alignments import AlignedPairs, Alignments, aligned_lines, read_alignments
from pellucid.training.config import RunConfig, TrainingConfig
from pellucid.training.distributed import Share
from pellucid.training.journal import read_journal
from pellucid.training.measure import some_validated, timed_validation
from pellucid.training.objective import GuidedAlignment, build_objective
from pellucid.training.preparation import prepare_data
from pellucid.training.presets import read_config
from pellucid.training.train import train
from pellucid.training.validation import alignment_error

SIGNS = WordTokenizer(
    "punctuation", Vocabulary.of(["a", "b", "c", "d", ",", "."]), normalization="nfc"
)
LAYER = "decoder.layers.1.cross_attention.weights"


def written(folder: Path, source: str, target: str, links: str) -> tuple[PairFiles, list[str]]:
    for name, text in (("s", source), ("t", target), ("links", links)):
        (folder / name).write_text(text, encoding="utf-8")
    return PairFiles((folder / "s",), (folder / "t",)), [str(folder / "links")]


def test_each_token_of_a_word_has_the_links_of_its_word(tmp_path: Path):
    """Blank and long pairs have no row in the store, and none here."""
    files, names = written(
        tmp_path,
        "a, b\n \na b c d a b\nc \u00ad d.\n",
        "c d.\na\na\na b\n",
        "0-1 1-0 0-0\n0-0\n0-0\n2-0 2-0 1-1\n",
    )
    found = read_alignments(files, names, (SIGNS, SIGNS), 5)
    assert len(found.begins) == 3
    # "a," is tokens 0 and 1, "d." tokens 1 and 2; a word that normalization removes has none
    assert found.of(np.array([0])).tolist() == [
        [0, position, source]
        for position, own in ((0, (0, 1, 2)), (1, (0, 1)), (2, (0, 1)))
        for source in own
    ]
    assert found.of(np.array([1, 1])).tolist() == [[0, 0, 1], [0, 0, 2], [1, 0, 1], [1, 0, 2]]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-0\n", "must have a line for each of .*, and has fewer: they part at line 2"),
        ("0-0\n0-0\n0-0\n", "has more: they part at line 3"),
        ("0-0\n0:0\n", "line 2: a link must be two numbers such as 0-2, got '0:0'"),
        ("0-0 2-0\n0-0\n", "line 1: the link 2-0 is to word 2 of the source, which has 2 words"),
        ("0-0\n0-1\n", "line 2: the link 0-1 is to word 1 of the target, which has 1 word, from 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path, links: str, message: str):
    files, names = written(tmp_path, "a b\nc\n", "a\nb\n", links)
    with pytest.raises(DataError, match=message) as caught:
        read_alignments(files, names, (SIGNS, SIGNS), 5)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "characters"),
    [
        ("我看见一只黑猫在花园里。", 12),
        ("แมวดำนอนอยู่ในสวนหลังบ้าน หมาวิ่งเล่นอยู่ริมทะเล", 24),
        ("我 看见 一只 黑 猫", None),
        ("a b c", None),
    ],
)
def test_links_of_sentences_without_spaces_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, characters: int | None
):
    files, names = written(tmp_path, "a b\n" * 3, f"{line}\n" * 3, "0-0 1-0\n" * 3)
    read_alignments(files, names, (SIGNS, SIGNS), 50)
    said = [each for each in caplog.messages if "white space separates" in each]
    assert len(said) == (characters is not None)
    if characters is not None:
        assert f"which in the target are {characters} characters on average" in said[0]


def batch_with_links() -> Batch:
    source, labels = sources(5, 3, 4), targets(3, 4, seed=8)
    labels[:, 0], labels[1, 2:] = 5, PAD_ID
    links = torch.tensor([[0, 0, 1], [0, 0, 3], [0, 2, 0], [1, 1, 2], [2, 3, 0]])
    rows = [row[row != PAD_ID].tolist() for row in labels]
    batch = collate_pairs([row[row != PAD_ID][:-1].tolist() for row in source], rows)
    return dataclasses.replace(batch, links=links)


@pytest.mark.parametrize("head", [None, 1])
@pytest.mark.parametrize("more", [{}, {"r_drop": 3.0}, {"simcut": 3.0}])
def test_the_loss_is_that_of_the_attention_in_every_pass(
    head: int | None, more: dict[str, float], monkeypatch: pytest.MonkeyPatch
):
    """The model learns by it, and no other figure changes."""
    model, batch = tiny_model("ssru", dropout=0.2).train(), batch_with_links()
    config = TrainingConfig.parse({"max_steps": 1, **more})
    kept: list[Trace] = []
    init = Trace.__init__

    def keep(self: Trace, *patterns: str, **others: object) -> None:
        init(self, *patterns, **others)  # type: ignore[arg-type]
        if LAYER in patterns:
            kept.append(self)

    monkeypatch.setattr(Trace, "__init__", keep)
    sums = []
    for guided in (None, GuidedAlignment(1, head, 0.25)):
        model.dropout_source.seed(3)
        sums.append(build_objective(config, guided=guided)(model, batch))

    [trace] = kept
    weights = trace.values[LAYER]
    views = 2 if more else 1
    links = torch.zeros(len(batch.source), *weights.shape[2:], dtype=torch.bool)
    for sentence, target, source in batch.links.tolist():
        links[sentence, target, source] = True
    chosen = weights.mean(dim=1) if head is None else weights[:, head]
    expected = 0.25 / views * guided_alignment_loss(chosen, links.repeat(views, 1, 1))
    assert expected > 0.1
    torch.testing.assert_close(sums[1].loss - sums[0].loss, expected)
    assert sums[1].token_count == sums[0].token_count
    torch.testing.assert_close(
        sums[1].negative_log_likelihood, sums[0].negative_log_likelihood, rtol=1e-12, atol=0
    )
    sums[1].loss.backward()
    query = model.decoder.layers[1].cross_attention.w_qkv
    assert query.grad.abs().sum() > 0


def test_a_batch_without_labels_and_a_layer_that_was_left_out_have_no_alignment_loss():
    batch, guided = batch_with_links(), GuidedAlignment(1, 0, 0.25)
    blank = Share(0, np.arange(3), is_blank=True).taught(batch)
    config = TrainingConfig.parse({"max_steps": 1})
    assert build_objective(config, guided=guided)(tiny_model().train(), blank).loss == 0

    skipped = tiny_model(layer_drop=0.999, dropout=0.0).train()
    losses = [build_objective(config, guided=each)(skipped, batch).loss for each in (None, guided)]
    torch.testing.assert_close(*losses)


def test_the_alignment_error_counts_the_tokens_whose_most_attended_token_is_not_linked():
    model, pairs = tiny_model(), [([5, 6, 7], [8, 9]), ([9, 4], [5, 6, 7])]
    store = TokenStore.from_pairs(*zip(*pairs, strict=True))
    trace = Trace(LAYER)
    batch = collate_pairs(*zip(*pairs, strict=True))
    model(batch.source, batch.target_input, trace)
    best = trace.values[LAYER][:, 1].argmax(dim=-1)

    right = [[(t, int(best[n, t])) for t in range(len(pairs[n][1]))] for n in (0, 1)]
    # the third token of the second pair gets a wrong link beside none, the others stay right
    last = right[1].pop()
    right[1].append((last[0], (last[1] + 1) % 2))
    counts = [len(each) for each in right]
    links = np.array([link for each in right for link in each], dtype=np.int32)
    aligned = Alignments(links, np.cumsum([0, *counts]), "")
    config = RunConfig.parse(
        {"training": {"max_steps": 1}, "decoding": {"align_layer": 1, "align_head": 1}}
    )
    found = alignment_error(model, AlignedPairs(store, np.arange(2), aligned), config)
    assert found == pytest.approx(100 / 5)
    none = Alignments(links[:0], np.array([0, 0, 0]), "")
    assert alignment_error(model, AlignedPairs(store, np.arange(2), none), config) is None


@pytest.fixture
def guided(tmp_path: Path) -> list[str]:
    """Twelve pairs whose words are aligned crosswise, and the settings of a run that learns it."""
    words = "abcdefgh"
    lines = [" ".join(words[(n + k) % 8] for k in range(3 + n % 2)) for n in range(12)]
    turned = [" ".join(line.split()[::-1]).upper() for line in lines]
    links = [
        " ".join(f"{k}-{len(line.split()) - 1 - k}" for k in range(len(line.split())))
        for line in lines
    ]
    for name, text in (("s", lines), ("t", turned), ("links", links)):
        (tmp_path / name).write_text("\n".join(text) + "\n", encoding="utf-8")
    files = {"source": "s", "target": "t", "valid_source": "s", "valid_target": "t"}
    files |= {"alignments": "links", "valid_alignments": "links"}
    return [
        *(each for each in SETTINGS if not each.startswith(("phrasebook.", "data."))),
        *ONE_LAYER,
        *(f"data.{key}={tmp_path / name}" for key, name in files.items()),
        "tokenizer.kind=word",
        "tokenizer.vocabulary_size=30",
        "decoding.align_layer=0",
        "decoding.align_head=1",
    ]


def errors(run: Path) -> list[float]:
    events = read_journal(run / "journal.jsonl")
    return [each["alignment_error"] for each in events if each["event"] == "validation"]


def test_a_resumed_run_is_the_unbroken_one_and_other_alignments_are_refused(
    guided: list[str], tmp_path: Path
):
    config = read_config("demo", [*guided, "training.max_steps=6"])
    train(config, tmp_path / "unbroken")
    updates = iter(range(100))
    train(
        config,
        tmp_path / "broken",
        should_stop=lambda: "asked" if next(updates) == 3 else None,
    )
    train(config, tmp_path / "broken", resume=True)
    assert losses(tmp_path / "broken") == losses(tmp_path / "unbroken")
    assert fingerprints(tmp_path / "broken", 6) == fingerprints(tmp_path / "unbroken", 6)
    assert 0 <= errors(tmp_path / "unbroken")[-1] <= 100

    links = tmp_path / "links"
    links.write_text(links.read_text().replace("0-2", "0-1"))
    longer = read_config("demo", [*guided, "training.max_steps=8"])
    with pytest.raises(ConfigError, match="the word alignments are not those this run began with"):
        train(longer, tmp_path / "broken", resume=True)


@pytest.mark.parametrize(("given", "written"), [(2, 2), (60, 4)])
def test_a_timed_validation_is_of_a_few_pairs_and_writes_what_the_run_would(
    given: int, written: int, guided: list[str], tmp_path: Path
):
    """Twelve pairs of 3 or 4 words; a model that was not trained hardly stops."""
    config = read_config("demo", [*guided, f"decoding.max_length={given}"])
    data = prepare_data(config, tmp_path / "run")
    sizes = data.source_tokenizer.vocabulary_size, data.target_tokenizer.vocabulary_size
    model = build_model(config.model, *sizes, seed=0)
    _, found = timed_validation(model, data, config, 5)
    assert len(found.sample[2].split()) == written

    few = some_validated(data, 5)
    assert few.valid_alignments is not None
    counts = len(few.valid), len(few.valid_references), len(few.valid_alignments.rows)
    assert counts == (5, 5, 5)
    assert {len(few.valid_alignments.store.pair(row)[0]) for row in few.valid_alignments.rows} == {
        3,
        4,
    }


def test_what_cannot_be_learned_is_refused(guided: list[str], tmp_path: Path):
    for setting, message in (
        ("decoding.align_layer=1", "align_layer, the decoder layer that learns them, from 0 to 0,"),
        ("decoding.align_head=9", "decoding.align_head must be below 2, the heads, got 9"),
        ("data.alignments=[]", "valid_alignments needs alignments"),
        ("data.both_directions=true", "alignments and both_directions exclude each other"),
        ('data.alignments=["a", "b"]', "one file for each of source, got 2 for 1"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_config("demo", [*guided, setting])
    with pytest.raises(ConfigError, match="the text must be the same in every epoch"):
        read_config("demo", [*guided, "tokenizer.kind=bpe", "tokenizer.vocabulary_size=300",
                             "tokenizer.sampling=0.1"])  # fmt: skip
    pairs = {"source": "s", "target": "t", "alignments": "links"}
    with pytest.raises(
        ConfigError, match=r"data.alignments is for model.kind=transformer, not rnn"
    ):
        RunConfig.parse({"data": pairs, "model": {"kind": "rnn"}, "training": {"max_steps": 1}})
    config = read_config("demo", [*guided, "training.max_steps=2"])
    with pytest.raises(ConfigError, match="learned by the config's own loss, not by another"):
        train(config, tmp_path / "out", make_objective=lambda *_: build_objective(config.training))


def test_a_model_s_alignments_are_written_as_they_are_read(tmp_path: Path):
    """A model that attends to one word alone aligns all with it; emoji beside it break nothing."""
    bundle = tiny_bundle()
    (tmp_path / "s").write_text("a b c\n\n😀 a b\nd e\n", encoding="utf-8")
    (tmp_path / "t").write_text("c b a\na\na b\ng\n", encoding="utf-8")
    translator = Translator(bundle, DecodingConfig())
    found = list(aligned_lines(translator, tmp_path / "s", tmp_path / "t"))
    assert [line for line in (found[1],) if line] == []
    given = [
        Translation(
            target, 0.0, (), (), (), source, token_ids=bundle.target_tokenizer.encode(target)
        )
        for source, target in (("a b c", "c b a"), ("d e", "g"))
    ]
    for line, weights in zip((found[0], found[3]), translator.attention(given), strict=True):
        shares = weights * weights / weights[:-1].sum(dim=0)
        best = shares[:-1, :-1].argmax(dim=1).tolist()
        assert line == " ".join(f"{source}-{target}" for target, source in enumerate(best))
    (tmp_path / "links").write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    files = PairFiles((tmp_path / "s",), (tmp_path / "t",))
    tokenizers = bundle.source_tokenizer, bundle.target_tokenizer
    read = read_alignments(files, [str(tmp_path / "links")], tokenizers, 9)
    assert len(read.begins) == 4  # the blank pair has none
    assert len(read.of(np.array([0]))) == 3
