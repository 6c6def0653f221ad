"""The outline of a page: the elements that hold nothing but other elements."""

from collections.abc import Sequence

from pellucid.documents.html_tokens import Token

_DEEPEST = 60
"""Open elements that an end tag is looked for in; more would take quadratic time."""


def mark_outline(tokens: Sequence[Token]) -> None:
    """Mark the tags that end a sentence because they divide a document into its parts."""
    # For each open element, that of the whole first: the numbers of its tags, and of the tags of
    # each element in it.
    own_tags: list[list[int]] = [[]]
    inner_tags: list[list[list[int]]] = [[]]
    has_text = [False]
    names: list[str] = []

    def close() -> None:
        own, children = own_tags.pop(), inner_tags.pop()
        if has_text.pop():
            return
        for tags in (*children, own if children else []):
            for number in tags:
                tokens[number].divides = True

    for number, token in enumerate(tokens):
        if token.kind == "text":
            has_text[-1] = has_text[-1] or bool(token.text.strip())
        elif token.kind == "start":
            tags = [number]
            inner_tags[-1].append(tags)
            own_tags.append(tags)
            inner_tags.append([])
            has_text.append(False)
            names.append(token.name)
        elif token.kind == "end" and token.name in names[-_DEEPEST:]:
            # What was not closed inside it ends with it.
            while names.pop() != token.name:
                close()
            own_tags[-1].append(number)
            close()
    while own_tags:
        close()
