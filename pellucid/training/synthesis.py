"""Training text made by a model: translations by a teacher, or back-translated sources.

``write_translations`` writes the file, in blocks that survive a kill; ``add_text_noise`` is the
noise of back-translation.
"""

import dataclasses
import functools
import hashlib
import itertools
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pellucid.core.errors import ConfigError, DataError, OutputExistsError
from pellucid.core.growing import GrowingFile
from pellucid.core.special import UNK_ID
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import WarningLog
from pellucid.evaluation.metrics import nearest
from pellucid.evaluation.signature import bundle_hash, manifest_of
from pellucid.text.corpus.addresses import address_of
from pellucid.text.corpus.lines import iterate_lines
from pellucid.text.corpus.readers import input_exists
from pellucid.text.corpus.writers import check_output, is_plain_output, open_output
from pellucid.text.scripts import SPACELESS, SPACELESS_LETTER, combining_marks, is_of_word
from pellucid.text.tokenizers.interface import Tokenizer

_DROPPED, _BLANKED = 0.1, 0.1
_FARTHEST = 3
"""The distance that a word may move, and the shares of words left out and blanked, as in Edunov et
al. (2018)."""


def add_text_noise(text: str, seed: int, number: int, blank: str) -> str:
    """``text`` with words left out, blanked and moved; the same for the same seed and number.

    A word is left out with probability 0.1, replaced by ``blank`` with 0.1, and moves at most three
    positions. At least one word is left, if there are any. Words are separated by spaces; in a
    script without spaces each letter counts as a word, together with its marks.

    Source: Edunov et al. (2018), arXiv:1808.09381, §3; Lample et al. (2018), §3.2.2, for moving.
    """
    found = list(_words().finditer(text))
    if not found:
        return text
    words = [each["word"] for each in found]
    is_spaced = [bool(each["space"]) for each in found]
    is_spaced[0] = all(is_spaced[1:2])  # nothing is before it: as from the one behind it

    # A generator for each line: the noise of a line does not depend on the lines before it, so a
    # file that is continued after a kill comes out the same.
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))
    stays = random.random(len(words)) >= _DROPPED
    stays[random.integers(len(words))] |= not stays.any()  # one word stays if none would

    # Drawn for every word, also for those that are left out: so a word's fate does not depend on
    # the others'.
    is_blank = random.random(len(words)) < _BLANKED
    left = [(blank if is_blank[at] else words[at], is_spaced[at]) for at in np.flatnonzero(stays)]

    # Sorting by position plus a number below k + 1 moves no word by more than k.
    places = np.arange(len(left)) + random.random(len(left)) * (_FARTHEST + 1)
    return _joined([left[at] for at in np.argsort(places, kind="stable")])


@functools.cache
def _words() -> re.Pattern[str]:
    """Words with the white space before them; a letter of a script without spaces is one."""
    letter = rf"[{SPACELESS}][{combining_marks()}]*"
    return re.compile(rf"(?P<space>\s*)(?P<word>{letter}|[^\s{SPACELESS}]+)")


def _joined(words: Sequence[tuple[str, bool]]) -> str:
    """The words with spaces before those that had one, and between two that would become one."""
    text = ""
    for word, is_spaced in words:
        between = text[-1:], word[:1]
        is_one = all(is_of_word(each) and not SPACELESS_LETTER.match(each) for each in between)
        text += f" {word}" if text and (is_spaced or is_one) else word
    return text


_READ_AT_ONCE = 1 << 20


@dataclasses.dataclass(frozen=True)
class Finish:
    """How a translation is changed before it is written."""

    reference: Path | None = None
    """A file of references: of the n best translations the one most similar to its line is used."""
    measure: str = "chrf"
    """The measure of similarity."""
    noise_seed: int | None = None
    """Seed of ``add_text_noise``; None adds no noise."""
    blank: str = "_"
    """The replacement of a blanked word."""
    tag: str = ""
    """Written before each line that is not empty, with a space between."""

    def __post_init__(self) -> None:
        for name in ("blank", "tag"):
            if re.search(r"[\r\n]", getattr(self, name)):
                raise ConfigError(
                    f"the {name} must be of one line, or the lines that follow would belong to"
                    f" other sentences, got {getattr(self, name)!r}"
                )


@dataclasses.dataclass(frozen=True)
class SynthesisProgress:
    """How many lines of a file are written."""

    lines_before: int
    """Lines that an earlier call wrote."""
    lines: int
    """Lines written so far, those included."""
    total: int
    """Lines of the whole file."""


Listener = Callable[[SynthesisProgress], None]


def write_translations(
    translator: Translator,
    source: Path,
    out: Path | str,
    finish: Finish,
    *,
    listener: Listener,
    should_stop: Callable[[], str | None],
) -> str | None:
    """Translate ``source`` into ``out``, line by line; None, or the reason ``should_stop`` gave.

    A blank line gives an empty one, so that the files stay parallel. ``source`` and ``out`` are
    named as all inputs and outputs are (``pellucid.text.corpus.addresses``). ``out`` appears when
    it is complete. Until then every finished block of ``stream_lines`` lines is kept beside it, or
    for an output elsewhere in the current folder, and the same call continues after the last one,
    even after a kill; the result is the same, byte for byte. ``listener`` is called at the start
    and after every block. The first few warnings of each kind are logged, and at the end how many
    more there are.

    Before the first line both inputs are read to their ends. Raises as ``GrowingFile``,
    ``check_output`` and ``Translator.translate`` do, InputMissingError for what cannot be read, and
    DataError for what is no text, or if ``source`` and the references differ in their number of
    lines.
    """
    growing = _growing_path(str(out))
    # A learner must see no mark before a translation, and no source in the place of one.
    settings = translator.settings.changed({"token_log_probs": False, "below": None})
    translator = translator.with_settings(settings).without_log()
    translator.split = False  # a line of training text stays one line
    log = WarningLog()  # one for all blocks

    digest, total = hash_of_lines(source)
    reference = None
    if finish.reference is not None:
        reference, count = hash_of_lines(finish.reference)
        if count != total:
            raise DataError(
                f"{source} and {finish.reference} must have as many lines, got {total:,} and"
                f" {count:,}"
            )
    # Everything that decides what is written: another origin does not continue the same file.
    origin = {
        "bundle": bundle_hash(manifest_of(translator)),
        "source": digest,
        "reference": reference,
        "engine": translator.engine.signature(settings),
        **{f"decoding.{name}": value for name, value in settings.model_dump().items()},
        **{name: getattr(finish, name) for name in ("measure", "noise_seed", "blank", "tag")},
    }
    block_size = settings.stream_lines

    def copy(lines: BinaryIO) -> None:
        with open_output(str(out)) as file:
            shutil.copyfileobj(lines, file, _READ_AT_ONCE)

    with GrowingFile(growing, origin) as file:
        before = file.line_count
        listener(SynthesisProgress(before, before, total))

        # The lines that are written already are read again and passed over, which takes seconds.
        pairs = itertools.islice(_lines(source, finish.reference), before, None)
        while block := list(itertools.islice(pairs, block_size)):
            # Asked before a block and not within: what is written ends with a whole block.
            reason = should_stop()
            if reason is not None:
                log.end()
                return reason

            found = translator.translate_block([text for text, _ in block], file.line_count + 1)
            for number, each in enumerate(found, start=file.line_count + 1):
                log.look(number, each)
            references = [reference for _, reference in block]
            made = _finished(found, references, finish, file.line_count)

            file.append("".join(f"{line}\n" for line in made).encode(), len(block))
            listener(SynthesisProgress(before, file.line_count, total))

        log.end()
        if is_plain_output(str(out)):
            file.finish()
        else:
            file.finish_into(copy)
    return None


def _growing_path(out: str) -> Path:
    """Return the path of the lines until they are complete. Raises as ``write_translations``."""
    if is_plain_output(out):
        return Path(out)
    check_output(out)
    address = address_of(out)
    if not address.scheme:
        return Path(address.location)
    if input_exists(out):
        raise OutputExistsError(f"{out} is already there", hint="choose another --out")
    return Path(f"{address.location.rpartition('/')[2]}-lines")


def check_tag(tag: str, tokenizer: Tokenizer) -> None:
    """Raise ConfigError if ``tokenizer`` has no tokens for ``tag``.

    Source: Caswell et al. (2019), arXiv:1906.06442: a tag marks synthetic sentences.
    """
    ids = tokenizer.encode(tag)
    if not ids or UNK_ID in ids:
        pieces = " ".join(tokenizer.tokens(ids))
        raise ConfigError(
            f"the tag must be made of tokens that the model knows, got {tag!r}, which it reads as"
            f" {pieces or 'nothing'}",
            hint="choose a tag of known words, or train a tokenizer on text that holds the tag",
        )


def _finished(
    found: Sequence[Translation], references: Sequence[str | None], finish: Finish, first: int
) -> Iterator[str]:
    for number, (translation, reference) in enumerate(
        zip(found, references, strict=True), start=first
    ):
        texts = [each.text for each in translation.n_best] or [translation.text]
        chosen = 0 if reference is None else nearest(texts, reference, finish.measure)

        # One line for one line: a line end inside a translation would shift all that follow.
        text = texts[chosen].replace("\n", " ").replace("\r", " ")
        if finish.noise_seed is not None:
            text = add_text_noise(text, finish.noise_seed, number, finish.blank)
        yield f"{finish.tag} {text}" if finish.tag and text else text


def _lines(source: Path, reference: Path | None) -> Iterator[tuple[str, str | None]]:
    others = itertools.repeat(None) if reference is None else iterate_lines(reference)
    return zip(iterate_lines(source), others, strict=reference is not None)


def hash_of_lines(path: Path) -> tuple[str, int]:
    """The SHA-256 of the lines of an input, and how many there are.

    Equal lines have an equal hash, however they are packed; of a table, another column has another.
    """
    digest, count = hashlib.sha256(), 0
    for line in iterate_lines(path):
        digest.update(f"{line}\n".encode())
        count += 1
    return digest.hexdigest(), count
