"""A whole document: read, translated and written."""

import dataclasses

from pellucid.core.installation import TORCH_EXTRA, has_torch, install_command
from pellucid.decoding.translator import Translator
from pellucid.documents.aligned import ModelTranslator
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import (
    NOT_ALIGNED,
    Counts,
    Progress,
    SentenceTranslator,
    translate_segments,
)
from pellucid.documents.names import Format, format_of


def translate_document(
    data: bytes,
    translator: Translator | SentenceTranslator,
    name: str,
    *,
    kind: Format | None = None,
    options: ReadOptions | None = None,
    keep_numbers: bool = False,
    progress: Progress | None = None,
    counts: Counts | None = None,
) -> bytes:
    """The bytes of a document in the other language; its format is that of ``name`` or ``kind``.

    Everything but its text stays as it is. With ``keep_numbers`` every number is in the
    translation as it is written. ``counts`` is filled, and the notes of the document are added to
    it. Raises DataError for a document that cannot be read, and what the translator raises.
    """
    options = options or ReadOptions()
    by_text = isinstance(translator, Translator) and not translator.can_align
    if isinstance(translator, Translator):
        translator = ModelTranslator(translator)
        if not options.target_language:
            options = dataclasses.replace(options, target_language=translator.target_language)

    if not options.source_language:
        options = dataclasses.replace(options, source_language=translator.source_language)

    document = read_document(data, kind or format_of(name), name, options)

    translated = translate_segments(
        document.segments,
        translator,
        keep_numbers=keep_numbers,
        progress=progress,
        counts=counts,
        by_text=by_text,
    )

    written = document.write(translated)
    if counts is not None:
        if NOT_ALIGNED in counts.notes and not has_torch():
            counts.notes.append(f"to align words needs PyTorch ({install_command(TORCH_EXTRA)})")
        counts.notes += document.notes
    return written
