"""A document on the page: chosen, translated with its progress, saved; a bad one has a reason."""

import re
from importlib import resources

import pytest
from playwright.sync_api import expect

from pellucid.documents.names import ENDINGS

NOT_OFFERED = {"csv", "tsv"}


def test_the_dialog_offers_every_ending_but_those_of_tables():
    """A table needs the names of its columns, which the page does not ask for."""
    page = resources.files("pellucid.serve.page").joinpath("index.html").read_text("utf-8")
    [offered] = re.findall(r'id="document-file"[^>]*accept="([^"]*)"', page)
    assert sorted(offered.split(",")) == sorted(f".{each}" for each in ENDINGS.keys() - NOT_OFFERED)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chosen_document_is_translated_and_saved(visit, tmp_path, scheme):
    from test_page_looks import violations

    page = visit(
        color_scheme=scheme, viewport={"width": 375, "height": 700}, accept_downloads=True
    ).page
    expect(page.locator("#model")).to_be_enabled()
    file = tmp_path / "letter.html"
    file.write_text("<p>un <b>chat</b></p>\n<p>un chien</p>\n", encoding="utf-8")
    page.set_input_files("#document-file", file)
    expect(page.locator("#document-state")).to_contain_text("letter.html is translated.")
    assert violations(page, scheme) == []
    wide, seen = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= seen

    with page.expect_download() as saved:
        page.click("#document-save")
    assert saved.value.suggested_filename.startswith("letter.")
    text = saved.value.path().read_text(encoding="utf-8")
    assert text.count("<b>") == text.count("</b>") == 1
    assert text.count("<p>") == 2


def test_the_terms_of_a_chosen_glossary_are_in_text_and_document(visit, tmp_path):
    page = visit(accept_downloads=True).page
    expect(page.locator("#model")).to_be_enabled()
    expect(page.get_by_label("Terms").locator("option")).to_have_text(["none", "cats"])
    page.get_by_label("Terms").select_option("cats")
    page.fill("#source", "le chat dort")
    has_term = re.compile(r"\b([Tt]rain|[Tt]able)\b")
    expect(page.locator("#target")).to_have_text(has_term)

    file = tmp_path / "letter.html"
    file.write_text("<p>le chat dort</p>\n", encoding="utf-8")
    page.set_input_files("#document-file", file)
    expect(page.locator("#document-state")).to_contain_text("letter.html is translated.")
    with page.expect_download() as saved:
        page.click("#document-save")
    assert has_term.search(saved.value.path().read_text(encoding="utf-8"))


def test_a_document_that_cannot_be_read_is_named_with_the_reason(visit, tmp_path):
    page = visit().page
    expect(page.locator("#model")).to_be_enabled()
    file = tmp_path / "broken.docx"
    file.write_bytes(b"no zip")
    page.set_input_files("#document-file", file)
    expect(page.locator("#document-state")).to_contain_text("broken.docx could not be translated")
    expect(page.locator("#document-save")).to_be_hidden()


def test_progress_is_asked_again_while_the_server_is_away(visit, tmp_path):
    page = visit(accept_downloads=True).page
    expect(page.locator("#model")).to_be_enabled()
    file = tmp_path / "letter.html"
    file.write_text("<p>un chat</p>\n", encoding="utf-8")
    failed = []

    def fail_once(route):
        if failed or route.request.method != "GET":
            route.continue_()
        else:
            failed.append(route.request.url)
            route.abort()

    page.route("**/v1/documents/*", fail_once)
    page.set_input_files("#document-file", file)
    expect(page.locator("#document-state")).to_contain_text("letter.html is translated.")
    assert failed
    # nor does a file that could not be fetched take the button away
    page.route("**/file", lambda route: route.abort())
    page.click("#document-save")
    expect(page.locator("#document-state")).to_contain_text("cannot be reached")
    expect(page.locator("#document-save")).to_be_visible()


def test_cancelling_an_upload_ends_it(visit, tmp_path):
    page = visit().page
    expect(page.locator("#model")).to_be_enabled()
    file = tmp_path / "letter.html"
    file.write_text("<p>un chat</p>\n", encoding="utf-8")
    ended = []
    page.on("requestfailed", lambda request: ended.append(request.method))
    page.route("**/v1/documents", lambda route: None)  # never answered
    page.set_input_files("#document-file", file)
    expect(page.locator("#document-state")).to_have_text("Uploading letter.html")
    page.click("#document-stop")
    expect(page.locator("#document-state")).to_be_hidden()
    page.wait_for_timeout(100)
    assert ended == ["POST"]
