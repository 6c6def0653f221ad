"""Which source word each target word comes from."""

from collections.abc import Sequence

from pellucid.core.special import UNK_ID
from pellucid.decoding.attention import Look
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.vocabulary import SPECIAL_TOKENS

Links = tuple[tuple[int, int], ...]
"""(source, target) by number, from 0, in order of the target."""


def align_tokens(look: Look) -> Links:
    """The source token that each target token looked at most, both stops left out.

    Source: Bahdanau et al. (2015), §5.2.1; Marian's ``--alignment 1`` allows the stop.
    Of equal weights the first wins.
    """
    weights = look[:-1, :-1]
    if not weights.numel():
        return ()
    return tuple((source, target) for target, source in enumerate(weights.argmax(dim=1).tolist()))


def align_words(links: Links, source_words: Sequence[int], target_words: Sequence[int]) -> Links:
    """The links between the words that tokens belong to, each once, in order of the target."""
    found = {(source_words[source], target_words[target]) for source, target in links}
    return tuple(sorted(found, key=lambda link: (link[1], link[0])))


def words_of_tokens(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """For each token the number of the word it belongs to, as white space separates them.

    Found by decoding every prefix, so it holds for every tokenizer. A token that holds nothing
    but a space belongs to the word that it begins.
    """
    words = []
    for length in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:length])
        begins = not text or text[-1].isspace()
        words.append(len(text.split()) - (0 if begins else 1))
    last = max(0, len(tokenizer.decode(ids).split()) - 1)
    return [min(word, last) for word in words]


def replace_unknown(
    text: str, ids: Sequence[int], links: Links, words: Sequence[str], source_words: Sequence[int]
) -> str:
    """``text`` with the aligned source word in the place of each unknown token.

    Source: Luong et al. (2015), "Addressing the rare word problem", §3.3, by attention as in Jean
    et al. (2015). Marks that cling to a word are left behind.
    """
    unknown = [place for place, token in enumerate(ids) if token == UNK_ID]
    parts = text.split(SPECIAL_TOKENS[UNK_ID])
    if len(parts) != len(unknown) + 1:
        return text  # the model said the mark itself, letter by letter: which is which is lost
    source_of = {target: source for source, target in links}
    found = [words[source_words[source_of[place]]] for place in unknown]
    return "".join(part + bare for part, bare in zip(parts, [*map(_bare, found), ""], strict=True))


def _bare(word: str) -> str:
    """Without the marks around it, unless it is made of them."""
    letters = [place for place, character in enumerate(word) if character.isalnum()]
    return word[letters[0] : letters[-1] + 1] if letters else word
