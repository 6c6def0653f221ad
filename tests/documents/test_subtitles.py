"""Subtitles as programs and people write them."""

import re

import pytest

from pellucid.core.errors import DataError
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import Counts
from pellucid.documents.placement import Aligned
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated
from tests.documents.test_untouched_bytes import Capitals, Identity

HEAD = "1\n00:00:01,000 --> 00:00:02,000\n"
ASS = (
    "[Script Info]\r\nTitle: red\r\n\r\n[V4+ Styles]\r\nFormat: Name, Fontname\r\nStyle: a,b\r\n"
    "\r\n[Events]\r\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\r\n"
)
LINE = "Dialogue: 0,0:00:01.00,0:00:02.00,Default,Ann,0,0,0,,"


def said(source: str, name: str) -> str:
    assert translate_document(source.encode(), Identity(), name) == source.encode()
    return translate_document(source.encode(), Capitals(), name).decode()


def read_by_a_translator(source: str, name: str) -> list[str]:
    translator = Swapping()
    translate_document(source.encode(), translator, name)
    return translator.seen


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # no empty lines between, gaps in the numbers, no numbers
        (
            "1\n0:01,0 --> 0:02,0\nred\n5\n0:03,0 --> 0:04,0\nold\n",
            "1\n0:01,0 --> 0:02,0\nRED\n5\n0:03,0 --> 0:04,0\nOLD\n",
        ),
        (
            "00:01.5 --> 00:02\nred\n\n00:03 -> 00:04 X1:1 Y1:2\nold",
            "00:01.5 --> 00:02\nRED\n\n00:03 -> 00:04 X1:1 Y1:2\nOLD",
        ),
        # an empty line within, numbers as text, an arrow in a text, a mark at the start
        (
            HEAD + "red\n\nold\n\n\n2\n0:03 --> 0:04\nx\n",
            HEAD + "RED\n\nOLD\n\n\n2\n0:03 --> 0:04\nX\n",
        ),
        (HEAD + "12\n\nred\n", HEAD + "12\n\nRED\n"),
        (HEAD + "red --> old\n", HEAD + "RED --> OLD\n"),
        ("\ufeff" + HEAD + "red\r\n", "\ufeff" + HEAD + "RED\r\n"),
        # positions and other commands
        (HEAD + "{\\an8}red house\n", HEAD + "{\\an8}RED HOUSE\n"),
        (HEAD + "{\\i1}red{\\i0} house\n", HEAD + "{\\i1}RED{\\i0} HOUSE\n"),
        (HEAD + "{y:i}red\n", HEAD + "{y:i}RED\n"),
        # speakers: the lines of each stay apart
        (HEAD + "-red\n-old\ncat\n", HEAD + "-RED\n-OLD\nCAT\n"),
        (HEAD + ">> red\nhouse\n>> old\n", HEAD + ">> RED\nHOUSE\n>> OLD\n"),
        (HEAD + "ANN: red\nhouse\nBOB: old\n", HEAD + "ANN: RED\nHOUSE\nBOB: OLD\n"),
        (HEAD + "- ZOË (O.S.): red\n- ИВАН: old\n", HEAD + "- ZOË (O.S.): RED\n- ИВАН: OLD\n"),
        (HEAD + "<i>ANN: red</i>\n", HEAD + "<i>ANN: RED</i>\n"),
        # sounds
        (HEAD + "[red house]\n", HEAD + "[RED HOUSE]\n"),
        (HEAD + "<i>[red]</i> old cat [x]\n", HEAD + "<i>[RED]</i> OLD CAT [X]\n"),
    ],
)
def test_subrip_in_the_wild(source: str, found: str):
    assert said(source, "a.srt") == found


@pytest.mark.parametrize(
    "line",
    [
        *("ANN: red", "- ANN: red", "[ANN]: red", "<i>ANN: red</i>", "{\\an8}ANN: red"),
        *("<b>ANN:</b> red", '<font color="red">ANN:</font><i> red</i>'),
    ],
)
def test_the_name_of_a_speaker_is_not_translated(line: str):
    [segment] = read_document(f"{HEAD}{line}\n".encode(), "srt", "a.srt").segments
    assert "".join(piece for piece in segment.pieces if isinstance(piece, str)).strip() == "red"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[music playing]", ["music playing"]),
        ("[red]\nold cat", ["red", "old cat"]),
        ("[ते]\nold cat", ["ते", "old cat"]),
        ("- [red!]\n- old", ["red!", "old"]),
        ("Well, [red] old cat.", ["Well,", "red", "old cat."]),
        ("{\\an8}[red house] old", ["red house", "old"]),
        ("ANN: [red] old", ["red", "old"]),
        ("a list[0] or [1] here", ["a list[0] or [1] here"]),
    ],
)
def test_a_sound_in_brackets_is_read_by_itself_and_without_them(text: str, read: list[str]):
    translator = Swapping()
    found = translate_document(f"{HEAD}{text}\n".encode(), translator, "a.srt").decode()
    assert [each for each in translator.seen if any(map(str.isalpha, each))] == read
    assert [each for each in found if each in "[]"] == [each for each in text if each in "[]"]
    said = found.replace("an8", "").replace("ANN", "").swapcase()
    assert sorted(filter(str.isalpha, said)) == sorted(filter(str.isalpha, "".join(read)))


@pytest.mark.parametrize(
    ("text", "read", "found"),
    [
        ("(red house) old cat.", ["red house", "old cat."], "(HOUSE RED) CAT OLD."),
        ("A cat. (red) old", ["A cat.", "red", "old"], "CAT a. (RED) OLD"),
        ("- (red) old\n- cat", ["red", "old", "cat"], "- (RED) OLD\n- CAT"),
        ("(red) (old)", ["red", "old"], "(RED) (OLD)"),
        ("<i>ŁUKASZ (red house): old</i>", ["red house", "old"], "<i>ŁUKASZ (HOUSE RED): OLD</i>"),
        # the lines of a sound stay apart
        ("(red house now)\nold", ["red house now", "old"], "(HOUSE RED NOW)\nOLD"),
        ("old\n[red house now]", ["old", "red house now"], "OLD\n[HOUSE RED NOW]"),
        ("- ZOË (O.S.): red", ["red"], "- ZOË (O.S.): RED"),
    ],
)
def test_a_sound_in_round_brackets_is_read_by_itself(text: str, read: list[str], found: str):
    assert sorted(read_by_a_translator(f"{HEAD}{text}\n", "a.srt")) == sorted(read)
    assert translated(f"{HEAD}{text}\n", "a.srt") == f"{HEAD}{found}\n"


@pytest.mark.parametrize("text", ["red (old) cat", "I (old cat) say", "(12) cat"])
def test_round_brackets_within_a_sentence_are_part_of_it(text: str):
    assert read_by_a_translator(f"{HEAD}{text}\n", "a.srt") == [text]


@pytest.mark.parametrize("text", ["(un)red house", "(a) red house", "old? (un)red house"])
def test_brackets_of_a_part_of_a_word_or_an_item_are_those_of_no_sound(text: str):
    assert " ".join(read_by_a_translator(f"{HEAD}{text}\n", "a.srt")) == text


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<i>- Red.</i>\n<i>- Old.</i>", ["Red.", "Old."]),
        ("{\\i1}- red{\\i0}\n{\\i1}- old{\\i0}", ["red", "old"]),
        ("- Red? - Old.", ["Red?", "Old."]),
        ("‐ red\n‐ old", ["red", "old"]),
        ("# red #\n# old #", ["red", "old"]),
        ("<i># red\nhouse #</i>", ["red house"]),
        ("we are # 1", ["we are # 1"]),
        ('"Red?" - old cat', ['"Red?" - old cat']),
        # no speakers
        ("a red - or old cat", ["a red - or old cat"]),
        ("<i>pre</i>-war cat", ["pre-war cat"]),
        ("-5 cats", ["-5 cats"]),
        ("red? -- old", ["red?", "-- old"]),
        ('the word "red" - House of old', ['the word "red" - House of old']),
    ],
)
def test_the_dash_before_what_a_speaker_says_is_not_read(text: str, read: list[str]):
    assert sorted(read_by_a_translator(f"{HEAD}{text}\n", "a.srt")) == sorted(read)
    found = said(f"{HEAD}{text}\n", "a.srt").removeprefix(HEAD)
    assert found.lower() == f"{text}\n".lower()


def test_a_stretch_with_a_class_of_webvtt_keeps_its_end():
    head = "WEBVTT\n\n0:01.0 --> 0:02.0\n"
    found = translated(head + "<c.yellow.big>red cat</c> old <b.x>house</b> <c>now</c>\n", "a.vtt")
    assert found == head + "<c.yellow.big>CAT RED</c> <b.x>HOUSE</b> OLD <c>NOW</c>\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<i>red house</i>\n♪ old cat ♪\n", "<i>HOUSE RED</i>\n♪ CAT OLD ♪\n"),
        ("♪ old cat ♪\nred house\n", "♪ CAT OLD ♪\nHOUSE RED\n"),
    ],
)
def test_speech_and_song_keep_their_lines(text: str, found: str):
    assert translated(HEAD + text, "a.srt") == HEAD + found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Go!\nthe red house here stands alone", "gO!\nRED THE HERE HOUSE ALONE STANDS"),
        ("Well...\n...red house there now", "wELL...\n... RED THERE HOUSE NOW"),
        ("<i>Now?\nIn the red house there.</i>", "<i>nOW?\nTHE iN HOUSE RED THERE.</i>"),
        # an abbreviation ends no sentence
        ("Mr.\nAnn Lee was there", "mR. lEE aNN\nTHERE WAS"),
    ],
)
def test_lines_that_are_sentences_stay_apart(text: str, found: str):
    assert translated(f"{HEAD}{text}\n", "a.srt") == f"{HEAD}{found}\n"


def test_each_speaker_keeps_the_lines_of_a_subtitle():
    """Words change places within what one of them says, and not between two."""
    found = translated(HEAD + "- red house here\nnow old\n- a small cat\n", "a.srt")
    first, second, third = found.removeprefix(HEAD).splitlines()
    assert {*f"{first} {second}".split()} == {"-", "HOUSE", "RED", "NOW", "HERE", "OLD"}
    assert third == "- SMALL A CAT"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            "WEBVTT\n\n0:01.0 --> 0:02.0\nred\n0:03.0 --> 0:04.0\nold\n",
            "WEBVTT\n\n0:01.0 --> 0:02.0\nRED\n0:03.0 --> 0:04.0\nOLD\n",
        ),
        (
            "WEBVTT\n\n0:01.0 --> 0:02.0\n<v Ann>red</v>\n\nNOTE\nred\n\nSTYLE\n::cue{}\n",
            "WEBVTT\n\n0:01.0 --> 0:02.0\n<v Ann>RED</v>\n\nNOTE\nred\n\nSTYLE\n::cue{}\n",
        ),
    ],
)
def test_webvtt_in_the_wild(source: str, found: str):
    assert said(source, "a.vtt") == found
    # Some have the wrong name.
    assert said(source, "a.srt") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("red, house", "RED, HOUSE"),
        ("{\\an8\\pos(1,2)}red\\Nhouse", "{\\an8\\pos(1,2)}RED\\NHOUSE"),
        ("{\\i1}red{\\i0} house\\h", "{\\i1}RED{\\i0} HOUSE\\h"),
        ("{\\k20}red {\\k30}house {\\k15}old", "{\\k20}RED {\\k30}HOUSE {\\k15}OLD"),
        ("- red\\N- old", "- RED\\N- OLD"),
        ("{\\p1}m 0 0 l 100 0{\\p0}", "{\\p1}m 0 0 l 100 0{\\p0}"),
    ],
)
def test_substation_alpha_keeps_commands_and_styles(text: str, found: str):
    source = f"{ASS}Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,red\r\n{LINE}{text}\r\n"
    assert said(source, "a.ass") == source.replace(LINE + text, LINE + found)


@pytest.mark.parametrize(
    ("text", "read", "found"),
    [
        (r"red\hhouse\hhere", ["red house here"], r"RED\hHOUSE\hHERE"),
        (r"red house\nby it", ["red house by it"], r"RED HOUSE\nBY IT"),
        (r"red \h house", ["red house"], r"RED \h HOUSE"),
        (r"red \hhouse", ["red house"], r"RED \hHOUSE"),
        (r"\h\hred\h\h\hhouse\Nhere", ["red house here"], r"\h\hRED\h\h\hHOUSE\NHERE"),
        (r"{\i1}red{\i0}\hhouse", ["red house"], r"{\i1}RED{\i0}\hHOUSE"),
        (r"red:\hhouse\h", ["red: house"], r"RED:\hHOUSE\h"),
        (r"Q:\hred house?", ["red house?"], r"Q:\hRED HOUSE?"),
        (r"A:\nred house", ["red house"], r"A:\nRED HOUSE"),
        (r"Q:\nred\hhouse\NA:\hold", ["red house", "old"], r"Q:\nRED\hHOUSE\NA:\hOLD"),
        (r"a:\hred", ["a: red"], r"A:\hRED"),
        (r"- red\hhouse\N- old\hcat", ["red house", "old cat"], r"- RED\hHOUSE\N- OLD\hCAT"),
    ],
)
def test_hard_spaces_and_soft_line_ends_are_read_as_spaces(text: str, read: list[str], found: str):
    source = f"{ASS}{LINE}{text}\r\n"
    assert read_by_a_translator(source, "a.ass") == read
    assert said(source, "a.ass") == f"{ASS}{LINE}{found}\r\n"


@pytest.mark.parametrize(
    ("text", "read", "found"),
    [
        (r"red\hhouse\Nby it.", ["red house by it."], r"RED\hHOUSE\NBY IT."),
        (r"- red house\N- old cat", ["red house", "old cat"], r"- RED HOUSE\N- OLD CAT"),
        ("♪ la ♪\\Nred\\N", ["la", "red"], "♪ LA ♪\\NRED\\N"),
        (r"red D:\news\here", [r"red D:\news\here", "red "], r"RED D:\news\here"),
        (r"c:\here\New is red", [r"c:\here\New is red"], r"C:\HERE\NEW IS RED"),
        (
            r"D:\news is red\hhouse",
            [r"D:\news is red house", "is red house"],
            r"D:\news IS RED\hHOUSE",
        ),
        (r"C:\New C:\house", [], r"C:\New C:\house"),
        (r"Q:\hRed house\NA:\hred.", ["Red house", "red."], r"Q:\hRED HOUSE\NA:\hRED."),
        (r"A:\hred\a.txt C:\n\red", [], r"A:\hred\a.txt C:\n\red"),
    ],
)
def test_codes_of_substation_alpha_are_read_in_subrip(text: str, read: list[str], found: str):
    source = f"{HEAD}{text}\n\n{HEAD}x\n"
    assert set(read_by_a_translator(source, "a.srt")) == {*read, "x"}
    assert said(source, "a.srt") == f"{HEAD}{found}\n\n{HEAD}X\n"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<v Bob>red house</v>\n<v Ann>old cat</v>", ["red house", "old cat"]),
        ("<v Bob>red house</v> <v Ann>old cat</v>", ["red house", "old cat"]),
        ("<v Bob>red house</v><v.loud Ann>old\ncat</v>", ["red house", "old cat"]),
        ("<v Bob>red house\n<v Ann>old cat", ["red house", "old cat"]),
        ("<v Bob>red house <v Ann>old cat", ["red house", "old cat"]),
        ("<i><v Bob>red\nhouse</v></i>", ["red house"]),
        ("- red house\n- old cat", ["red house", "old cat"]),
    ],
)
def test_two_voices_are_two_texts(text: str, read: list[str]):
    head = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
    assert read_by_a_translator(f"{head}{text}\n", "a.vtt") == read
    found = said(f"{head}{text}\n", "a.vtt").removeprefix(head)
    assert (
        found
        == "".join(
            each if each.startswith("<") else each.upper() for each in re.split("(<[^<>]*>)", text)
        )
        + "\n"
    )


def test_times_of_karaoke_keep_their_order():
    source = f"{ASS}{LINE}{{\\k20}}red {{\\k30}}house {{\\k15}}old cat\r\n"
    found = translated(source, "a.ssa")
    assert [found.index(f"{{\\k{each}}}") for each in (20, 30, 15)] == sorted(
        found.index(f"{{\\k{each}}}") for each in (20, 30, 15)
    )


def test_subtitles_in_windows_1252_stay_in_it_and_this_is_said():
    source = HEAD + "Häuser und Gärten\n"
    counts = Counts()
    found = translate_document(source.encode("cp1252"), Swapping(), "a.srt", counts=counts)
    assert found == (HEAD + "UND hÄUSER gÄRTEN\n").encode("cp1252")
    assert counts.notes[0].startswith("it is not UTF-8 and was read as Windows-1252")
    with pytest.raises(DataError, match=r"not UTF-8 .*, and not surely in another encoding"):
        translate_document((HEAD + "Красный дом").encode("cp1251"), Swapping(), "a.srt")


@pytest.mark.parametrize(
    ("language", "page", "text"),
    [
        ("pl", "cp1250", "Zażółć gęślą, jaźń"),
        ("pl", "iso8859-2", "Zażółć gęślą, jaźń"),
        ("cs", "iso8859-2", "Příliš žluťoučký"),
        ("sk", "cp1250", "Ľahký kôň"),
        ("cs_CZ", "cp1250", "Příliš žluťoučký"),
        ("ru", "cp1251", "красный дом"),
        ("el", "cp1253", "το σπίτι"),
        ("tr", "cp1254", "ağaç gölgesi"),
        ("he", "cp1255", "בית"),
        ("ar", "cp1256", "بيت"),
        ("de", "cp1252", "schöne Häuser"),
    ],
)
def test_a_file_in_the_code_page_of_its_language_is_read_in_it(language: str, page: str, text: str):
    translator, counts = Swapping(), Counts()
    translator.source_language = language
    found = translate_document(f"{HEAD}{text}\n".encode(page), translator, "a.srt", counts=counts)
    assert translator.seen == [text]
    assert sorted(found.decode(page).casefold()) == sorted(f"{HEAD}{text}\n".casefold())
    name = page.replace("cp", "Windows-").replace("iso", "ISO ")
    assert counts.notes[0].startswith(f"it is not UTF-8 and was read as {name}")

    table, columns = f"id,x\n1,{text.replace(',', '')}\n", ReadOptions(("x",))
    translator.seen.clear()
    translate_document(table.encode(page), translator, "a.csv", options=columns)
    translate_document(table.encode(), translator, "a.csv", options=columns)
    assert translator.seen == [text.replace(",", "")] * 2


@pytest.mark.parametrize(
    "data",
    [
        "Красный дом. Старый дом".encode("koi8-r"),
        "Красный дом. Старый дом".encode("cp866"),
        "Красный дом. Старый дом".encode()[:-1],
    ],
    ids=["KOI8-R", "DOS", "damaged UTF-8"],
)
def test_what_is_in_no_code_page_of_its_language_is_refused(data: bytes):
    translator = Swapping()
    translator.source_language = "ru"
    with pytest.raises(DataError, match="not surely in another encoding"):
        translate_document(HEAD.encode() + data, translator, "a.srt")


@pytest.mark.parametrize(
    ("translation", "lines"),
    [
        ("红色房子", ["红色", "房子"]),
        ("红色，家", ["红色，", "家"]),  # no line begins with a comma
        ("红色的家，啊", ["红色的", "家，啊"]),  # nor is one far shorter for a mark
        ("我来了。你好。", ["我来了。", "你好。"]),
        ("啊，我们今天都住在红色房子", ["啊，我们今天", "都住在红色房子"]),
        ("他说「好。」我走了", ["他说「好。」", "我走了"]),
        ("아름다운집 이다", ["아름다운집", "이다"]),  # no Korean word is cut
    ],
)
def test_lines_end_where_the_script_lets_them(translation: str, lines: list[str]):
    class Foreign(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(translation)

    source = f"{HEAD}One red\nhouse\n"
    found = translate_document(source.encode(), Foreign(), "a.srt").decode()
    assert found.removeprefix(HEAD).split() == lines


def test_a_file_without_subtitles_is_refused():
    with pytest.raises(DataError, match="found no line with a time and -->"):
        translated("red house\n", "a.srt")
    with pytest.raises(DataError, match="found no line that begins with Dialogue:"):
        translated("red house\n", "a.ass")


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        # tags and codes are not shown: the lines have equal lengths without them
        (
            "a.srt",
            '<font color="#ffff00">red house here\nand old cat there</font>\n',
            '<font color="#ffff00">RED HOUSE HERE\nAND OLD CAT THERE</font>\n',
        ),
        (
            "a.ass",
            "{\\an8\\c&H00FFFF&}red house here\\Nand old cat there",
            "{\\an8\\c&H00FFFF&}RED HOUSE HERE\\NAND OLD CAT THERE",
        ),
        # no line ends within a code, or because of a sign that begins none
        ("a.ass", "{a b c d e f}red\\Nold cat", "{a b c d e f}RED\\NOLD CAT"),
        ("a.srt", "I <3 red\nhouses\n", "I <3 RED\nHOUSES\n"),
        # empty lines raise a text
        ("a.ass", "\\N\\Nred house", "\\N\\NRED HOUSE"),
        ("a.ass", "{\\an8}\\Nred\\N\\Nold cat here", "{\\an8}\\NRED\\N\\NOLD CAT HERE"),
        # another size is another text
        ("a.ass", "red\\N{\\fs24}old house here", "RED\\N{\\fs24}OLD HOUSE HERE"),
        # references are read as their characters
        ("a.srt", "red &amp; it&#39;s\n", "RED &amp; IT&#39;S\n"),
    ],
)
def test_a_subtitle_is_divided_by_what_is_shown(name: str, text: str, found: str):
    head = f"{ASS}{LINE}" if name == "a.ass" else HEAD
    assert said(head + text, name) == head + found


@pytest.mark.parametrize(
    ("text", "read", "found"),
    [
        ("-Red house. -Old.", ["Red house.", "Old."], "-HOUSE rED. -oLD."),
        (">> ANN: Red. >> BOB: Old.", ["Red.", "Old."], ">> ANN: rED. >> BOB: oLD."),
        ("ANN [in red]: Old", ["in red", "Old"], "ANN [RED IN]: oLD"),
        ("Red. >>> Old cat", ["Red.", "Old cat"], "rED. >>> CAT oLD"),
    ],
)
def test_two_speakers_in_a_line_are_two_texts(text: str, read: list[str], found: str):
    translator = Swapping()
    written = translate_document(f"{HEAD}{text}\n".encode(), translator, "a.srt").decode()
    assert translator.seen == read
    assert written == f"{HEAD}{found}\n"
