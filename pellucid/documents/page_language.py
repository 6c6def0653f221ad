"""The language and the direction that a page of HTML says it has."""

from pellucid.documents.attributes import Attribute, attributes_of
from pellucid.text.languages import is_right_to_left


def own_attributes(tag: str, source: str, language: str) -> dict[Attribute, str]:
    """The attributes of a start tag that say what the page is in, with what stands in their place
    in a page in ``language``.

    A page that says nothing of its direction gets a ``dir`` if it becomes one from right to left;
    its place is then empty, behind the name of the tag.
    """
    if tag not in ("html", "body"):
        return {}
    found = attributes_of(source)
    changed = {}
    if tag == "html":
        changed = {
            each: language
            for each in found
            if each.name in ("lang", "xml:lang")
            and each.value
            and not names_language(each.value, language)
        }

    new, old = ("rtl", "ltr") if is_right_to_left(language) else ("ltr", "rtl")
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
