"""A report is one file that asks for nothing and takes words for words, whatever they look like."""

import dataclasses
import html.parser
import json
import math
import posixpath
import re
from pathlib import Path

import pytest
from opened_reports import SOURCE, TARGET, data_of, random_bundle
from tiny_models import tiny_bundle

import pellucid
from pellucid.bundle import Bundle, load_bundle
from pellucid.core.errors import ConfigError, PellucidError, WriteError
from pellucid.equations.positions import tensor2tensor_positions
from pellucid.inspection.capture import Capture, inspect
from pellucid.inspection.plain import json_line, plain_capture
from pellucid.inspection.report.content import report_content
from pellucid.inspection.report.edge_steps import embedding_steps
from pellucid.inspection.report.page import (
    POLICY,
    SCRIPTS,
    embed_json,
    make_report,
    read_asset,
    render_page,
    write_report,
)
from pellucid.model.config import TransformerConfig

HOSTILE = "</script><img src=x onerror=alert(1)> & <!-- ]]> \u2028 'le' \"chat\""


@pytest.fixture(scope="module")
def bundle(tiny_run: Path) -> Bundle:
    return load_bundle(tiny_run)


class Tags(html.parser.HTMLParser):
    """What an HTML parser sees."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_model_that_gives_nan_is_named_as_the_reason(bundle: Bundle, value: float):
    broken = random_bundle(bundle)
    broken.model.output_weight.data[7, 0] = value
    capture = inspect(broken, SOURCE, TARGET)
    with pytest.raises(PellucidError) as caught:
        report_content(capture, broken.model)
    assert str(caught.value).startswith(
        "a report needs a model that gives each token a probability, got NaN"
    )
    # where the NaN begins is what a capture is for
    assert capture["decoder.output"].isfinite().all()
    assert None in json.loads(json_line(plain_capture(capture, with_values=True)))["confidences"]


def test_hostile_words_stay_words(bundle: Bundle):
    page = make_report(bundle, HOSTILE, HOSTILE)
    plain = make_report(bundle, SOURCE, TARGET)
    assert Tags(page).tags == Tags(plain).tags
    content = data_of(page)
    assert content["sentence"]["source"] == HOSTILE
    assert content["sentence"]["target"] == HOSTILE


def test_a_hostile_vocabulary_stays_text(bundle: Bundle):
    capture = inspect(bundle, SOURCE, TARGET)
    content = report_content(capture, bundle.model)
    content["words"]["candidates"][0] = HOSTILE
    content["predictions"][0][0][0] = HOSTILE
    page = render_page(content)
    assert Tags(page).tags.count("img") == 0
    assert data_of(page)["words"]["candidates"][0] == HOSTILE


@pytest.mark.parametrize(
    ("source", "target"),
    [("", None), ("  ", None), (SOURCE, ""), ("", ""), ("?", None), ("🙂", None)],
)
def test_a_side_without_words_has_a_report_too(bundle: Bundle, source: str, target: str | None):
    content = data_of(make_report(bundle, source, target))
    assert content["sentence"]["source"] == source
    assert len(content["pages"]) == 15
    assert content["search"] is None
    assert content["ranks"] == [] or content["sentence"]["target"]


def test_a_model_that_chooses_after_the_search_has_a_report_without_its_tree(bundle: Bundle):
    settings = {**bundle.settings, "decoding": {"coverage_penalty": 0.2}}
    changed = dataclasses.replace(bundle, settings=settings)
    assert data_of(make_report(changed, SOURCE))["search"] is None


def test_json_holds_no_character_that_markup_needs():
    embedded = embed_json({"word": HOSTILE})
    assert not set(embedded) & set("<>&\u2028\u2029")


def test_the_page_names_no_address_but_those_of_namespaces(bundle: Bundle):
    page = make_report(bundle, SOURCE, TARGET)
    assert set(re.findall(r"\w+://[^\s\"'`]+", page)) == {
        "http://www.w3.org/1998/Math/MathML",
        "http://www.w3.org/2000/svg",
    }
    found = Tags(page)
    assert not {"link", "img", "iframe", "object", "base", "form"} & set(found.tags)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in found.attributes}
    assert ("content", POLICY) in found.attributes


FORBIDDEN_WORDS = (
    "innerHTML",
    "outerHTML",
    "insertAdjacent",
    "document.write",
    "eval(",
    "fetch(",
    "XMLHttpRequest",
    "WebSocket",
    "localStorage",
    'setAttribute("style',
)


def test_the_scripts_never_read_markup_nor_ask_for_anything():
    for name in SCRIPTS:
        text = read_asset(name)
        assert not [word for word in FORBIDDEN_WORDS if word in text], name


def test_each_script_comes_after_those_it_imports():
    seen: set[str] = set()
    for name in SCRIPTS:
        imported = re.findall(r'^import .* from "(\.\.?/.*)";$', read_asset(name), re.MULTILINE)
        here = "/static/ui/" if name.startswith("ui/") else "/static/report/"
        imports = [posixpath.normpath(here + each).removeprefix("/static/") for each in imported]
        imports = [each.removeprefix("report/") for each in imports]
        assert len(imports) == len(re.findall(r"^import", read_asset(name), re.MULTILINE)), name
        assert set(imports) <= seen, name
        seen.add(name)


def test_the_modules_share_no_name():
    """In the file all modules are one; two things of one name would be an error there."""
    names: list[str] = []
    for name in SCRIPTS:
        pattern = r"^(?:export )?(?:function|const|let|class) (\w+)"
        names += re.findall(pattern, read_asset(name), re.MULTILINE)
    assert len(names) == len(set(names)), sorted(each for each in names if names.count(each) > 1)


def test_a_capture_takes_no_other_sentence(tmp_path: Path):
    capture = inspect(tiny_bundle(), "a b", "c")
    for other in ({"source": "b c"}, {"target": "d"}):
        with pytest.raises(ConfigError, match="a capture has a sentence of its own"):
            write_report(capture, tmp_path / "r.html", **other)
    assert not (tmp_path / "r.html").exists()


def test_a_written_report_is_that_of_the_model_or_of_a_saved_capture(
    bundle: Bundle, tmp_path: Path
):
    write_report(bundle, tmp_path / "report.html", SOURCE, TARGET)
    written = (tmp_path / "report.html").read_text("utf-8")
    assert written == make_report(bundle, SOURCE, TARGET)
    inspect(bundle, SOURCE, TARGET).save(tmp_path / "kept.safetensors")
    write_report(Capture.load(tmp_path / "kept.safetensors"), tmp_path / "second.html")
    again = data_of((tmp_path / "second.html").read_text("utf-8"))
    first = data_of(written)
    name = "decoder.layers.0.cross_attention.heads.1.weights"
    assert again["matrices"][name] == first["matrices"][name]


def test_a_report_that_cannot_be_written_is_told(bundle: Bundle, tmp_path: Path):
    with pytest.raises(WriteError, match=r"^cannot write .*nowhere/report\.html: "):
        write_report(bundle, tmp_path / "nowhere" / "report.html", SOURCE, TARGET)


def test_a_base_model_and_twenty_words_stay_under_five_megabytes(bundle: Bundle):
    """The paper's base sizes: eight heads of 64, 512 wide, 2,048 hidden, six and six blocks."""
    base = random_bundle(
        bundle, d_model=512, d_ff=2048, heads=8, encoder_layers=6, decoder_layers=6
    )
    words = " ".join((SOURCE.split() * 4)[:20])
    page = render_page(report_content(inspect(base, words, words), base.model))
    assert len(page.encode()) < 4_900_000  # the rest is for the views at a glance
    assert "shown in part" in data_of(page)["cut"]


def test_the_report_and_the_server_s_page_share_their_colors():
    """Each color has its name in ui.css and nowhere else; walk.css puts the report on a surface."""
    package = Path(pellucid.__file__).parent
    sheets = [
        *(package / "serve" / "page").glob("*.css"),
        package / "inspection/report/assets/report.css",
    ]
    shared = set(re.findall(r"^ +(--[\w-]+):", read_asset("ui/ui.css"), re.MULTILINE))
    assert {"--page", "--surface", "--ink", "--accent", "--hatch"} <= shared
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        own = set(re.findall(r"(--[\w-]+):", text))
        assert own & shared == ({"--page"} if sheet.name == "walk.css" else set()), sheet.name
        used = set(re.findall(r"var\((--[\w-]+)", text))
        given = {"--part", "--share", "--cell-width", "--cell-height", "--columns"}
        assert used <= shared | own | given, sheet.name


def test_every_equation_of_a_report_opens_a_function_with_its_formula(bundle: Bundle):
    content = report_content(inspect(bundle, SOURCE, TARGET), bundle.model)
    entries = content["entries"]
    assert len(entries) > 20
    assert [number for number, entry in entries.items() if not entry["formula"]] == []
    assert not any(".fused" in entry["function"] for entry in entries.values())


def test_pages_say_of_a_model_what_is_true_of_it():
    def said(variant: str) -> str:
        tiny = tiny_bundle(variant)
        return str(report_content(inspect(tiny, "a b", "c d"), tiny.model))

    outweigh, at_once = "would otherwise outweigh them", "All positions are computed at once"
    position = "becomes a vector with its position"
    paper, rotary, recurrent = said("paper"), said("rotary"), said("reversed, fed the summary")
    for sentence in (outweigh, at_once, position):
        assert sentence in paper
    assert "Without positions the encoder could not tell" in paper  # a decoder's mask tells
    for sentence in (outweigh, position):
        assert sentence not in rotary
    for sentence in (outweigh, at_once, position):
        assert sentence not in recurrent
    assert "Source reversed" in recurrent


@pytest.mark.parametrize(("width", "divisor"), [(14, 2), (15, 3)])
def test_the_formula_of_positions_divides_as_the_page_computes(width: int, divisor: int):
    """Of 15 features 7 pairs have wavelengths, and 10000^(2i/(d - 3)) ends at 10000."""
    config = TransformerConfig(d_model=width, heads=1, positions="sinusoidal_t2t")
    [step] = [each for each in embedding_steps("encoder", config, 9) if each.name == "positions"]
    assert step.how["width"] == width - divisor
    assert ("['mn', {}, '3']" in str(step.formula)) == (divisor == 3)

    expected = tensor2tensor_positions(8, width)
    for row, column in ((1, 0), (7, 3), (5, 13)):
        angle = row / 10000 ** ((column - column % 2) / step.how["width"])
        found = math.cos(angle) if column % 2 else math.sin(angle)
        assert expected[row, column].item() == pytest.approx(found, abs=1e-5)
