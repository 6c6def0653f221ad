"""Odd lines come back from the page as from Python: emoji, numbers, capitals and unknown words."""

import dataclasses
import functools
import itertools
import random
import statistics
import unicodedata
from typing import Any

import pytest
from emoji_places import EMOJI_PLACES, with_emoji
from opened_models import Opened
from playwright.sync_api import Page
from test_web_tokenizers import odd_lines

from pellucid.backends.web.content import web_content
from pellucid.backends.web.scripts import join_modules
from pellucid.backends.web.tokenizers import normalization_rule
from pellucid.bundle import UNSURE_KEY, Bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import kinds_of
from pellucid.model.build import build_model
from pellucid.model.config import parse_model_config
from pellucid.phrasebook import split
from pellucid.text.config import TokenizerConfig
from pellucid.text.seen_words import WordCollector
from pellucid.text.tokenizers.tokenizer import train_tokenizer

LINES = (
    *("42", " 3,5 % ", "12:30", "...", "😀", " → 👍🏽 ←", "", "٤٢", "½", "_", "x 42"),
    *(
        "😀 je suis",
        "je suis😀",
        "je 👨‍👩‍👧 suis 🇩🇪 ici .",
        "je suis 😀.",
        "1️⃣ le chat ©️",
        "你好😀世界",
        "(je suis 😀).",
        "😀你好",
        "le ☎︎ chat ⤴️ ici",
        "je 😀, suis 😃!",
    ),
    *(
        "猫 😀 猫",
        "Le 😀😀 chat, 😀!",
        "𝟙𝟡 😀 𝟙",
        "a\u00a0😀\u00a0b",
        "ab\x1c😀 \x85c",
        "😀\ufeff😀",
    ),
    *("CHAT", "BONJOUR", "je vois un CHAT", "J'AI faim", "OUI !", "ZORBLAX", "UN", "ÉTUDIANT 😀"),
    *(
        "JE VOIS UN CHAT",
        "La Femme Mange Une Pomme",
        "l'ÉTÉ",
        "L'E\u0301TE\u0301 EST LA\u0300",
        "İSTANBUL EST LÀ",
        "ΑΣ",
        "ǄAB",
        "ßA",
        "le CHAT ET LE chien",
        "저는 CHAT 에서",
        "LA STRASSE EST GROSSE",
        "LE STRAßE EST LÀ",
        "IŞIK VE İYİ I",
    ),
    *(
        "l’ami “rit” – «oui»",
        "ｌｅ　ｃｈａｔ　２！",
        "oui…",
        "• le chat §",
        "ｶﾞ ﬁ Ⅳ ² ½ № ş ‚a‘",
        "\u0664 chat `ici´",
        "l\x92ami\x97oui 5 \x80",
    ),
    *(
        "un zorblax",
        "le straße chat",
        "ı",
        "naïve cafe\u0301",
        "Ꭰꭰ",
        "la ﬁn",
        "हिन्दी",
        "ไทย un",
        "x_1 2b",
        "I.",
        " (iv)",
        "IIII.",
        "UN CHAT SN-4711-ABX",
        "LE CHAT A4, 5TH x=CHAT",
        "Le Chat Na2 Un NaCl",
        "LE CHAT {un} EST LÀ: %d À 5 km, https://a.org",
        "LE <b>CHAT</b> &amp; {CHAT} 5 KM",
    ),
)
TRANSLATE = "([lines, options]) => lines.map((line) => model.translate(line, options))"


@functools.cache
def bundle() -> Bundle:
    pairs = split(1500, 100, 1, "typed").train
    collector = WordCollector()
    pairs = [*collector.passing((each.source, each.target) for each in pairs)]
    texts = [text for pair in pairs for text in pair]
    tokenizer = train_tokenizer(texts, TokenizerConfig(kind="bpe", vocabulary_size=700))
    config = parse_model_config(
        {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    )
    model = build_model(config, tokenizer.vocabulary_size, tokenizer.vocabulary_size, seed=1)
    for parameter in model.parameters():
        parameter.data *= 2.0  # fresh weights hardly tell one word from another
    settings = {"decoding": {"recase": True, "max_length_extra": 4}}
    return Bundle(model.eval(), tokenizer, tokenizer, settings, {}, seen_words=collector.found)


@pytest.mark.parametrize(
    "changes",
    [{}, {"recase": None}, {"recase": False, "copy_symbols": False}, {"copy_symbols": False}],
    ids=str,
)
def test_odd_lines_and_their_warnings(opened: Opened, changes: dict[str, Any]) -> None:
    settings = DecodingConfig(**bundle().settings["decoding"]).changed(changes)
    plain = Translator(bundle(), settings, logs_warnings=False).translate(list(LINES))
    means = (each.mean_log_prob(settings.penalty) for each in plain)
    bound = statistics.median(each for each in means if each is not None)

    asked = dataclasses.replace(
        bundle(), settings={"decoding": settings.to_table()}, manifest={UNSURE_KEY: bound}
    )
    expected = Translator(asked, settings, logs_warnings=False).translate(list(LINES))
    found = opened(asked).evaluate(TRANSLATE, [list(LINES), {}])
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["source_tokens"] == list(theirs.source_tokens), theirs.source
        assert ours["text"] == theirs.text, theirs.source
        warnings = [dataclasses.asdict(each) for each in theirs.warnings]
        assert ours["warnings"] == warnings, theirs.source
    kinds = set().union(*(kinds_of(each.warnings) for each in expected))
    assert {"unseen", "unsure"} <= kinds
    if not changes:
        copied, shouted = (plain[LINES.index(each)] for each in ("42", "CHAT"))
        assert (copied.text, copied.tokens, "".join(shouted.source_tokens)) == ("42", (), "▁chat")


PLACES = """
([header, pairs]) => {
  const settings = { copy_symbols: true, recase: false };
  return pairs.map(([source, text]) => odd.oddLine(source, settings, { header }).restored(text));
}
"""


def test_emoji_stand_in_any_translation_as_in_python(engine_page: Page) -> None:
    lines = odd_lines(200)[::4]
    draw = random.Random(1)
    pairs = [(source, text) for source, text, _ in EMOJI_PLACES]
    for line in lines:
        places = sorted(draw.randint(0, len(line)) for _ in range(draw.randint(1, 4)))
        parts = [line[a:b] for a, b in itertools.pairwise([0, *places, len(line)])]
        pairs.append(("😀".join(parts), draw.choice(lines)))

    header = web_content(bundle(), "a", "float32").header
    script = join_modules("engine/odd_lines.js", "odd")
    engine_page.evaluate(f"() => {{ {script} globalThis.odd = odd; }}")
    found = engine_page.evaluate(PLACES, [{**header, "usual_warnings": []}, pairs])
    wrong = [
        (*pair, ours, with_emoji(*pair))
        for pair, ours in zip(pairs, found, strict=True)
        if ours != with_emoji(*pair)
    ]
    assert wrong == []


UNSEEN = """
([description, pairs]) => {
  const seen = seeing.openSeenWords(description);
  return pairs.map(([source, text]) => [
    seen.unseen(source), seen.notCopied(source, text), seen.rareSigns(source),
  ]);
}
"""


def test_words_that_the_training_text_never_had(engine_page: Page) -> None:
    """With letters of all scripts, in both cases."""
    lines = odd_lines(300)
    collector = WordCollector()
    assert [*collector.passing((line, "") for line in lines[::3])]
    seen = collector.found
    assert seen is not None
    pairs = list(zip(lines, [*lines[1:], lines[0]], strict=True))
    # A browser may know letters that this Python does not yet.
    known = [chr(code) for code in range(0x20, 0x2000) if unicodedata.category(chr(code)) != "Cn"]
    pairs += [(letter, letter.swapcase()) for letter in known]

    script = join_modules("engine/seen_words.js", "seeing")
    engine_page.evaluate(f"() => {{ {script} globalThis.seeing = seeing; }}")
    description = {
        "words": sorted(seen.words),
        "signs": "".join(seen.signs),
        "normalization": normalization_rule(),
    }
    found = engine_page.evaluate(UNSEEN, [description, pairs])
    wrong = [
        (source, ours, seen.unseen(source))
        for (source, text), ours in zip(pairs, found, strict=True)
        if ours != [seen.unseen(source), seen.not_copied(source, text), seen.rare_signs(source)]
    ]
    assert wrong == []
