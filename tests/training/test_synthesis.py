"""Text made by a model: parallel to its source, line by line, and the same after any stop."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_models import tiny_bundle

from pellucid.core.errors import ConfigError, DataError, InputMissingError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.training.synthesis import (
    Finish,
    SynthesisProgress,
    add_text_noise,
    check_tag,
    write_translations,
)

LINES = ["a b c", "", "d e", "a", "f g h i", "  ", "a b c", "b b"]
SEARCH = {
    "stream_lines": 3,
    "beam_size": 3,
    "max_length": 5,
    "length_penalty": 0.0,
    "min_length": 3,
}


def translator(**settings: object) -> Translator:
    return Translator(tiny_bundle(seed=2), DecodingConfig.parse({**SEARCH, **settings}))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


class Heard:
    """Remembers how far it was, and asks to stop before a block of that number."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.progress: list[SynthesisProgress] = []
        self._asked: Iterator[int] = iter(range(100))
        self._stop_at = stop_at

    def __call__(self, progress: SynthesisProgress) -> None:
        self.progress.append(progress)

    def stop(self) -> str | None:
        return "asked" if next(self._asked) == self._stop_at else None


def write(
    out: Path,
    source: Path,
    finish: Finish = Finish(),  # noqa: B008  # frozen
    stop_at: int | None = None,
    **settings: object,
) -> tuple[str | None, list[SynthesisProgress]]:
    heard = Heard(stop_at)
    reason = write_translations(
        translator(**settings), source, out, finish, listener=heard, should_stop=heard.stop
    )
    return reason, heard.progress


def test_every_line_gives_the_line_that_the_translator_gives(source: Path, tmp_path: Path):
    reason, progress = write(tmp_path / "out", source)
    assert reason is None
    expected = [each.text for each in translator().translate(LINES)]
    assert (tmp_path / "out").read_text().splitlines() == expected
    assert expected[1] == expected[5] == ""
    assert [each.lines for each in progress] == [0, 3, 6, 8]
    assert all((each.lines_before, each.total) == (0, 8) for each in progress)


def test_warnings_of_a_kind_are_few_however_many_blocks_there_are(
    source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    source.write_text("a z c\n" * 12)
    write(tmp_path / "out", source)
    assert caplog.messages == [
        *(f"line {number}: the model does not know “z”" for number in range(1, 6)),
        "more such warnings: unknown 7",
    ]


@pytest.mark.parametrize(
    ("finish", "settings"),
    [
        (Finish(), {}),
        (Finish(noise_seed=3, tag="<bt>"), {}),
        (Finish(), {"sampling": {"seed": 5}}),
    ],
    ids=["beam", "noise and a tag", "sampling"],
)
@pytest.mark.parametrize("stop_at", [0, 1, 2])
def test_stopped_and_gone_on_with_it_is_the_same_byte_for_byte(
    finish: Finish, settings: dict[str, object], stop_at: int, source: Path, tmp_path: Path
):
    write(tmp_path / "unbroken", source, finish, **settings)
    broken = tmp_path / "broken"
    assert write(broken, source, finish, stop_at, **settings)[0] == "asked"
    assert not broken.exists()
    reason, progress = write(broken, source, finish, **settings)
    assert reason is None
    assert progress[0].lines == progress[0].lines_before == 3 * stop_at
    assert broken.read_bytes() == (tmp_path / "unbroken").read_bytes()


def test_of_the_n_best_the_one_nearest_to_the_reference_is_taken(source: Path, tmp_path: Path):
    found = translator(n_best=3).translate(LINES)
    wanted = [each.n_best[-1].text if each.n_best else "" for each in found]
    assert wanted != [each.text for each in found]
    reference = tmp_path / "reference"
    reference.write_text("".join(f"{line}\n" for line in wanted))
    write(tmp_path / "out", source, Finish(reference=reference), n_best=3)
    assert (tmp_path / "out").read_text().splitlines() == wanted


def test_noise_and_tag_are_put_on_what_was_said_and_on_nothing_else(source: Path, tmp_path: Path):
    write(tmp_path / "out", source, Finish(noise_seed=3, blank="?", tag="<bt>"))
    texts = [each.text for each in translator().translate(LINES)]
    expected = [
        f"<bt> {add_text_noise(text, 3, number, '?')}" if text else ""
        for number, text in enumerate(texts)
    ]
    assert (tmp_path / "out").read_text().splitlines() == expected


@pytest.mark.parametrize("name", ["reference", "reference.gz"])
@pytest.mark.parametrize("count", [2, 9])
def test_references_that_are_fewer_or_more_are_found_before_the_first_line(
    source: Path, tmp_path: Path, count: int, name: str
):
    reference = tmp_path / name
    lines = b"a\n" * count
    reference.write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    with pytest.raises(DataError) as caught:
        write(tmp_path / "out", source, Finish(reference=reference))
    assert str(caught.value) == (
        f"{source} and {reference} must have as many lines, got 8 and {count}"
    )
    assert {*tmp_path.iterdir()} == {source, reference}


def test_a_last_line_that_is_no_text_is_found_before_the_first(source: Path, tmp_path: Path):
    source.write_bytes(source.read_bytes() + b"caf\xe9\n")
    with pytest.raises(DataError, match="source, line 9, byte 4: not UTF-8"):
        write(tmp_path / "out", source)
    assert {*tmp_path.iterdir()} == {source}


@pytest.mark.parametrize("name", ["blank", "tag"])
def test_a_line_end_in_what_is_put_into_lines_is_refused(name: str):
    with pytest.raises(ConfigError, match=rf"the {name} must be of one line, .*, got '<\\n>'"):
        Finish(**{name: "<\n>"})


def test_another_search_or_another_text_cannot_go_on(source: Path, tmp_path: Path):
    write(tmp_path / "out", source, stop_at=1)
    with pytest.raises(ConfigError, match=r"begun otherwise: decoding\.beam_size: 3 -> 2$"):
        write(tmp_path / "out", source, beam_size=2)
    source.write_text("a\n" * 8)
    with pytest.raises(ConfigError, match="begun otherwise: source: "):
        write(tmp_path / "out", source)


def test_another_column_of_the_same_table_cannot_go_on(tmp_path: Path):
    (tmp_path / "pairs.jsonl").write_text('{"x": "a b", "y": "b"}\n' * 8)
    write(tmp_path / "out", tmp_path / "pairs.jsonl#x", stop_at=1)
    with pytest.raises(ConfigError, match="begun otherwise: source: "):
        write(tmp_path / "out", tmp_path / "pairs.jsonl#y")


def test_a_source_that_is_not_there_is_told_of(tmp_path: Path):
    with pytest.raises(InputMissingError, match=r"cannot read .*nothing: No such file"):
        write(tmp_path / "out", tmp_path / "nothing")


def test_a_last_line_without_an_end_counts(tmp_path: Path):
    (tmp_path / "source").write_text("a\nb")
    _, progress = write(tmp_path / "out", tmp_path / "source")
    assert (progress[-1].lines, progress[-1].total) == (2, 2)


def test_a_tag_that_the_tokenizer_cannot_carry_is_refused():
    tokenizer = tiny_bundle().source_tokenizer
    check_tag("a b", tokenizer)
    for tag in ("<bt>", "a <bt>"):
        with pytest.raises(ConfigError) as caught:
            check_tag(tag, tokenizer)
        assert f"must be made of tokens that the model knows, got {tag!r}" in str(caught.value)
