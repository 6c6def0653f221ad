"""Scores count what a language calls words, and where BLEU cannot count another figure decides."""

import pytest

from pellucid.evaluation.metrics import METRICS
from pellucid.evaluation.scoring import decider, form_problems, rank, scoring_of, words_problem

PHRASES = ["good morning", "thank you", "the old house", "a red car", "to the station please"]
WORDS = ["house", "tree", "water", "bread", "river"]
NUMBERS = ["7", "42", "365", "1,024", "90210"]
CHINESE = [
    "我今天去学校。",
    "他们在公园里跑步。",
    "这本书很有意思。",
    "你好吗？",
    "她买了两个苹果。",
]
JAPANESE = [
    "今日は学校へ行きます。",
    "彼らは公園で走っています。",
    "この本はとても面白いです。",
    "お元気ですか。",
    "彼女はりんごを二つ買いました。",
]
KOREAN = ["저는 오늘 학교에 갑니다.", "공원에서 달립니다.", "이 책은 재미있습니다.", "안녕하세요?"]
THAI = ["วันนี้ฉันไปโรงเรียน", "พวกเขาวิ่งในสวนสาธารณะ", "หนังสือเล่มนี้น่าสนใจมาก", "สบายดีไหม"]
LAO = ["ມື້ນີ້ຂ້ອຍໄປໂຮງຮຽນ", "ສະບາຍດີບໍ່", "ປຶ້ມນີ້ໜ້າສົນໃຈຫຼາຍ"]
KHMER = ["ថ្ងៃនេះខ្ញុំទៅសាលារៀន", "សុខសប្បាយទេ", "សៀវភៅនេះគួរឱ្យចាប់អារម្មណ៍"]
BURMESE = ["ဒီနေ့ကျွန်တော်ကျောင်းသွားတယ်", "နေကောင်းလား", "ဒီစာအုပ်ကစိတ်ဝင်စားစရာကောင်းတယ်"]
TIBETAN = ["དེ་རིང་ང་སློབ་གྲྭར་འགྲོ་གི་ཡིན།", "ཁྱེད་རང་སྐུ་གཟུགས་བདེ་པོ་ཡིན་པས།"]
CHINESE_OF_PROGRAMS = [
    "在 Kubernetes 集群中部署 Prometheus。",
    "使用 docker compose 启动 PostgreSQL。",
]
ENGLISH = ["A dog runs on the beach.", "The 小 shop sells tea and bread.", "Two men talk."]


@pytest.mark.parametrize(
    ("references", "language", "tokenize", "figure"),
    [
        (PHRASES, "en", "13a", "chrf"),
        (WORDS, "en", "13a", "chrf"),
        (WORDS, None, "13a", "chrf"),
        (NUMBERS, "zh", "zh", "chrf"),
        (NUMBERS, None, "13a", "chrf"),
        (CHINESE, "zh", "zh", "bleu"),
        (CHINESE, "zh_TW", "zh", "bleu"),
        (CHINESE, "yue", "zh", "bleu"),
        (CHINESE, None, "zh", "bleu"),
        (CHINESE, "en", "zh", "bleu"),  # the name of the file is wrong, its letters are not
        (CHINESE_OF_PROGRAMS, None, "zh", "bleu"),  # most letters are Latin
        (JAPANESE, "ja", "ja-mecab", "bleu"),
        (JAPANESE, "und", "ja-mecab", "bleu"),
        (KOREAN, "kor", "ko-mecab", "bleu"),
        (KOREAN, None, "ko-mecab", "bleu"),
        (THAI, "th", "char", "bleu"),
        (LAO, "lo", "char", "bleu"),
        (KHMER, None, "char", "bleu"),
        (BURMESE, "my", "char", "bleu"),
        (TIBETAN, None, "char", "bleu"),
        (ENGLISH, "en", "13a", "bleu"),
        (ENGLISH, None, "13a", "bleu"),
    ],
)
def test_the_figure_that_decides_gives_a_perfect_model_100_and_babble_less(
    references: list[str], language: str | None, tokenize: str, figure: str
):
    accepted = [[line] for line in references]
    scoring = scoring_of(accepted, language)
    found = decider("bleu", accepted, scoring)
    assert (scoring.tokenize, found.name) == (tokenize, figure)

    def score(hypotheses: list[str]) -> float:
        scored = METRICS[found.name].score(scoring.output(hypotheses, accepted))
        assert scored is not None
        return scored.score

    # Every line, one after the other: it has all n-grams of all references, and nothing right.
    babble = [" ".join(references)] * len(references)
    assert score(references) == pytest.approx(100.0)
    assert score(babble) < 70
    assert score([references[-1], *references[:-1]]) < 70


def test_why_another_figure_decides_is_said():
    accepted = [[line] for line in PHRASES]
    found = decider("bleu", accepted, scoring_of(accepted))
    assert found.why == (
        "BLEU cannot count: it needs references of four words (tok:13a), which 1 of 5 have"
    )
    assert decider("exact_match", accepted, scoring_of(accepted)).name == "exact_match"
    assert decider("loss", accepted, scoring_of(accepted)).name == "loss"


def test_figures_decide_in_order_and_all_are_better_when_higher():
    figures = {"loss": 2.5, "bleu": 0.0, "chrf": 30.0, "exact_match": 1.0}
    assert rank(figures, "bleu") == [0.0, 30.0, 1.0, -2.5]
    assert rank(figures, "exact_match") == [1.0, 30.0, -2.5]
    assert rank(figures, "loss") == [-2.5, 30.0, 1.0]
    assert rank({"loss": 2.5}, "loss") == [-2.5]


SAID = [f"It's {thing}, isn't it?" for thing in ("red", "new", "late", "open", "far", "cold")]


@pytest.mark.parametrize(
    ("references", "translations", "problems"),
    [
        (SAID, SAID, []),
        ([line.lower() for line in SAID], SAID, ["in lower case"]),
        ([line.upper() for line in SAID], SAID, ["in capitals"]),
        (SAID, [line.lower() for line in SAID], ["in upper and lower case"]),
        ([line.replace("'", "’") for line in SAID], SAID, ["have ’ where the translations have '"]),
        (SAID, [line.replace("'", "’") for line in SAID], ["have ' where the translations have ’"]),
        (
            [f"{line}，" for line in KOREAN * 2],
            [f"{line}," for line in KOREAN * 2],
            ["have ， where"],
        ),
        (SAID, [line.replace("'", "’") for line in SAID[:3]] + SAID[3:], []),  # some of both
        (SAID[:4], [line.lower() for line in SAID[:4]], []),  # few lines
    ],
)
def test_references_in_another_form_than_the_translations_are_said(
    references: list[str], translations: list[str], problems: list[str]
):
    sides = {"translations": translations, "references": references}
    found = form_problems(sides, scoring_of([[line] for line in references]))
    assert len(found) == len(problems)
    assert all(part in each for part, each in zip(problems, found, strict=True))


def test_figures_that_count_words_say_little_of_scripts_without_spaces():
    assert "ter, chrfpp and bleu_lc_tok count words" in words_problem([[line] for line in CHINESE])
    assert words_problem([[line] for line in THAI])
    assert words_problem([[line] for line in JAPANESE])
    segmented = ["我 今天 去 学校 。", "他们 在 公园 里 跑步 。"]
    for spaced in (ENGLISH, KOREAN, segmented):
        assert words_problem([[line] for line in spaced]) == ""
