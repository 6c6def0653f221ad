"""Why this word and not that one: parts that sum to the difference, and shares that sum to one."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from commands import pellucid
from tiny_models import VARIANTS, VOCABULARY, tiny_bundle
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError, PellucidError
from pellucid.equations.attribution import normalize_part
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.why import Why, why
from pellucid.model.build import build_any_model
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.tokenizers.vocabulary import Vocabulary
from pellucid.text.tokenizers.word_tokenizers import WordTokenizer

SOURCE, TARGET = "a b c d", "c a b"


def text_bundle(kind: str, **settings: object) -> Bundle[SequenceModel]:
    """A random model of plain text over nine letters, in float64."""
    letters = WordTokenizer("word", Vocabulary.of("abcdefghi"))
    layers = f"{kind}_layers"
    sizes = {"d_model": 8, "d_ff": 12, "heads": 2, layers: 2}
    config = parse_model_config({"kind": kind, **sizes, **settings})
    model = build_any_model(config, VOCABULARY, VOCABULARY, seed=1).double().eval()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return Bundle(model, letters, letters, {}, {})


def check_sums(result: Why) -> None:
    assert result.total == pytest.approx(result.difference, rel=0, abs=1e-10)
    assert result.difference == pytest.approx(result.word.logit - result.rival.logit)
    assert result.source_share + result.prefix_share == pytest.approx(1.0)
    for part in result.parts:
        if part.attended:
            assert sum(part.attended) == pytest.approx(part.value, rel=0, abs=1e-12)
    assert max(abs(part.value) for part in result.parts) > 0.01


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_parts_of_every_model_sum_to_the_difference_of_the_logits(variant: str):
    bundle = tiny_bundle(variant)
    logits = inspect(bundle, SOURCE, TARGET, only=("logits",))["logits"]
    more = [(0, "e"), (3, "a")] if variant in ("paper", "ssru") else []
    for position, rival in ((2, "i"), *more):
        result = why(bundle, SOURCE, TARGET, position=position, rival=rival)
        check_sums(result)
        said, other = logits[position, [result.word.id, result.rival.id]].tolist()
        assert result.difference == pytest.approx(said - other)
        heads = [part for part in result.parts if part.attended]
        crossing, own = bundle.model.config.heads, bundle.model.config.heads
        if bundle.model.config.decoder == "ssru":
            own = 1  # it has no heads, and tells its words apart all the same
        assert len(heads) == 2 * (crossing + own)
        assert {len(part.attended) for part in heads} == {4, 5}  # of target input and source


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_models_of_plain_text_are_explained_by_their_own_words(kind: str, norm: str):
    bundle = text_bundle(kind, norm=norm, output_bias=True, attention_bias=True)
    text = "a b c d" if kind == "decoder" else "a [MASK] c d"
    result = why(bundle, text, position=1, rival="g")
    check_sums(result)
    assert result.source_contributions == ()
    assert len(result.prefix_contributions) == 5
    assert "from the source" not in str(result)
    if kind == "decoder":
        assert result.sentence.target_input_tokens == ("<s>", "a", "b", "c", "d")
        assert result.word.token == "b"
        assert result.prefix_contributions[2:] == (0.0, 0.0, 0.0)  # nobody reads ahead
    else:
        assert result.sentence.target_tokens == ("a", "[MASK]", "c", "d", "</s>")
        with torch.no_grad():
            logits = bundle.model(torch.tensor([[4, 2, 6, 7, 3]]))[0, 1]
        assert result.word.id == int(logits.argmax())


def test_a_head_reaches_the_logits_through_every_norm_that_follows():
    """Head 1 of the first cross-attention, taken forward through the norms of a post-norm model."""
    bundle = tiny_bundle("paper")
    capture = inspect(bundle, SOURCE, TARGET)
    layers = bundle.model.decoder.layers
    row, name = 1, "decoder.layers.0.cross_attention"

    w_o = layers[0].cross_attention.w_o.T[4:]
    part = capture[f"{name}.heads.1.output"][row] @ w_o
    for index, sublayer in (
        (0, "cross_attention"),
        (0, "feed_forward"),
        (1, "self_attention"),
        (1, "cross_attention"),
        (1, "feed_forward"),
    ):
        norm = getattr(layers[index], f"{sublayer}_norm").norm
        residual = capture[f"decoder.layers.{index}.{sublayer}.residual"][row]
        part = normalize_part(part, residual, norm.kind, norm.gain, norm.eps)
    words = bundle.model.output_weight
    expected = float(part @ (words[4] - words[9]))

    result = why(bundle, SOURCE, TARGET, position=row, rival="f")
    [found] = [each for each in result.parts if each.name == f"{name}.heads.1.output"]
    assert found.value == pytest.approx(expected, rel=1e-9)


def alti(parts: Tensor, whole: Tensor) -> Tensor:
    """Contributions written out, for one position."""
    near = [max(0.0, float(whole.abs().sum() - (whole - part).abs().sum())) for part in parts]
    return torch.tensor(near, dtype=torch.float64) / sum(near)


def one_attention(capture: Capture, bundle: Bundle, name: str, queries: int) -> list[list[Tensor]]:
    """What every position brings to every query, of one pre-norm attention with one head."""
    w_o = bundle.model.get_submodule(name).w_o.T
    weights, value = capture[f"{name}.weights"][0], capture[f"{name}.value"][0]
    return [
        [weights[query, key] * value[key] @ w_o for key in range(len(value))]
        for query in range(queries)
    ]


def test_the_shares_of_source_and_prefix_by_hand():
    """One pre-norm layer on each side with one head, word by word (ALTI+)."""
    bundle = tiny_bundle("pre-norm", heads=1, encoder_layers=1, decoder_layers=1)
    capture = inspect(bundle, SOURCE, TARGET)

    shares = {}
    for side, name, count in (("encoder", "encoder", 5), ("decoder", "decoder", 4)):
        name = f"{name}.layers.0.self_attention"
        parts = one_attention(capture, bundle, name, count)
        before, after = capture[f"{side}.input"], capture[f"{name}.residual"]
        for row in range(count):
            parts[row][row] = parts[row][row] + before[row]
        shares[side] = torch.stack([alti(parts[row], after[row]) for row in range(count)])

    name = "decoder.layers.0.cross_attention"
    parts = one_attention(capture, bundle, name, 4)
    stream, after = capture["decoder.layers.0.self_attention.residual"], capture[f"{name}.residual"]
    crossed = torch.stack([alti([*parts[row], stream[row]], after[row]) for row in range(4)])
    found = []
    for row in range(4):
        result = why(bundle, SOURCE, TARGET, position=row)
        source = crossed[row, :5] @ shares["encoder"]
        prefix = crossed[row, 5] * shares["decoder"][row]
        assert result.source_contributions == pytest.approx(source.tolist())
        assert result.prefix_contributions == pytest.approx(prefix.tolist())
        found.append(result.source_share)
    assert any(0.1 < share < 0.9 for share in found), "or the sides could not be told apart"


def test_the_shares_of_several_post_norm_layers_by_hand():
    """Two layers on each side: their order, and the gain of each norm, which weighs the parts."""
    bundle = tiny_bundle("paper", heads=1)
    capture = inspect(bundle, SOURCE, TARGET)

    def mixed(side: str, index: int, kind: str, before: Tensor, *, own: bool) -> Tensor:
        """Contributions to each position of one attention, behind the norm that follows it."""
        name = f"{side}.layers.{index}.{kind}"
        norm = bundle.model.get_submodule(f"{name}_norm.norm")
        residual, after = capture[f"{name}.residual"], capture[f"{name}.norm"]
        rows = []
        for row, parts in enumerate(one_attention(capture, bundle, name, len(before))):
            if own:
                parts[row] = parts[row] + before[row]
            else:
                parts.append(before[row])
            deviation = (residual[row].var(correction=0) + norm.eps).sqrt()
            normed = [norm.gain * (part - part.mean()) / deviation for part in parts]
            rows.append(alti(torch.stack(normed), after[row]))
        return torch.stack(rows)

    before, encoded = capture["encoder.input"], torch.eye(5, dtype=torch.float64)
    for index in range(2):
        encoded = mixed("encoder", index, "self_attention", before, own=True) @ encoded
        before = capture[f"encoder.layers.{index}.feed_forward.norm"]

    before = capture["decoder.input"]
    source, prefix = torch.zeros(4, 5).double(), torch.eye(4, dtype=torch.float64)
    for index in range(2):
        attended = mixed("decoder", index, "self_attention", before, own=True)
        before = capture[f"decoder.layers.{index}.self_attention.norm"]
        crossed = mixed("decoder", index, "cross_attention", before, own=False)
        before = capture[f"decoder.layers.{index}.feed_forward.norm"]
        read, kept = crossed[:, :5], crossed[:, 5:]
        source = kept * (attended @ source) + read @ encoded
        prefix = kept * (attended @ prefix)

    for row in range(4):
        result = why(bundle, SOURCE, TARGET, position=row)
        assert result.source_contributions == pytest.approx(source[row].tolist())
        assert result.prefix_contributions == pytest.approx(prefix[row].tolist())


def test_the_position_and_the_words_are_found():
    bundle = tiny_bundle()
    probabilities = inspect(bundle, SOURCE, TARGET, only=("probabilities",))["probabilities"]
    said = [6, 4, 5, 3]

    least_sure = why(bundle, SOURCE, TARGET)
    assert least_sure.position == min(range(4), key=lambda row: probabilities[row, said[row]])
    by_word = why(bundle, SOURCE, TARGET, word="a")
    assert (by_word.position, by_word.word.token) == (1, "a")
    others = {id_: float(p) for id_, p in enumerate(probabilities[1]) if id_ not in (0, 2, 4)}
    assert by_word.rival.id == max(others, key=lambda id_: others[id_])
    assert by_word.word.probability == pytest.approx(float(probabilities[1, 4]))

    by_rival = why(bundle, SOURCE, TARGET, rival="a")  # not where "a" was said itself
    assert by_rival.position == max((0, 2, 3), key=lambda row: probabilities[row, 4])
    anywhere = why(bundle, SOURCE, TARGET, position=0, word="h", rival="</s>")
    assert (anywhere.word.token, anywhere.rival.token) == ("h", "</s>")


class Pieces(WordTokenizer):
    """Words of two letters are two tokens."""

    def encode(self, text: str) -> list[int]:
        return super().encode(" ".join(text))


class Spaced(WordTokenizer):
    """A sign of a space before each word, as in sentencepiece; marks stand without one."""

    PIECES = ("▁", "▁a", "▁b", "▁?", ".", "!", "b", "?", "d")

    def encode(self, text: str) -> list[int]:
        marks = {"a.": "▁a .", "a!": "▁a !", "!": "▁ !", ".": "▁ .", "ab": "▁a b", "ad": "▁a d"}
        return super().encode(marks.get(text, f"▁{text}"))


@pytest.mark.parametrize(
    ("word", "rival", "position", "found"),
    [
        (".", "!", 1, (".", "!")),
        (".", "b", 1, (".", "b")),
        ("a", "b", 0, ("▁a", "▁b")),
        ("a", "!", 0, ("▁a", "▁")),
        ("a", "ad", 1, (".", "d")),
        ("</s>", "b", 2, ("</s>", "▁b")),
        ("</s>", "!", 2, ("</s>", "!")),
    ],
)
def test_another_word_stands_where_the_word_stands(
    word: str, rival: str, position: int, found: tuple[str, str]
):
    """Behind a full stop's place no space is asked for; a longer word parts from what follows."""
    pieces = Spaced("word", Vocabulary.of(Spaced.PIECES))
    bundle = Bundle(tiny_bundle().model, pieces, pieces, {}, {})
    result = why(bundle, "a", "a.", word=word, rival=rival)
    assert (result.position, result.word.token, result.rival.token) == (position, *found)
    check_sums(result)


@pytest.mark.parametrize(("rival", "mark"), [("!", "!"), (".", "."), ("?", "?")])
def test_a_mark_alone_is_sought_as_it_would_stand_there(rival: str, mark: str):
    """And not by the space that its first token is where nothing stands before it."""
    pieces = Spaced("word", Vocabulary.of(Spaced.PIECES))
    bundle = Bundle(tiny_bundle().model, pieces, pieces, {}, {})
    capture = inspect(bundle, "a", "a.", only=("logits",))
    ids = {piece: 4 + at for at, piece in enumerate(Spaced.PIECES)}
    logits, shares = capture["logits"], capture["logits"].softmax(-1)

    readings = {1: ids[mark], 2: ids[mark]}
    if rival == ".":
        del readings[1]  # where it was generated itself
    if rival == "?":  # it has a token of its own behind a space
        readings[0] = ids["▁?"]
        readings[2] = max((ids["?"], ids["▁?"]), key=lambda id_: logits[2, id_])
    result = why(bundle, "a", "a.", rival=rival)
    assert result.position == max(readings, key=lambda row: shares[row, readings[row]])
    assert result.rival.id == readings[result.position]


def test_a_mark_in_the_place_of_a_mask_is_read_without_a_space():
    pieces = Spaced("word", Vocabulary.of(Spaced.PIECES))
    model = text_bundle("encoder", output_bias=True).model
    with torch.no_grad():
        model.output_bias[pieces.encode("a.")[1]] += 50.0  # the mask is filled by a full stop
    bundle: Bundle[SequenceModel] = Bundle(model, pieces, pieces, {}, {})
    result = why(bundle, "a [MASK]", word="!")
    assert (result.word.token, result.rival.token) == ("!", ".")


def test_words_of_several_tokens_are_compared_where_they_part():
    bundle = tiny_bundle()
    pieces = Pieces("word", Vocabulary.of("abcdefghi"))
    bundle = Bundle(bundle.model, pieces, pieces, {}, {})
    result = why(bundle, "abcd", "cab", word="ab", rival="ai")
    assert (result.position, result.word.token, result.rival.token) == (2, "b", "i")
    check_sums(result)
    with pytest.raises(ConfigError) as caught:
        why(bundle, "abcd", "cab", word="ab", rival="a")
    assert str(caught.value) == "the two words must differ in a token, got a b and a"
    with pytest.raises(ConfigError) as caught:
        why(bundle, "abcd", "cab", position=0, word="ab", rival="ad")
    assert str(caught.value) == (
        "the tokens that the two words share must stand in the target, got a at position 0"
    )


class Letters(WordTokenizer):
    """Each letter is a token, as the space is."""

    def encode(self, text: str) -> list[int]:
        return super().encode(" ".join(text.replace(" ", "▁")))

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).replace(" ", "").replace("▁", " ")


def test_a_word_is_not_found_inside_another():
    """As ``he`` in ``the`` and ``her``. A word of Chinese has no space around it."""
    letters = Letters("word", Vocabulary.of(["▁", *"ther", "猫", "黑"]))
    bundle = Bundle(tiny_bundle().model, letters, letters, {}, {})
    assert why(bundle, "t", "the her he", word="he").position == 8
    assert why(bundle, "t", "he the", word="he").position == 0
    assert why(bundle, "t", "黑猫", word="猫").position == 1
    with pytest.raises(ConfigError, match="'he' must be a word of 't h e ▁ h e r </s>'"):
        why(bundle, "t", "the her", word="he")
    # a token as it is shown
    assert why(bundle, "t", "the", word="h").position == 1


def test_what_cannot_be_explained_is_refused():
    for variant, kind in (("lstm", "rnn"), ("additive", "rnn-attention")):
        with pytest.raises(ConfigError) as caught:
            why(tiny_bundle(variant), SOURCE, TARGET)
        assert str(caught.value) == (
            "a prediction is a sum of parts only where a residual stream leads to it, got"
            f" model.kind={kind}"
        )
    with pytest.raises(ConfigError, match=r"position must be from 0 to 3, got 4"):
        why(tiny_bundle(), SOURCE, TARGET, position=4)
    with pytest.raises(ConfigError, match=r"'i' must be a word of 'c a b </s>'"):
        why(tiny_bundle(), SOURCE, TARGET, word="i")
    with pytest.raises(ConfigError, match=r"a word must have a token, got ' '"):
        why(tiny_bundle(), SOURCE, TARGET, rival=" ")
    broken = tiny_bundle()
    with torch.no_grad():
        broken.model.output_weight[5] = torch.nan
    for words in ({}, {"word": "a", "rival": "i"}):
        with pytest.raises(PellucidError, match="gives each token a probability, got NaN"):
            why(broken, SOURCE, TARGET, **words)
    with pytest.raises(ConfigError, match="kind decoder reads one text and has no target"):
        why(text_bundle("decoder"), SOURCE, TARGET)


def test_it_prints_the_largest_parts_their_sum_and_the_shares():
    result = why(tiny_bundle(), SOURCE, TARGET, position=1, rival="d")
    title, empty, *lines = str(result).splitlines()
    assert title.startswith("position 1: a (p 0.")
    assert " and not d (p 0." in title
    assert empty == ""
    first = result.largest[0]
    assert lines[0].split()[:2] == [f"{first.value:+.3f}", first.name]
    assert f"the other {len(result.parts) - 10} parts" in lines[10]
    assert lines[11].split() == [f"{result.total:+.3f}", "sum", "of", "all", "parts"]
    assert lines[12].split()[0] == f"{result.difference:+.3f}"
    assert lines[-1].endswith("from the words before, by ALTI+ (Ferrando et al., 2022)")
    assert sum(result.by_kind().values()) == pytest.approx(result.total)
    markup = result._repr_html_()
    assert markup.count("<tr>") == len(result.parts) + 3


def test_the_command_prints_the_same_and_json_holds_all(tiny_run: Path):
    asked = ("inspect", tiny_run, "le chat dort", "--target", "the cat sleeps", "--why", "cat")
    expected = why(tiny_run, "le chat dort", "the cat sleeps", word="cat", rival="dog")
    printed = pellucid(*asked, "--not", "dog")
    assert printed.code == 0
    assert printed.out == f"{expected}\n"
    found = json.loads(pellucid(*asked, "--not", "dog", "--json").out)
    assert found == expected.to_dict()
    refused = pellucid(*asked, "--saliency")
    assert refused.code == 2
    assert "--why and --not go with --target and --json only" in refused.err
