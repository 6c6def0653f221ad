"""Settings of tokenizers and of the training data."""

import math
from typing import Annotated, Any, Literal, Self, get_args

import pydantic

from pellucid.core.config import Config
from pellucid.core.errors import DataError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.text.corpus.addresses import address_of
from pellucid.text.normalization import Normalization

WordKind = Literal["word", "punctuation", "rules", "character"]
"""Kinds that split text by a rule."""
TokenizerKind = Literal["bpe", "unigram", WordKind, "wordpiece", "marian"]
PairFormat = Literal["auto", "plain", "tsv", "jsonl"]

WORD_KINDS: tuple[WordKind, ...] = get_args(WordKind)
SENTENCEPIECE_KINDS: tuple[TokenizerKind, ...] = ("bpe", "unigram")
SMALLEST_BYTE_VOCABULARY = SPECIAL_COUNT + 256 + 1
"""The special tokens, one token for each byte (byte fallback) and the mark of a space."""


class TokenizerConfig(Config):
    """How text becomes ids."""

    kind: TokenizerKind = "bpe"
    """``bpe`` and ``unigram`` (sentencepiece) can represent any text; the others are those of
    textbooks. ``punctuation``, ``rules`` and ``wordpiece`` keep vowel signs, combining accents and
    joiners in their word; vocabularies that were saved without the option ``marks`` cut there, as
    they were trained. In a script without spaces, such as Thai, a sentence is one word. ``marian``
    comes with an imported model and cannot be trained."""
    target_kind: TokenizerKind | None = None
    """The kind on the target side if it differs, for example from letters to phones; needs
    ``shared = false``."""
    vocabulary_size: int = pydantic.Field(8000, gt=SPECIAL_COUNT)
    """The largest number of ids, the 4 special ones included; small corpora may have fewer."""
    shared: bool = True
    """One vocabulary for both languages (§5.1 of the paper), or one for each."""
    character_coverage: float = pydantic.Field(0.9995, ge=0.98, le=1.0)
    """Share of the training text's characters that become tokens; the others are spelled in bytes
    (``bpe`` and ``unigram``; the default is sentencepiece's)."""
    training_lines: int = pydantic.Field(500_000, gt=100)
    """Train ``bpe`` or ``unigram`` on a random sample of so many lines if there are more
    (sentencepiece accepts no sample below 101)."""
    sampling: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """Subword regularization: vary the segmentation during training. The probability to drop a
    merge (``bpe``, Provilkov et al. 2020: 0.1) or the smoothing of the distribution over
    segmentations (``unigram``, Kudo 2018: 0.1-0.5)."""
    sampling_sides: Literal["both", "source", "target"] = "both"
    """The side whose segmentation varies. With ``source`` each target keeps its own, so that it
    stays one sequence to learn."""
    sampling_epochs: int | None = pydantic.Field(None, ge=1)
    """Vary the segmentation in so many of the first passes over the text, and in the others read it
    as it will be read ever after; by default in all."""
    lowercase: bool = False
    """Lower-case the text first (``wordpiece`` only)."""
    normalization: Normalization = "nfc"
    """The form that text is brought into before it is cut, in training and ever after. ``nfc``:
    letters and their accents composed, all white space one ordinary space, characters that only
    guide the display removed, such as soft hyphens. ``none``: text stays as it is, as in tokenizers
    from before this setting and in those of imported models."""
    keep_spaces: bool = True
    """Spaces are tokens too (``character`` only)."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _keep_marian(cls, table: Any) -> Any:
        # An imported model has rules of its own; configs from before this setting lack it.
        if isinstance(table, dict) and table.get("kind") == "marian":
            return {"normalization": "none", **table}
        return table

    @pydantic.model_validator(mode="after")
    def _check_combinations(self) -> Self:
        problems = []

        # Every problem is collected before any is raised, so that a file is put right in one go.
        kinds = {self.kind, self.target_kind or self.kind}
        subword_kinds = kinds.intersection(SENTENCEPIECE_KINDS)
        got = " and ".join(sorted(kinds))

        if self.target_kind is not None and self.shared:
            problems.append("target_kind needs shared = false")
        if self.target_kind == "marian":
            problems.append("target_kind must be a kind that can be trained, got marian")

        # With byte fallback a smaller vocabulary could not spell every text, and sentencepiece
        # would fail with a message that names none of our settings.
        if subword_kinds and self.vocabulary_size < SMALLEST_BYTE_VOCABULARY:
            problems.append(
                f"vocabulary_size must be at least {SMALLEST_BYTE_VOCABULARY} for"
                f" {' and '.join(sorted(subword_kinds))} (special tokens and bytes),"
                f" got {self.vocabulary_size}"
            )

        if self.sampling and kinds != subword_kinds:
            problems.append(f"sampling needs kind bpe or unigram, got {got}")
        if self.lowercase and "wordpiece" not in kinds:
            problems.append(f"lowercase needs kind wordpiece, got {got}")
        if not self.keep_spaces and "character" not in kinds:
            problems.append(f"keep_spaces = false needs kind character, got {got}")

        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def for_target(self) -> "TokenizerConfig":
        """The settings of the target side."""
        kind = self.target_kind or self.kind
        return self.model_copy(update={"kind": kind, "target_kind": None})


class NoiseConfig(Config):
    """Odd copies of the training pairs, as people type them, drawn again in every epoch.

    Each share is the probability that a pair is changed in that way in an epoch; a pair may be
    changed in several ways, but has one case. What is drawn depends on the seed, the epoch and the
    pair alone. Needs a tokenizer of kind ``bpe`` or ``unigram``, which is then trained on such
    copies too. Compare OpusTrainer: Bogoychev et al. (2023), arXiv:2311.14838.
    """

    upper: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """Both sides in upper case."""
    title: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """The source in Title Case; the target keeps its own."""
    lower: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """The source in lower case; the target keeps its own. With it ``decoding.recase`` reads
    lines in upper and in title case as lower case."""
    no_stop: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """Both sides without their final stop, where both have one."""
    typos: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """Typing errors in the source, one for each twelve words and at least one: two letters
    swapped, one dropped, one doubled, or a key beside the right one."""
    spaces: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """Stray spaces in the source: doubled, at the ends, before the final mark."""
    terms: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """The terms of ``data.glossary`` marked in the source, each followed by the first form of its
    translation, where the target has one of the forms (Dinu et al. 2019, ACL, "append"). A model
    that was trained so has the terms of a glossary marked when it translates."""
    emoji: float = pydantic.Field(0.0, ge=0.0, le=1.0)
    """The same emoji at the beginning or the end of both sides. No model needs it for
    ``decoding.copy_symbols``, which copies emoji; it is for engines of other programs."""

    @pydantic.model_validator(mode="after")
    def _check_cases(self) -> Self:
        cases = self.upper + self.title + self.lower
        if cases > 1:
            raise ValueError(f"upper, title and lower must be at most 1 together, got {cases:g}")
        return self

    @property
    def is_on(self) -> bool:
        """Whether any pair is changed."""
        return any(self.model_dump().values())


def as_names(value: Any) -> Any:
    """A tuple for a list, and for one name, which stands for a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _as_keys(value: Any) -> Any:
    """A tuple for a list, and for one number, which stands for a list of one."""
    return (value,) if isinstance(value, int) else as_names(value)


FileNames = Annotated[tuple[str, ...], pydantic.BeforeValidator(as_names)]
"""One file name or a list of them, relative to the current folder."""


class DataConfig(Config):
    """Where the sentence pairs are and which of them are used."""

    source: FileNames = ()
    """Training text to translate from, one sentence per line; or TSV, JSONL, CSV or Parquet files
    with both sides. ``pairs.parquet#en`` is one column."""
    target: FileNames = ()
    """Training text to translate into, one file for each of ``source``; none where that holds both
    sides."""
    valid_source: FileNames = ()
    """Like ``source``, for validation."""
    valid_target: FileNames = ()
    """Like ``target``, for validation."""
    alignments: FileNames = ()
    """Word alignments of the training text, a file for each of ``source``, which one head learns
    as its attention (guided alignment, Chen et al. 2016): for each line the links between words as
    white space separates them, source before target, from 0, such as ``0-0 1-2``. Needs
    ``decoding.align_layer``."""
    valid_alignments: FileNames = ()
    """Like ``alignments``, for the validation files; validations then report the alignment error.
    Pairs that are held out have those of the training text."""
    leave_out_validated: bool = False
    """Do not learn from pairs whose source is also one of the validation files', whatever its case,
    spaces and punctuation, with ``both_directions`` in neither of the two. Without it a warning
    counts them."""
    text: FileNames = ()
    """Plain training text, one passage per line, for the kinds of model that need no pairs; takes
    the place of ``source`` and ``target``."""
    valid_text: FileNames = ()
    """Like ``text``, for validation."""
    both_directions: bool = False
    """Learn from every pair twice, from source to target and from target to source. One model then
    translates both ways, told by the language it reads; a start for one that is fine-tuned
    (``--init``) on one direction (Ding et al. 2021; Gao et al. 2022). Validation keeps to one."""
    cipher_keys: Annotated[
        tuple[Annotated[int, pydantic.Field(ge=1)], ...], pydantic.BeforeValidator(_as_keys)
    ] = ()
    """CipherDAug: every batch is read twice, the second time with each source enciphered by one of
    these keys, drawn in each epoch; none is off. A key k puts the k-th letter after it in the place
    of each letter (ROT-k), in the alphabet of the letters that the sources have. The predictions
    of both passes are to agree (``training.cipher_weight``). The tokenizer, ``bpe`` or ``unigram``,
    learns from a copy of the sources by each key too, so a larger vocabulary may suit it; an update
    takes twice as long (Kambhatla et al. 2022 use 1 and 2)."""
    format: PairFormat = "auto"
    """``auto`` decides by the suffix before any ``.gz``, ``.zst`` or ``.xz``: ``.tsv``,
    ``.jsonl``, a table (``.csv``, ``.parquet``), else plain text."""
    max_length: int = pydantic.Field(256, gt=0)
    """Longest sentence on either side, in tokens without BOS and EOS; longer pairs are
    dropped, counted and reported."""
    weights: Annotated[tuple[float, ...], pydantic.BeforeValidator(as_names)] = ()
    """Shares of the files of ``source`` (or ``text``) in the pairs of an epoch: one number for each
    file, in proportion. The pairs of a file with fewer than its share are repeated evenly."""
    temperature: float | None = pydantic.Field(None, ge=1.0)
    """Shares by the files' sizes instead, in proportion to size^(1/temperature). With 1 every pair
    occurs once; 5 (Arivazhagan et al. 2019) repeats the pairs of small files."""
    workers: int | None = pydantic.Field(None, ge=1)
    """Processes that tokenize a large corpus; by default one for each core, up to eight."""
    glossary: str | None = None
    """A TSV file of terms that ``noise.terms`` marks."""
    cache: str | None = None
    """Folder that keeps tokenized corpora for reuse; by default it is in the run folder."""

    @pydantic.model_validator(mode="after")
    def _check_pairs(self) -> Self:
        problems = self._share_problems()
        if len(set(self.cipher_keys)) < len(self.cipher_keys):
            problems.append(f"cipher_keys must differ, got {list(self.cipher_keys)}")
        for prefix in ("", "valid_"):
            sources: tuple[str, ...] = getattr(self, f"{prefix}source")
            targets: tuple[str, ...] = getattr(self, f"{prefix}target")
            text: tuple[str, ...] = getattr(self, f"{prefix}text")

            # A TSV or JSONL file is a corpus by itself; plain files come in pairs.
            tables = self._tables(sources)
            if tables and len(tables) < len(sources):
                problems.append(
                    f"{prefix}source must be plain files, or all of them tables, but {tables[0]}"
                    " holds both sides and others do not"
                )
            elif tables and targets:
                problems.append(f"{prefix}target must be left out, {tables[0]} holds both sides")
            elif wrong := self._tables(targets):
                problems.append(f"{prefix}target must be plain files, {wrong[0]} holds both sides")
            elif not targets and self.format == "auto" and (foreign := [*filter(way_out, sources)]):
                # It would be read as plain text, and a missing target reported as the problem.
                problems.append(
                    f"{prefix}source must be text or a table, got {foreign[0]}:"
                    f" {way_out(foreign[0])}"
                )
            elif not tables and len(sources) != len(targets):
                problems.append(
                    f"{prefix}source and {prefix}target must name as many files,"
                    f" got {len(sources)} and {len(targets)}"
                )
            if wrong := self._tables(text):
                problems.append(f"{prefix}text must be plain files, {wrong[0]} holds both sides")
            if text and (sources or targets):
                problems.append(
                    f"{prefix}text takes the place of {prefix}source and {prefix}target"
                )

        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _alignment_problems(self) -> list[str]:
        problems = []
        for prefix in ("", "valid_"):
            count = len(getattr(self, f"{prefix}alignments"))
            sources = len(getattr(self, f"{prefix}source"))
            if count and count != sources:
                problems.append(
                    f"{prefix}alignments must be one file for each of {prefix}source, got {count}"
                    f" for {sources}"
                )
        if self.valid_alignments and not self.alignments:
            problems.append("valid_alignments needs alignments, which the model learns")
        if self.alignments and self.both_directions:
            problems.append("alignments and both_directions exclude each other")
        return problems

    def _share_problems(self) -> list[str]:
        problems = self._direction_problems() + self._alignment_problems()
        count = len(self.source or self.text)
        if self.weights and len(self.weights) != count:
            problems.append(
                "weights must be one number for each file of source or text,"
                f" got {len(self.weights)} for {count}"
            )
        if not all(0 < weight < math.inf for weight in self.weights):
            problems.append(f"weights must be positive, got {list(self.weights)}")
        if self.weights and self.temperature is not None:
            problems.append("weights and temperature exclude each other")
        return problems

    def _direction_problems(self) -> list[str]:
        if not self.both_directions:
            return []

        problems = []
        if not self.target:
            problems.append("both_directions needs plain files, named by source and target")
        if not self.valid_source:
            # a pair that is held out would be learned from the other way round
            problems.append("both_directions needs valid_source and valid_target")
        if self.weights or self.temperature is not None:
            problems.append("both_directions excludes weights and temperature")
        return problems

    def _tables(self, names: tuple[str, ...]) -> list[str]:
        """The files that hold source and target side by side."""
        return [name for name in names if file_format(name, self.format) != "plain"]


_UNPACK = "unpack it first; what OPUS packs for Moses is a text file for each language"
_WAYS_OUT = {
    **dict.fromkeys(
        (".xlsx", ".xls", ".ods"), "save it as .csv with the columns source and target"
    ),
    ".tmx": "export it as .csv or .tsv; OPUS has the same text as two files, for Moses",
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), _UNPACK),
    ".bz2": "unpack it first: bzip2 -d",
    ".json": "write an object a line, for example: jq -c '.[]' pairs.json > pairs.jsonl",
    **dict.fromkeys(
        (".docx", ".doc", ".odt", ".pdf", ".rtf", ".html", ".epub"), "save it as plain text"
    ),
    **dict.fromkeys((".po", ".xlf", ".xliff", ".sdlxliff"), "export it as .csv or .tsv"),
}
"""Advice for files that people have as corpora and that are no text, by their suffix."""


def way_out(name: str) -> str:
    """Return advice for a file that cannot be a corpus, by its suffix; empty if it can."""
    address = address_of(name)
    if address.scheme or address.table:
        return ""
    return _WAYS_OUT.get(address.suffix, "")


def file_format(name: str, given: PairFormat = "auto") -> PairFormat:
    """The format of the lines of a file: ``given``, or by its suffix if that is ``auto``.

    Of a table they are objects of JSON, and of a column of it plain, whatever is given.
    """
    address = address_of(name)
    if address.table:
        return "plain" if address.column else "jsonl"
    if given != "auto":
        return given
    return _FORMATS.get(address.suffix, "plain")


def require_one_side(*names: str) -> None:
    """Raise DataError if one of these files holds both sides of a corpus, where one is needed."""
    for name in names:
        if file_format(name) != "plain":
            raise DataError(
                f"{name} holds both sides, and one of them is needed",
                hint=f"name one of its columns, as in {name}#en, if its first line names them;"
                " check, train and evaluate also take it alone",
            )


_FORMATS: dict[str, PairFormat] = {".tsv": "tsv", ".jsonl": "jsonl"}
