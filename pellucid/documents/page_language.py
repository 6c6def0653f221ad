"""The language and the direction that a page of HTML says it has."""

from collections.abc import Sequence

from pellucid.documents.attributes import Attribute, attributes_of
from pellucid.documents.document_language import names_source
from pellucid.documents.segments import Languages
from pellucid.text.languages import is_right_to_left

_LANGUAGE = frozenset(("lang", "xml:lang"))
SAY_LANGUAGE = _LANGUAGE | {"dir", "http-equiv"}
_PHRASES = frozenset(("a", "cite", "dfn", "em", "i", "q"))
"""Elements that authors mark with a language because it is another one, such as a link to the page
in it. Programs mark others, a span above all, and often wrongly."""


def is_foreign(
    tag: str, attributes: Sequence[tuple[str, str | None]], languages: Languages
) -> bool:
    """Whether an element holds a phrase in another language than the model reads, as far as that
    is known."""
    written = [(value or "").lower() for name, value in attributes if name in _LANGUAGE]
    if any("-fonipa" in code for code in written):
        return True  # a pronunciation in the International Phonetic Alphabet
    if tag not in _PHRASES or not (languages.source and languages.target):
        return False
    return any(written) and not any(names_source(code, languages) for code in written)


def own_attributes(tag: str, source: str, languages: Languages) -> dict[Attribute, str]:
    """The attributes of a start tag that say what its text is in, with what stands in their place
    in a translation.

    The page says another language whatever it said before, an element in it if it said that of the
    source. A page that says nothing of its direction gets a ``dir`` if it becomes one from right to
    left; its place is then empty, behind the name of the tag.
    """
    found = attributes_of(source)
    target = languages.target
    is_older_form = tag == "meta" and any(
        each.name == "http-equiv" and each.value.lower() == "content-language" for each in found
    )
    changed = {
        each: target
        for each in found
        if (each.name in _LANGUAGE or (each.name == "content" and is_older_form))
        and each.value
        and (tag == "html" or names_source(each.value, languages))
        and not names_language(each.value, target)
    }
    if tag not in ("html", "body"):
        return changed

    new, old = ("rtl", "ltr") if is_right_to_left(target) else ("ltr", "rtl")
    directions = [each for each in found if each.name == "dir"]
    changed |= {each: new for each in directions if each.value.strip().lower() == old}
    if tag == "html" and new == "rtl" and not directions:
        place = len("<html")
        changed[Attribute("dir", "", place, place, is_quoted=True)] = ' dir="rtl"'
    return changed


def names_language(written: str, language: str) -> bool:
    """Whether a code in a document names this language, as ``en-GB`` names ``en``.

    ``zh-Hans`` does not name ``zh-Hant``, nor ``pt`` the Portuguese of ``pt-BR``.
    """
    return f"{written}-".lower().startswith(f"{language}-".lower())
