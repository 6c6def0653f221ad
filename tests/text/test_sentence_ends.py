"""Where sentences end in many languages: dates, abbreviations, addresses, notes and soft breaks.

A vertical bar in a text of these tests stands where a sentence ends.
"""

import pytest

from pellucid.text.abbreviations import before_words, list_ends, units
from pellucid.text.sentence_ends import HAVE_ORDINALS
from pellucid.text.splitting import ABBREVIATIONS, add_abbreviations, split_sentences


def cut(text: str, language: str) -> str:
    """The text with a vertical bar where a sentence ends."""
    found = split_sentences(text, language)
    assert all(text[each.start :].startswith(each.text) for each in found)
    return "|".join(each.before + each.text + each.after for each in found)


def assert_cut(expected: str, language: str) -> None:
    assert cut(expected.replace("|", ""), language) == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("hr", "Rođen je 1980. godine. |Bilo je 1980. |Onda je otišao."),
        (
            "hr",
            "Bio je 19. stoljeće i XX. stoljeće, od 5. do 6. maja, 5.–6. maja, 5.5.1980. godine.",
        ),
        ("hu", "2020. január 5-én volt. |Ő jött. |A XIV. Lajos. |A II. világháború 1945. |Ő jött."),
        ("hu", "2020. 05. 12. napján a XX. század. |Ez jó."),
        ("lv", "2020. gada 5. maijā. |Viņš nāca 1990. |Tad."),
        ("et", "2020. aastal oli. |Ta tuli 1990. |Siis."),
        ("fi", "Hän tuli 5. toukokuuta 1980. |Sitten hän lähti."),
        ("sr", "Rođen 5. maja 1980. godine. |II. svetski rat."),
        ("sr", "Рођен 5. маја 1980. године. |Она је ту."),
        ("sr-Latn-RS", "Rođen 5. maja 1980. godine."),
        ("bs", "Rođen 5. maja 1980. godine. |XX. stoljeće."),
        ("sh", "Rođen 5. maja 1980. godine."),
        ("mk", "Роден на 5. мај. |Тој е тука."),
        ("tr", "19. yüzyılda oldu. |2. Dünya Savaşı bitti. |II. Abdülhamid geldi."),
        ("eu", "1936. urtean XX. mendean. |Gero joan zen."),
        ("cs", "Dne 1. 5. 2020 a 12. května 1980. |Karel IV. byl král. |V roce 1980. |Potom."),
        ("sl", "Rojen 5. maja 1980. |Potem je odšel."),
        ("sk", "Narodil sa 5. mája 1980. |Potom."),
        ("pl", "Urodził się 5. maja. |Potem."),
        ("da", "Den 5. maj 1980. |Så gik han."),
        ("nb", "Den 5. mai 1980. |Så gikk han."),
        ("is", "Hann kom 5. maí 1980. |Hún fór."),
        ("de", "Vom 20.09. bis zum 5. 10. 2020. |Er kam im 6. Stock an, XXVIII. Bericht."),
        ("de", "Die Unterkunft im 6.Stock ist hell."),
        ("de", "Das war 1995. |Österreich trat bei."),
        ("ko", "2020. 5. 12. |그는 왔다."),
        ("en", "It was from the 20.09. until the 5.10. |He was 12. |Then he left."),
        ("th", "ในปี พ.ศ. 2563 เขาไป"),
        ("lt", "2020 m. sausio 5 d. vyko. |XX a. pradžioje."),
        ("hr", "Rođen je 1. 5. 1980. u Splitu. |Traje od 5. – 6. maja. |Onda."),
        ("sl", "Rojen 31. XII. 1980. |Sejem je 5. - 6. maja."),
        ("en", "It was on 1. |5. |Then he left."),
    ],
)
def test_dates_and_ordinals_end_no_sentence(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "I met Ms. Smith and Mr. and Ms. Brown. |Approx. 5 came. |See Vol. 3 and max. 5."),
        ("en", "Come at 5 p.m. EST. |At 9 a.m. Monday. |At 5 p.m. |Then he left."),
        ("en", "Come at 5 pm. CEST. |It is 5 pm. |Tom left."),
        ("es", "Es a las 5 p. m. EST o a las 9 p.m. UTC. |A las 5 p.m. |Luego."),
        ("fr", "Voir l. 5, q. 12 et à la v. 3. |Le groupe A. |3 personnes."),
        ("ko", "패킷 전송 수. |0을 지정합니다."),
        ("pl", "To trwa 5 min. |3 osoby czekają. |Liczba mn. w domu."),
        ("en", "Send it to J. Smith and Sen. Brown, e.g. today, i.e. now. |Prof. Lee came."),
        ("en", "Apples, etc. |Then he left. |Apples, etc. and pears. |Apples (etc.) are here."),
        ("en", "He works at Acme Inc. in Rome. |In the U.S. |He came. |King Jr. |He was."),
        (
            "en",
            "Yan et al. [2004] did it. |It took 5 min. and then he left. |Plan B. |Then he left.",
        ),
        (
            "en",
            "It is incl. tax, est. 1990, Ch. 5, Jan. 5 and (approx. 5) here. |Up approx . 25 of it",
        ),
        ("de", "Das ist inkl. MwSt. und bspw. Hunde, geb. Müller, für Hrn. Meier zzgl. Porto."),
        ("de", "Äpfel usw. |Dann ging er. |Äpfel usw. und Birnen. |Äpfel usw. Birnen."),
        ("de", "Das sind 5 Mio. Euro. |Siehe Bd. 3, Friedr. Schiller und d.h. er, vgl. Abb. 3."),
        ("de", "Ich mag Vitamin C. |Das ist gut. |Er ist (bzw. Hunde sind) da."),
        (
            "pl",
            "Ma m.in. dom. |W 2010 r. kupił dom. |W 2010 r. |Potem. |Np. dom, tj. dom, tys. zł.",
        ),
        ("pl", "Szkoła im. Jana. |Dałem im. |Potem poszli. |Domy itd. |Potem."),
        (
            "nl",
            "Dat is d.w.z. hij. |Mw. Jansen en o.a. hond. |Honden enz. |Daarna. |Zie d.m.v. de.",
        ),
        ("sv", "Det är t.ex. äpplen, dvs. hund, kl. 5. |Äpplen osv. |Sedan gick han."),
        ("no", "Det er f.eks. hund. |5 mill. kroner. |Epler osv. |Så gikk han."),
        ("da", "Det er f.eks. hund. |Æbler osv. |Så gik han."),
        (
            "ru",
            "Он, т. е. взял, т.е. он, напр. он. |5 млн. рублей. |В 1980 г. он. |В 1980 г. |Он был.",
        ),
        ("ru", "Стол и т. д. |Потом он. |Стол и др. люди. |Школа им. Ленина, ул. Пушкина, стр. 5."),
        ("uk", "Школа ім. Шевченка, вул. Хрещатик. |Стіл і т. д. |Потім. |У 1980 р. він був."),
        ("bg", "Той, т.е. той, през 1980 г. той беше на ул. Витоша. |Маса и др. |После."),
        ("pt", "Na Av. Paulista. |Na pág. 5, n.º 5, do séc. XX aqui. |Maçãs etc. |Depois."),
        ("es", "En Av. Libertad, pág. 5. |Manzanas, etc. |Luego. |A las 5 p. m. |Luego. |Ud. es."),
        (
            "it",
            "Vedi pag. 5 a S. Pietro. |Mele ecc. |Poi. |L'art. 5 del sig. Rossi. |5 mln. di euro.",
        ),
        ("it", "È nel Gruppo A. |Poi va."),
        (
            "fr",
            "Mme. Dupont, M. Dupont et Dr. Seuss. |J.-P. Sartre, c.-à-d. le chien, St. Paul.",
        ),
        ("fr", "En 50 av. J.-C. il y a. |Vers 300 av. J.-C. |Les hommes. |Pommes etc. |Puis il."),
        ("cs", "Je to např. pes atd. |Potom. |Viz č. 5."),
        ("fi", "Se on esim. koira jne. |Sitten."),
        ("hu", "Ez kb. 5, ún. kutya stb. |Aztán."),
        ("ro", "Este d. ex. câine, pag. 5. |Mere etc. |Apoi. |Dl. Popescu."),
        ("el", "Ο κ. Παπαδόπουλος, δηλ. σκύλος, σελ. 5. |Μήλα κτλ. |Μετά."),
        ("hr", "To je npr. pas, tj. pas itd. |Onda. |Vidi br. 5 i ul. Duga."),
        ("tr", "Bu örn. köpek, M.Ö. 5, Av. Ali. |Elma vb. |Sonra."),
        ("fa", "دکتر. احمد رفت. |او آمد."),
        ("ar", "د. أحمد ذهب. |ثم عاد. |ق.م. كان."),
        ("he", "עמ. 5. |הוא בא."),
        ("hi", "डॉ. शर्मा आए। |वह गया। |वह आया. |वह गया."),
        ("vi", "Ở TP. Hồ Chí Minh. |Anh đi. |Táo v.v. |Sau đó. |GS.TS. Nguyễn ở TP.HCM."),
        ("th", "ดร. สมชาย น.ส. มาลี เวลา 8.00 น. เขาไป"),
        ("ka", "1980 წ. იყო. |ის მოვიდა. |ის წავიდა."),
        ("id", "Dr. Budi di PT. Telkom tgl. 5. |Apel dll. |Dia."),
    ],
)
def test_abbreviations_end_a_sentence_only_where_the_next_word_begins_one(
    language: str, expected: str
):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "He told me. |Then he left. |It is OK. |Tom is ill. |She said no. |Tom goes."),
        ("es", "Pesa 5 kg. |Juan ríe. |Mide 2 m². |Luego (a 5 km. Madrid) va."),
        (
            "ru",
            "Он весит 5 кг. |Том спит. |Это стоит 5 руб. |Хлеб свежий. |В 1990 г. Москва росла.",
        ),
        ("de", "Länge 5 m. |Breite 3 m. |Das kostet 5 Mio. Euro."),
        ("ko", '"가자."라고 말했다. |“정말?”하고 물었다. |그는 갔다.'),
        ("zh", "打开文件。|2.保存。|价格是3.5元。3.5元。"),
        ("pt", "V. Exa. sabe. |S. Exas. Reverendíssimas vieram."),
        ("en", "Come on Mon. Jan. 5. |We saw the Sun. |May it set."),
        ("en", "He came in May. |Then he left. |See no. IV and No. 5."),
        ("de", "Er kennt mich. |Tom geht. |Was ich mag. |Auf diese Art. |Dann siehe Art. 5."),
        ("it", "Come va. |Roma è qui. |Dille di no. |Poi va via. |Tom resta."),
        ("es", "Dijo que no. |Madrid es así. |Está bien. |Tom viene."),
        ("fr", "Il aime l'art. |Tom vient."),
        ("da", "Han går med. |Tom er her."),
        ("sv", "Det är min. |Tom går ut. |Hon är här."),
        ("cs", "Je tu. |Pavel dal nám. |Potom."),
    ],
)
def test_words_that_sentencex_takes_for_abbreviations_end_sentences(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "i live here. |you live there. |Hi! |how are you? |I saw the cat. |it was black."),
        ("en", "The citizens rest. |strand A goes on. |Hmm. |ok then."),
        ("en", "“Really?” he asked. |Hello! said he. |“Me!” she cried."),
        ("en", 'I saw it. |Really?" he asked. |It is "so!" he cried.'),
        ("de", "„Wirklich?“ fragte er. |Ach! rief er."),
        ("fr", "— Quoi ? dit-il. |— Oui ! s'écria-t-elle. |Non! s'écria-t-il."),
        ("ja", "「行く。」と言った。|彼は来た。|「行く！」って。|「行く！」|とても嬉しい。"),
        ("zh", "“走！”小明喊道。|他走了。|“是的。”|“不是。”"),
    ],
)
def test_a_word_in_lower_case_goes_on_behind_a_quotation_and_not_behind_a_careless_stop(
    language: str, expected: str
):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "Use ASP.NET, Node.Js, System.IO.File, README.Md and Foo.Bar. |Open the .ZIP file."),
        ("en", "See https://example.com/Foo.Bar?Id=1 and me@Foo.Com, www.Foo.Com/A?B! |Then go."),
        ("en", "Open C:\\Foo.Bar and google.Com and and/Or.Txt and v1.2.X today."),
        ("en", "The U.S.A.The end. |He has the K.-O. drops."),
        ("fr", "En 50 av. J.-C. il y a."),
        ("de", "Dipl.-Ing. Meier zahlt 249.- Euro und 5.– Euro? |Er nimmt K.-o.-Tropfen."),
        ("de", "Er wohnt in der Wilh.-Leuschner-Str. 5, 525 m.ü.M. im Haus."),
        ("vi", "Tôi ở TP.Hồ Chí Minh."),
        ("th", "เขาอยู่ จ.เชียงใหม่ อ.เมือง มี.ค.นี้"),
        ("ar", "م.ت.ف في"),
        ("en", "He left... , and then. |(He left.) |Then."),
        ("en", 'This is a quotation . "'),
        # two sentences without a space stay two
        (
            "en",
            "a dog running!|A dog sleeps.|The cat runs in 1980.|Then he slept. |Really?!|Yes.",
        ),
        ("en", "He went to Guinea.|The dog sleeps."),
        ("en", 'The helpful staff.|Fantastic location.|"Look," she said.'),
        ("as", "ভাষাৰ আই.এস.ও. কোড। |আই.এস.আৰ.কোড হয়।"),
        ("de", "Er geht auf die Promenade.|Außerdem kann man.|Die Stadt ist da."),
        ("zh", "他来了。|他走了！|你好!|我走了。"),
        ("ar", "ذهب.|عاد هو."),
        ("hi", "हाँ.|वह आया. |हाँ. |डॉ.शर्मा आए। |ई.पू. वह। |ई. पू. वह।"),
        ("ko", "네.|그는 왔다. |네. |그녀는 갔다."),
        ("zh", "我走了.|Peter来了。"),
        ("hi", "वह गया।|वह आया।"),
        ("en", "Super!|😀 Great."),
    ],
)
def test_a_stop_inside_a_word_or_an_address_ends_no_sentence(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("km", "ខ្ញុំទៅ។ |គាត់មក។|គាត់មក៕ |គាត់មាន ផ្លែ ។ល។ |គាត់មក។"),
        ("bo", "ང་ཡིན། |ཁོང་རེད། |བོད་སྐད། བོད་ཡིག༎ |ང་ཡོད།"),
        ("en", "(He left.) |Then she came. |[He left!] |Then. |(He left. She came.) |Then."),
        (
            "en",
            "He left (see p. 5). |Then she came. |A man (ed.) The. |He (Mr. X) Then.",
        ),
        (
            "en",
            "He came.1 |Then.12 |She left.1,2 |Then.[1] |She.[1][2] |He.¹² |She.(1) |He.* |Go.",
        ),
        ("en", "See fig.3 The dog and No.5 Then, and python3.5 Then."),
        ("en", "He came.1 and left. |“I go.”1 |Then."),
        ("de", "Er kam.1 |Dann ging sie, siehe Nr.5 Der Hund."),
        ("en", "\"I go.\" |Then. |“I go.” |Then. |'I go.' |Then."),
        ("en", "It is his autobiography. |'We are in Europe. We are here.' |Then."),
        ("hy", "Նա եկավ։ |Նա գնաց։ |Ո՞վ է։"),
        ("ur", "وہ آیا۔ |وہ گیا۔"),
        ("hi", "वह आया। |वह गया॥ |वह आया| |वह गया|"),
        ("am", "እሱ መጣ። |እሱ ሄደ።|ለምን፧ |አዎ።"),
        ("ar", "هل جاء؟ |نعم! |ذهب."),
        ("my", "သူလာသည်။ |သူသွားသည်။"),
        ("lo", "ລາວມາແລ້ວ. |ລາວໄປແລ້ວ."),
        ("el", "Ήρθε; |Έφυγε."),
        ("zh", "（他走了。）|然后她来了。|他说：“好！”|他走了。"),
        ("ja", "（彼は来た。）|そして。|「行く。」|「はい。」"),
    ],
)
def test_sentences_end_at_marks_brackets_and_notes(language: str, expected: str):
    if "| |" in expected:  # the mark of Hindi is typed as a bar
        assert len(split_sentences(expected.replace("| |", "| "), language)) == 4
    else:
        assert_cut(expected, language)


@pytest.mark.parametrize("blank", ["\u2028", "\v", "\f", "\x85", " \u2028", "\u2028 ", "\x1c"])
def test_a_soft_break_ends_a_sentence_only_where_a_new_one_begins(blank: str):
    for expected in (
        f"A dog runs in{blank}the garden. |A cat{blank}of 5 years{blank}(and 5{blank}months)",
        f"A dog runs.{blank}|A cat sleeps{blank}|A bird{blank}|• an egg{blank}|- a nest",
        f"A dog and the{blank}Smith family.{blank}|then it sleeps",
        f"A dog{blank}{blank}|a cat",
    ):
        assert_cut(expected, "en")
    assert_cut(f"红房子{blank}|白房子", "zh")
    assert_cut(f"Ein Hund, z. B.{blank}ein roter, für die{blank}Frau", "de")


def test_a_paragraph_separator_and_a_carriage_return_end_a_line():
    assert_cut("a dog runs\u2029|a cat\r|a bird\r\n|a fish\n|a", "en")


@pytest.mark.parametrize(
    "words",
    [
        "Ms. ",
        "a.B",
        "1. ",
        "(a.) ",
        "a.1 ",
        "z. B. ",
        "\u2028a",
        "། ",
        "।[1] ",
        "etc. The ",
        "'A. ",
    ],
)
def test_each_place_is_looked_at_once(words: str):
    """Tens of thousands of places took minutes if each looked at the whole line."""
    text = words * 5000
    found = split_sentences(text, "en")
    assert "".join(each.before + each.text + each.after for each in found) == text


def test_no_word_is_in_two_lists_that_disagree():
    """A title never ends a sentence, an enumeration mostly does."""
    for language in ("de", "en", "fr", "es", "it", "pt", "nl", "pl", "ru", "sv", "tr", "uk", "hr"):
        assert before_words(language).isdisjoint(list_ends(language)), language
        assert list_ends(language).isdisjoint(units(language) - {"v.v"}), language


def test_a_word_that_a_user_adds_ends_no_sentence_even_before_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(ABBREVIATIONS, "", set())
    add_abbreviations(["etc.", "и/о.", "Foo.-Bar."])
    assert_cut("Apples, etc. Then и/о. Петр and (Foo.-Bar. The).", "en")


def test_languages_with_ordinals_have_two_or_three_letters():
    assert all(code.isalpha() and len(code) in (2, 3) for code in HAVE_ORDINALS)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "Ich wohne in der Schweiz. |Das gefällt mir."),
        ("de", "Ich wohne in einer WG. |Wir sind zu dritt."),
        ("de", "Ich wohne in einer WG. |Tom wohnt in der Schweiz. |Anna auch."),
        ("de", "Mein Freund ist Bayer. |Er kommt aus München."),
        ("de", "Das ist Phil. |Er ist mein Bruder."),
        ("de", "Das ist Seb. |Er ist mein Bruder."),
        ("de", "Er kam. |Vgl. Kapitel 3."),
        ("de", "Er kam. |Siehe Fig. 3 und NR. 5 und Tel. 030."),
        ("fr", "Il lit une BD. |Elle regarde la télé."),
        ("pl", "Wszystko jest OK. |Możemy iść."),
        ("pl", "Wszystko ok. |Możemy iść."),
        ("hu", "Ez egy Ford. |Nagyon jó autó."),
        ("hu", "Ő egy gróf. |Nagyon gazdag."),
        ("ru", "Я дал им. |Петр ушёл."),
        ("ru", "Это был полк. |Люди шли."),
        ("ru", "Мы говорили о нем. |Петр ушёл."),
        ("ru", "Это ген. |Петр ушёл."),
        ("uk", "Це гарний вид. |Петро пішов."),
        ("uk", "Це полк. |Люди йшли."),
        ("sv", "Han är ung. |Anna är gammal."),
        ("hr", "To je red. |Ana je tu."),
        ("hr", "To je gen. |Ana je tu."),
        ("hr", "Crkva Sv. Marka je tu."),
        ("pl", "To jest gen. |Ania wie."),
        ("pl", "Powiedziałem im. |Tomek poszedł."),
        ("pl", "To dobry lek. |Mama jest chora."),
        ("sl", "To je gen. |Ana ve."),
        ("ta", "அவர் ஒரு டாக்டர். |அவள் வந்தாள்."),
        ("ta", "அவள் பெயர் செல்வி. |அவள் வந்தாள்."),
        ("tr", "Frekans 50 Hz. |Bu çok."),
        ("tr", "Bu değer Hz. |Ali geldi."),
        ("fr", "Il habite au Cap. |Paul est là."),
        ("vi", "Em học THPT. |Anh đi làm."),
        ("id", "Saya kirim CV. |Budi datang."),
        ("es", "Gracias a Ud. |Mañana vamos."),
        ("es", "Ud. es bueno."),
        ("en", "He lives on Main St. |The house is big."),
        ("en", "He went to St. Peter in St. Louis."),
        ("fr", "Il vit à St. |Elle part."),
        ("fr", "Il vit à St. Paul."),
        ("it", "Il Sig. Rossi e la Dott.ssa Bianchi."),
        ("ru", "Школа им. Ленина и завод им. Кирова."),
        ("cs", "To je gen. |Pavel je tu."),
        ("sk", "To je gen. |Pavel je tu."),
        ("ro", "Este un gen. |Maria este."),
    ],
)
def test_a_word_of_the_language_or_a_name_ends_a_sentence_like_others(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("fr", "Il aime l'art. |C'est sa passion."),
        ("fr", "Il aime l'art. |L'artiste est là."),
        ("fr", "Il aime l'art. |C’est sa passion."),
        ("de", "Ich kaufe eine DVD. |Morgen sehen wir sie an."),
        ("de", "Ich kaufe eine CD. |Morgen hören wir sie."),
        ("pl", "Kupiłem DVD. |Jutro je obejrzymy."),
        ("pl", "Kupiłem CD. |Jutro je obejrzymy."),
        ("en", "I have no fax. |3 people do."),
        ("de", "Der Zug fährt ab. |20 Minuten später war er da."),
        ("de", "Der Zug fährt ab. |Tom war da."),
        ("de", "Das ist der erste Teil. |20 Minuten später war er da."),
        ("de", "Das ist ein Satz. |20 Leute lesen ihn."),
        ("pl", "Wszystko jest OK. |5 minut minęło."),
    ],
)
def test_a_word_of_french_a_disc_and_an_amount_are_no_numbers_of_the_sentence_in_front(
    language: str, expected: str
):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "Das ist ein Haus.|Tom wohnt dort."),
        ("en", "I like Tom.|Mary likes John."),
        ("en", "I use ASP.NET and Node.Js is good. |See Dr.Smith now."),
        ("en", "I use Asp.Net today and Amazon.De is fine."),
        ("de", "Ich wohne in der Schweiz.|Das gefällt mir."),
        ("en", "Call Math.floor and Vol.Two is here."),
        ("en", "It is in Min.Temp mode and St.Petersburg is far."),
    ],
)
def test_a_noun_and_a_name_without_a_space_are_two_sentences(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "ich bin müde. |geh weg! |wo bist du? |ich bin bei dr. meier in st. pauli."),
        ("de", "Wo bist du? |ich bin hier. |ich mag das. |du auch?"),
        ("de", "was? fragte er. |er kam am 5. mai ca. um drei... dann ging er."),
        ("de", "Die Frage „Was ist das? “ blieb. |Er kam ggf. später, usw. usf. so."),
        ("cs", "jsem tady. |ty jsi tam? |ano."),
        ("da", "jeg er her. |du er der! |ja."),
        ("fi", "olen täällä. |sinä olet siellä? |joo."),
        ("sk", "som tu. |ty si tam."),
        ("ca", "soc aquí. |tu no."),
        ("fr", "tu viens ? |non ! |pourquoi ? |— Oui ! s'écria-t-elle."),
        ("en", "are you here ? |yes ! |i saw st. vitus and co. in it."),
    ],
)
def test_sentences_of_a_text_in_lower_case_end(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "die firma müller gmbh & co. kg baut häuser . |sie baut gut ."),
        ("de", "das ist z . b . gut so . |es geht am 3 . mai los ."),
        ("de", "viele menschen sitzen bzw . stehen auf einer wiese ."),
        ("de", "der wagen des santa cruz fire dept. vor einem geschäft. |er ist rot."),
        ("de", "Hier bei Yahoo! hat man das gelesen. |Wo bist du? |ich bin hier."),
        ("cs", "mudr. novák a ing. svoboda přišli. |byli tam."),
        ("da", "det koster ti kr. pr. stk. og så videre. |han kom."),
        ("cs", "Kdo? ptal se. |Nikdo."),
        ("fi", "Mitä? hän kysyi. |Ei mitään."),
        ("en", "There are plans ? which ignore the risks. |Yes."),
        ("fr", "Un T-shirt où est écrit GRENOUILLE ! est posé ici."),
    ],
)
def test_a_sentence_in_lower_case_goes_on_behind_an_abbreviation_and_a_name(
    language: str, expected: str
):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "No. |I don't. |No. |Tom did. |Is it? |No. |It isn't."),
        ("en", "No. 5 is alive. |See No. V and the No. Ten."),
        ("it", "No. |Tom è qui."),
        ("en", "In the U.S. |It's big. |At Apple Inc. |We’re happy. |Vitamin C. |That's good."),
        ("en", "Mr. O'Brien's and J. O'Neill came."),
        ("de", "Sie wurde 3. |Du wurdest 12. |Mein Bruder kam am 3. Advent."),
        ("de", "Bücher, Hefte usw. |Jeder kann lesen."),
    ],
)
def test_answers_and_contracted_words_begin_sentences(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "He was gone… |The house was empty. |Well… I know… the end. |Why?… |Nobody knows…"),
        ("en", "“But…” |“No!” |… And so on. |Add (…) More. |He came … |Then he left."),
        (
            "ru",
            "Ну… |Я не знаю. |Ну... не знаю. |Что?.. |Нет. |Что?.. не знаю. |— Ну… — сказал он.",
        ),
        ("pl", "No... nie wiem. |Tak… |Potem poszli."),
        ("fr", "« Bon… » Il partit. |« Bon… » dit-il. |Euh… |Je ne sais pas."),
        ("es", "No sé… |¿Y tú? |Bueno… |—No."),
        ("de", "Er ging … |Dann kam sie. |Von A… bis Ende. |Er schwieg … |»Nein.«"),
        ("zh", "我不知道……他走了。"),
    ],
)
def test_an_ellipsis_of_one_character_ends_a_sentence_where_three_full_stops_do(
    language: str, expected: str
):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("ru", "— Куда ты? — спросил он. |— Домой. |— Что? |— Он встал."),
        ("pl", "– Idziesz? – zapytał. |– Nie! – krzyknęła. |– Tak."),
        ("pt", "— Vens? — quis saber ela. |— Não."),
        ("en", "are you sure? |– yes."),
    ],
)
def test_a_sentence_goes_on_behind_a_dash_with_who_utters_it(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "1. Mehl sieben. |2. Eier trennen. |3. Backen."),
        ("de", "1. |Das Mehl sieben! |2. |Die Eier trennen."),
        ("de", "So geht es: 1) Mehl sieben. |2) Backen."),
        ("da", "1. |Sigt melet. |2. |Del æggene."),
        ("de", "Am 1. Mai ist frei. 2. Mai nicht, 3) auch nicht."),
    ],
)
def test_items_of_a_list_in_one_line_are_sentences(language: str, expected: str):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "Siehe Abb. 3. |Sie zeigt das. |Dort steht Nr. 5. |Die Nr. 6 fehlt."),
        ("de", "Er wohnt in der Hauptstr. 5. |Sie auch."),
        ("ca", "Vegeu núm. 5. |És nou."),
    ],
)
def test_a_sentence_ends_behind_a_digit_that_an_abbreviation_belongs_to(
    language: str, expected: str
):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "Das ist gut. |20 Leute kamen. |Er starb 1945. |3 Jahre später kam sie."),
        ("de", "Wirklich? |20 Leute! |Um 17 Uhr. |15 Uhr ist zu früh. |2019 kam er."),
        ("de", "Goethestr. 5 ist da, jährl. 100 Euro, Okt. 2019, Mo. 12 Uhr, inkl. 20 Teile."),
        ("de", "Am 19. 20. und 21. Mai, 5. 12. 2019, Verl. 2010, Wien, Hausnr. 3 links."),
        ("da", "Hunden er stor. |20 mennesker kom. |Han kom d. 5. okt. 2019 kl. 5 og nr. 3 kom."),
        ("cs", "Pes je velký. |20 lidí přišlo. |Viz č. 5 dole, odst. 2 písm. 3 zákona."),
        ("sk", "Pes je veľký. |20 ľudí prišlo."),
        ("fi", "Koira on suuri. |20 ihmistä tuli. |Ks. s. 5 ja puh. 09 on."),
        ("ca", "El gos és gran. |20 persones van venir."),
        ("lb", "Den Hond ass grouss. |20 Leit koumen."),
        ("kk", "Ит үлкен. |20 адам келді."),
    ],
)
def test_a_sentence_may_begin_with_a_number_in_languages_that_need_capitals(
    language: str, expected: str
):
    assert_cut(expected, language)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "See 1 Cor. 13:4 and Rom. 8:28. |It says so. |Encl. 2 documents, apt. 5."),
        ("ru", "См. 1 Кор. 13:4. |Он род. 5 мая."),
        ("en", "He ran 100 m. |He won. |It took 5 s. |Then it stopped. |It is 5 m. long."),
        ("ru", "Высота 5 м. |Он упал."),
        ("fr", "En 1990 M. Le Pen parla. |Env. 5 pers. sont venues."),
        ("af", "Mnr. Botha het gekom. |Hy eet appels ens. |Sy wag."),
        ("hu", "Az 5. § (2) bek. b) pontja szerint igen."),
        ("pl", "J. Kowalski i in. zbadali to z dn. 5 maja. |Dnia 3 bm. odbyło się to."),
        ("bg", "Бул. „Витоша“ № 5, ет. 3, ап. 7."),
        ("sv", "Enl. 5 kap. gäller detta."),
        ("el", "Το άρθρ. 5 παρ. 2 εδ. β' ισχύει."),
        ("ro", "Str. Lungă nr. 5, sc. 2, ap. 3. |Tel. 123."),
        ("tr", "19. Yüzyılda oldu."),
    ],
)
def test_verses_units_and_parts_of_laws_and_addresses(language: str, expected: str):
    assert_cut(expected, language)
