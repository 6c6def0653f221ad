"""The worked examples: their numbers, worked by hand or as the texts print them."""

import itertools
import math
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from book.__main__ import cli, main
from book.examples.names import (
    EXAMPLE_NAMES,
    LINES,
    ExampleName,
    check_name,
    list_examples,
)
from book.examples.page import WIDTH, Cell, Example, Table, print_example, table
from book.examples.work import work_out
from pellucid.core.errors import ConfigError

ROOT = Path(__file__).parents[2]
EVERY_EXAMPLE = pytest.mark.parametrize("name", EXAMPLE_NAMES)


def step(name: ExampleName, title: str) -> Table:
    """The table of an example whose title begins so."""
    [found] = [each for each in work_out(name).tables if each.title.startswith(title)]
    return found


def numbers(name: ExampleName, title: str) -> list[list[float]]:
    """What of it is no word."""
    return [[c for c in row if not isinstance(c, str)] for row in step(name, title).rows]


def close(got: list[list[float]], *wanted: list[float], abs: float = 5e-7) -> None:
    assert len(got) == len(wanted)
    for row, expected in zip(got, wanted, strict=True):
        assert row == pytest.approx(expected, abs=abs)


# --- What every example keeps


@EVERY_EXAMPLE
def test_an_example_fits_on_the_screen_and_says_where_it_comes_from(name: ExampleName):
    example = work_out(name)
    assert example.name == name
    text = print_example(example)
    assert max(map(len, text.splitlines())) <= WIDTH
    sources = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    texts = ["the paper", *re.findall(r"^\| \*\*([\w ]+)\*\*", sources, re.MULTILINE)]
    assert len(texts) == 6
    assert example.source.startswith(tuple(texts))


@EVERY_EXAMPLE
def test_its_numbers_lead_to_entries_that_exist(name: ExampleName):
    entries = work_out(name).entries
    pages = "".join(
        (ROOT / "docs" / page).read_text(encoding="utf-8")
        for page in ("equations.toml", "errata.toml")
    )
    known = set(re.findall(r"^(\d+) = ", pages, re.MULTILINE))
    found = re.findall(r"E[QR]-(\d+)", entries)
    assert set(found) <= known
    assert found or entries == "no EQ number"


def test_every_erratum_with_a_wrong_number_has_an_example():
    """Sums and tables that a text prints wrong; misprints of formulas are no examples."""
    cited = "".join(work_out(name).entries for name in EXAMPLE_NAMES)
    for number in ("01", "02", "03", "04", "05", "07", "31", "37", "39", "45"):
        assert f"ER-{number}" in cited


def test_the_list_has_a_line_for_each():
    assert list(LINES) == list(EXAMPLE_NAMES)
    lines = list_examples().splitlines()
    assert [line.split()[0] for line in lines] == list(EXAMPLE_NAMES)
    assert max(map(len, lines)) <= WIDTH


def test_the_command_lists_them_and_shows_those_that_are_named():
    listed = CliRunner().invoke(cli, ["examples"])
    assert (listed.exit_code, listed.stdout.rstrip()) == (0, list_examples())
    assert "python -m book examples NAME" in listed.stderr
    shown = CliRunner().invoke(cli, ["examples", "softmax", "attention"])
    assert shown.exit_code == 0
    assert shown.stdout.rstrip() == "\n\n".join(
        print_example(work_out(name)) for name in ("softmax", "attention")
    )


def test_an_unknown_example_is_refused_with_what_was_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(ConfigError) as caught:
        check_name("softmaxx")
    assert str(caught.value) == "there is no example 'softmaxx' (did you mean softmax?)"
    assert caught.value.hint == "python -m book examples lists all of them"
    monkeypatch.setattr(sys, "argv", ["book", "examples", "zzz"])
    with pytest.raises(SystemExit, match="78"):
        main()
    assert capsys.readouterr() == (
        "",
        "error: there is no example 'zzz'; hint: python -m book examples lists all of them\n",
    )


def test_the_page_names_every_example():
    page = (ROOT / "docs" / "book.md").read_text(encoding="utf-8")
    section = page.partition("## Examples\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)`", section, re.MULTILINE) == list(EXAMPLE_NAMES)


def test_numbers_end_and_words_begin_in_one_column():
    rows: list[tuple[Cell, ...]] = [("a", 1.5, -0.0, -math.inf), ("bb", -10.25, 2e-9, 1234)]
    example = Example("softmax", "s", "e", "x", ("f",), (table("t:", rows, ["w", "n", "z", "i"]),))
    lines = print_example(example).splitlines()[-3:]
    assert lines == [
        "    w          n          z      i",
        "    a     1.5000  0.000e+00     -∞",
        "    bb  -10.2500  2.000e-09  1,234",
    ]


# --- Words


@pytest.mark.by_hand
def test_the_sentence_is_split_as_agarwal_prints_it():
    """EQ-01, EQ-04, EQ-05, EQ-06, EQ-08: word for word; 27 characters with the three spaces."""
    rows = step("tokenization", "Words").rows
    assert [row[2] for row in rows] == [
        "Isn't | this | project | amazing?",
        "Isn | ' | t | this | project | amazing | ?",
        "Is | n't | this | project | amazing | ?",
    ]
    assert [row[1] for row in rows] == [4, 7, 6]
    assert numbers("tokenization", "Characters") == [[27, 19], [24, 18]]


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_rare_words_are_cut_into_known_pieces():
    """EQ-09, EQ-10; ER-07: a vocabulary with ``nonsense`` cannot give the printed pieces."""
    assert [row[1] for row in step("subwords", "Vocabulary").rows] == [
        "token | ization",
        "token",
        "z | q | x",
    ]
    assert [row[1] for row in step("bert-tokenizer", "The same").rows] == [
        "this | is | not | non | ##sense | .",
        "this | is | not | nonsense | .",
    ]


@pytest.mark.by_hand
def test_two_words_are_known_and_the_others_unknown():
    """EQ-02, EQ-03, EQ-07: ``a`` stands three times, ``dog`` twice: ids 4 and 5."""
    assert step("vocabulary", "The two").rows == (("a", 4), ("dog", 5))
    _, ids, decoded = step("vocabulary", "A sentence").rows
    assert ids[1:] == ("4", "5", "1", "4", "1")
    assert decoded[1:] == ("a", "dog", "[UNK]", "a", "[UNK]")


@pytest.mark.by_hand
def test_five_words_have_fourteen_pairs():
    """EQ-17: two neighbors at the ends, three beside them, four in the middle."""
    pairs = step("skip-gram", "A window of 2 makes 14 pairs")
    assert pairs.rows[0] == ("the", "quick, brown")
    assert pairs.rows[2] == ("brown", "the, quick, fox, jumps")


@pytest.mark.by_hand
def test_the_decoder_reads_the_labels_one_later():
    """EQ-106; ER-45: with a stop token among the labels."""
    printed, right = work_out("right-shift").tables
    assert printed.rows == (
        ("input", "<start>", "i", "am", "a"),
        ("label", "i", "am", "a", "student"),
    )
    assert right.rows[0][-1] == "student"
    assert right.rows[1][-1] == "<stop>"


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_teacher_forcing_reads_the_whole_sentence_and_the_whole_prefix():
    """EQ-121, ER-39: five labels, the last is the stop token."""
    rows = step("teacher-forcing", "What the model").rows
    assert [row[0] for row in rows] == ["I live in Paris"] * 5
    assert rows[2][1:] == ("<start> Je vis", "𝓛(pred3, à)")
    assert rows[-1][1:] == ("<start> Je vis à Paris", "𝓛(pred5, <stop>)")
    assert step("teacher-forcing", "As printed").rows[1] == ("live", "Je", "𝓛(pred2, vis)")
    assert step("inference", "What the model").rows[2] == (
        "I live in Paris",
        "<start> pred1 pred2",
        "pred3",
    )


@pytest.mark.by_hand
def test_without_a_mask_he_becomes_i_and_with_it_he_stays():
    """The steps of Single Page, and its last translation."""
    rows = step("re-predicting", "Without").rows
    assert rows[:3] == (
        (1, "<start>", "he"),
        (2, "<start> he", "i am"),
        (3, "<start> i am", "i am a"),
    )
    assert rows[-1][2] == "i am a good student <stop>"
    under_mask = [str(row[2]).split() for row in step("re-predicting", "The same").rows]
    for before, after in itertools.pairwise(under_mask):
        assert after[: len(before)] == before


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_two_beams_find_what_greedy_search_misses():
    """EQ-117, EQ-126, EQ-127: .6 · .4 = .24 against .4 · .9 = .36; the sentences sum to 1."""
    sentences = numbers("beam-search", "All")
    assert sum(row[0] for row in sentences) == pytest.approx(1)
    assert [row[0] for row in sentences[:4]] == pytest.approx([0.36, 0.24, 0.18, 0.18])
    assert [row[1:] for row in step("beam-search", "What is found").rows] == [
        ("A <stop>", pytest.approx(0.24)),
        ("A <stop>", pytest.approx(0.24)),
        ("B <stop>", pytest.approx(0.36)),
        ("B <stop>", pytest.approx(0.36)),
    ]


# --- Numbers


@pytest.mark.by_hand
def test_a_one_hot_row_picks_a_row_and_the_root_of_four_doubles_it():
    """EQ-13, EQ-14, EQ-15."""
    close(numbers("embedding", "x, one-hot"), [0, 0, 1], [1, 0, 0])
    close(numbers("embedding", "x W"), [0.9, 1.0, 1.1, 1.2], [0.1, 0.2, 0.3, 0.4])
    assert numbers("embedding", "The rows") == numbers("embedding", "x W")
    close(numbers("embedding", "Scaled"), [1.8, 2.0, 2.2, 2.4], [0.2, 0.4, 0.6, 0.8])


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_positions_are_sines_and_cosines():
    """EQ-24, EQ-32: products of distance 7 are equal, and the square of a length is d/2 = 8."""
    rows = numbers("positional-encoding", "d = 4")
    close(rows[:2], [0, 1, 0, 1], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)])
    close(
        numbers("positional-encoding", "If features"),
        [math.cos(1), math.sin(0.01), math.cos(0.01), math.sin(0.0001)],
    )
    close(numbers("positional-encoding", "d = 16"), [5.892186], [5.892186], [8.0])


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_the_longest_wave_is_shorter_than_printed():
    """EQ-26, EQ-27, ER-31: 2π · 10^(4 · 62/64) and 2π · 10^(4 · 510/512) against 2π · 10⁴."""
    close(
        numbers("wavelengths", "The longest"),
        [20000 * math.pi, 2 * math.pi * 10 ** (4 * 62 / 64)],
        [20000 * math.pi, 2 * math.pi * 10 ** (4 * 510 / 512)],
        abs=1e-6,
    )
    assert numbers("wavelengths", "Some")[3][2:] == pytest.approx([200 * math.pi, 100])


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_softmax_of_three_vectors():
    """EQ-38, EQ-40, EQ-41, EQ-42: e / (e + 2), 1 / (e + 2); e¹⁰ / (e¹⁰ + 2); 1/3."""
    e, big = math.e, math.exp(10)
    close(
        numbers("softmax", "Computed"),
        [e / (e + 2), 1 / (e + 2), 1 / (e + 2), 1],
        [big / (big + 2), 1 / (big + 2), 1 / (big + 2), 1],
        [1 / 3, 1 / 3, 1 / 3, 1],
        [1 / 3, 1 / 3, 1 / 3, 1],
    )
    # A norm that counts entries: e/3, 1/3, 1/3, which sum to more than 1.
    printed, right = numbers("softmax", "The vector form")
    assert printed == pytest.approx([e / 3, 1 / 3, 1 / 3, (e + 2) / 3])
    assert right == numbers("softmax", "Computed")[0]


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_ten_times_the_vector_saturates():
    """EQ-43, EQ-45; ER-03: 1 / (1 + e¹⁰) is 4.54e-5, not 4e-5. e¹⁰ is 22,026.47, not 22,046.5."""
    exponentials = step("softmax-scale", "Exponentials").rows
    assert exponentials[2] == ("exp(10)", "22,046.5", pytest.approx(22026.4658, abs=5e-5))
    _, ten = step("softmax-scale", "Softmax").rows
    assert ten[1:] == (
        "4e-5",
        pytest.approx(1 / (1 + math.exp(10)), rel=1e-9),
        "0.999…",
        pytest.approx(0.9999546, abs=5e-8),
    )
    close(numbers("softmax-scale", "Divided"), [1 / (1 + math.e), math.e / (1 + math.e)])


@pytest.mark.by_hand
def test_the_jacobian_vanishes_and_comes_back_with_the_scale():
    """EQ-47: p(1 - p) for p = 1 / (1 + e) and 1 / (1 + e¹⁰); C = 10 divides the first by 10."""
    first, second = (1 / (1 + math.exp(each)) for each in (1, 10))
    close(
        numbers("softmax-jacobian", "Entries"),
        [1, first * (1 - first), -first * (1 - first)],
        [1, second * (1 - second), -second * (1 - second)],
        [10, first * (1 - first) / 10, -first * (1 - first) / 10],
        abs=1e-12,
    )
    [[by_ten_thousand], [by_ten]] = numbers("softmax-jacobian", "How many")
    assert by_ten_thousand == pytest.approx(4331, abs=0.5)
    assert by_ten == pytest.approx(10)


@pytest.mark.by_hand
def test_attention_step_by_step():
    """EQ-50, EQ-51, EQ-52, EQ-53, EQ-61: e^(1/√2) : 1 : e^(1/√2), without the root e : 1 : e."""
    a, b = math.exp(math.sqrt(0.5)), math.e
    first, second = a / (2 * a + 1), 1 / (2 * a + 1)
    close(numbers("attention", "QKᵀ:"), [1, 0, 1], [0, 1, 1])
    close(numbers("attention", "softmax"), [first, second, first], [second, first, first])
    close(numbers("attention", "times V"), [3, 4], [second + 8 * first, 2 * second + 10 * first])
    first, second = b / (2 * b + 1), 1 / (2 * b + 1)
    close(numbers("attention", "Luong"), [first, second, first], [second, first, first])
    close(numbers("attention", "and its"), [3, 4], [second + 8 * first, 2 * second + 10 * first])


@pytest.mark.by_hand
def test_the_variance_of_products_of_signs_is_their_number():
    """EQ-60: a product of signs is a sign, of variance 1; dₖ independent ones have dₖ."""
    close(numbers("why-divide", "Comp"), [1, 4, 1, 1], [2, 16, 2, 1], [4, 256, 4, 1], abs=1e-12)


@pytest.mark.by_hand
def test_two_words_in_columns():
    """EQ-65, EQ-66, EQ-67, EQ-69: scores 1/√3 and 0, so P = (1/2, 1/2) and 1 : e^(1/√3)."""
    p = 1 / (1 + math.exp(1 / math.sqrt(3)))
    close(numbers("two-words", "P(key"), [0.5, p], [0.5, 1 - p])
    close(numbers("two-words", "A = V P"), *([v + 1.5, v + 3 * (1 - p)] for v in (1, 2, 3)))


@pytest.mark.by_hand
def test_foxes_attend_to_jumping_and_quick_hardly_to_the_dog():
    """EQ-62, EQ-63: fox → jumps (4 + 6)/2 = 5, its phrase 2, the rest 0; and so on by hand."""
    e = math.exp
    fox = e(5) / (4 * e(2) + e(5) + 4)
    jumps = e(5) / (4 * e(2) + e(5) + 3 + e(3))
    total = 4 * e(2) + e(3) + 3 + e(1)
    close(
        numbers("nine-words", "The pairs"),
        [fox],
        [jumps],
        [e(3) / total],
        [e(1) / total],
        abs=1e-12,
    )
    weights = numbers("nine-words", "A; each")
    assert [len(weights), *map(len, weights)] == [9] * 10
    assert [sum(row) for row in weights] == pytest.approx([1] * 9)


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_the_inequality_holds_between_124_and_235_degrees_only():
    """EQ-59, ER-05: at cos θ = -0.1 the exponential is .9048, nine times as large."""
    rows = step("exp-cosine", "The second").rows
    assert [row[4] for row in rows] == ["cos θ > 0"] * 2 + [
        "false",
        "false",
        "equal",
        "true",
        "true",
    ]
    assert rows[2][1:4] == pytest.approx((-0.1, 0.1, math.exp(-0.1)))
    assert "from 90° to 124.5513°" in work_out("exp-cosine").note


@pytest.mark.by_hand
@pytest.mark.by_hand
def test_the_printed_masked_softmax_is_wrong_in_three_rows():
    """EQ-72, EQ-73, EQ-75, ER-01: row 1 is 1 : e^0.1, row 2 is e^0.3 : e^0.4 : e^0.2."""
    rows = step("masked-softmax", "The softmax").rows
    computed = [list(row[2:]) for row in rows if row[1] == "computed"]
    e = math.exp
    third = [e(0.3), e(0.4), e(0.2)]
    close(
        computed[:3],
        [1, 0, 0, 0],
        [1 / (1 + e(0.1)), e(0.1) / (1 + e(0.1)), 0, 0],
        [*(each / sum(third) for each in third), 0],
    )
    close([computed[3]], [0.213838, 0.236328, 0.261183, 0.288651])
    assert rows[4][1:] == ("printed", 0.4759, 0.3092, 0.2148, 0.0)
    assert [row[1] for row in step("masked-softmax", "Largest").rows] == pytest.approx(
        [0, 0.0250, 0.1437, 0.2116], abs=5e-5
    )
    assert numbers("masked-softmax", "scores + M")[0] == [0.2] + [-math.inf] * 3


@pytest.mark.by_hand
def test_masked_attention_begins_with_the_first_value():
    """EQ-74: row 1 scores 0 and 1/√2; row 2 1/√2, 1/√2 and √2."""
    a, b = math.exp(math.sqrt(0.5)), math.exp(math.sqrt(2))
    close(
        numbers("masked-attention", "Weights"),
        [1, 0, 0],
        [1 / (1 + a), a / (1 + a), 0],
        [a / (2 * a + b), a / (2 * a + b), b / (2 * a + b)],
    )
    close(numbers("masked-attention", "Output")[:1], [1, 2])


@pytest.mark.by_hand
def test_the_base_model_has_63_million_parameters():
    """EQ-80, EQ-86: counted matrix by matrix, with a gain and a bias for each norm."""
    attention, feed_forward = 4 * 512**2, 2 * 512 * 2048 + 2048 + 512
    encoder = attention + feed_forward + 4 * 512
    decoder = 2 * attention + feed_forward + 6 * 512
    blocks, embedding = 6 * (encoder + decoder), 37_000 * 512
    counts = [row[0] for row in numbers("parameters", "Parameters")]
    assert counts == [
        attention,
        feed_forward,
        encoder,
        decoder,
        blocks,
        embedding,
        blocks + embedding,
        blocks + 2 * embedding + 37_000,
    ]
    assert numbers("parameters", "Sizes") == [[64], [512]]

    # what the pages of the feed-forward network and of the stacks say in percent
    assert feed_forward / encoder == pytest.approx(0.6665, abs=5e-5)
    assert feed_forward / decoder == pytest.approx(0.4999, abs=5e-5)
    whole = blocks + embedding
    shares = [12 * feed_forward / whole, 18 * attention / whole, embedding / whole]
    assert [round(100 * share) for share in shares] == [40, 30, 30]


@pytest.mark.by_hand
def test_one_row_is_normalized_in_three_ways():
    """EQ-91, EQ-92, EQ-96, EQ-98: (-1.5, -.5, .5, 1.5) / √1.25; (-1, -1, -1, 3) / √3."""
    root = math.sqrt(1.25)
    normed = [each / root for each in (-1.5, -0.5, 0.5, 1.5)]
    third = 1 / math.sqrt(3)
    close(numbers("layer-norm", "Of x"), [2.5], [root])
    close(
        numbers("layer-norm", "Rows"),
        normed,
        [2 * each + 1 for each in normed],
        [-third, -third, -third, 3 * third],
    )
    close(numbers("layer-norm", "Bayesuvius"), [0.6, 0.8])


@pytest.mark.by_hand
def test_the_feed_forward_network_by_hand():
    """EQ-99, EQ-100, EQ-101: (1, -1 + 2 + .5, 2 - 1) and (1, -1 - 2 + .5, -2 - 1)."""
    close(numbers("feed-forward", "x W₁"), [1, 1.5, 1], [1, -2.5, -3])
    close(numbers("feed-forward", "max"), [1, 1.5, 1], [1, 0, 0])
    close(numbers("feed-forward", "· W₂"), [2.1, 2.4], [1.1, -0.1])


@pytest.mark.by_hand
def test_losses_by_hand():
    """EQ-118, EQ-119, EQ-120: ln 2 + ln 4 = 3 ln 2; smoothed, .925 ln(1/.7) + .075 ln 10."""
    ln = math.log
    close(
        numbers("cross-entropy", "The model"), [ln(2)], [ln(4)], [3 * ln(2)], [1.5 * ln(2)], [1 / 8]
    )
    smoothed = 0.925 * ln(1 / 0.7) + 0.075 * ln(10)
    entropy = 0.925 * ln(1 / 0.925) + 0.075 * ln(40)
    close(
        numbers("cross-entropy", "V = 4"),
        [ln(1 / 0.7), 0, ln(1 / 0.7)],
        [smoothed, entropy, smoothed - entropy],
    )


def test_the_learning_rate_peaks_after_the_warm_up():
    """(512 · 4000)^(-1/2) at step 4,000, half of it at 2,000 and 16,000, 1/4,000 of it at 1."""
    peak = (512 * 4000) ** -0.5
    rates = {row[0]: row[1] for row in numbers("learning-rate", "d_model")}
    assert rates[4000] == max(rates.values()) == pytest.approx(peak)
    assert [rates[step] for step in (1, 2000, 16000)] == pytest.approx(
        [peak / 4000, peak / 2, peak / 2]
    )
