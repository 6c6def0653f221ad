"""Size, speed, memory and agreement of exported pages, in Chromium.

    python benchmarks/web_speed.py --model multi30k runs/30k val.en --model demo runs/demo lines.fr

takes models as a name, a bundle and lines to translate. For each kind of weights the bundle is
exported and the file opened --opened times, each time in a browser of its own, after once that does
not count. ``first_answer`` is the time from the start of loading to the translation of the file's
example, of which the median is kept, and ``megabytes`` what the tab's process alone holds when the
explorer is painted; an empty tab's is given for comparison. Then words of the text are deleted, one
after another, through the page's own field: ``repaint`` is the time from the event of an edit to
the frame in which the explorer shows the new sentence in all its pictures, the median of these.

In a tab of its own the engine then translates --lines lines, with alignments: one at a time
(``greedy``, ``beam 4``), and with their searches side by side (``greedy, together``), as the page
does with the sentences of a text. Tokens count the stops. The same lines are translated in Python,
and the texts compared. Other programs on a machine disturb the wall clock: the processor time of
the tab's process stands beside it. A table for docs/web.md is printed at the end.
"""

import argparse
import base64
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
from playwright.sync_api import Browser, Page, sync_playwright

from pellucid.backends.web.content import web_content
from pellucid.backends.web.export import make_page
from pellucid.backends.web.weights import WEIGHTS_TYPES
from pellucid.bundle import Bundle, load_bundle
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator

_TICKS = os.sysconf("SC_CLK_TCK")
_WARM_UP = 20
"""Lines translated before the clock starts: a browser compiles what it has run a few times."""

_EDITS = 12
"""Edits of the text whose repaints are timed."""

_OPEN = """
async ([header, weights]) => {
  const address = `data:application/octet-stream;base64,${weights}`;
  const bytes = new Uint8Array(await (await fetch(address)).arrayBuffer());
  const start = performance.now();
  globalThis.model = PellucidEngine.openModel(header, bytes);
  return performance.now() - start;
}
"""
_TRANSLATE = """
([lines, options, isTogether]) => {
  const start = performance.now();
  const said = isTogether
    ? model.translateLines(lines, options)
    : lines.map((line) => model.translate(line, options));
  const seconds = (performance.now() - start) / 1000;
  const tokens = said.reduce((sum, { ids }) => sum + ids.length + 1, 0);
  return { texts: said.map(({ text }) => text), tokens, seconds };
}
"""
_RUN = """
([line, options]) => {
  const target = model.translate(line, options).ids;
  const source = model.readSource(line).ids;
  const times = Array.from({ length: 9 }, () => {
    const start = performance.now();
    model.run({ source, target });
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b)[4];
}
"""
_EDIT = """
async (text) => {
  const field = document.getElementById("source");
  const place = document.querySelector("#explorer .place");
  const words = place.querySelector(".words");
  const before = words.dataset.words;
  const isBusy = () => place.getAttribute("aria-busy") === "true";
  const isPainted = () => words.dataset.words !== before && !isBusy();
  const start = performance.now();
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  await new Promise((resolve) => {
    // told when it happens: asking at every frame would make frames that nobody else needs
    const observer = new MutationObserver(() => isPainted() && resolve(observer.disconnect()));
    observer.observe(place, { attributeFilter: ["aria-busy"] });
  });
  await new Promise((resolve) => requestAnimationFrame(resolve)); // in which the ribbons are drawn
  await new Promise((resolve) => setTimeout(resolve)); // after it was drawn
  return performance.now() - start;
}
"""
_SEARCHES: dict[str, tuple[DecodingConfig, bool]] = {
    "greedy": (DecodingConfig(beam_size=1), False),
    "greedy, together": (DecodingConfig(beam_size=1), True),
    "beam 4": (DecodingConfig(beam_size=4), False),
}
"""What is measured: a search, and whether those of several lines go on side by side."""


def main() -> None:
    options = _parse_options()
    path = shutil.which("chromium") or shutil.which("google-chrome")
    results: dict[str, Any] = {"command": machine.command(), "machine": machine.describe()}
    results["models"] = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:

        def launch() -> Browser:
            return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])

        browser = launch()
        results["chromium"] = browser.version
        results["empty_tab_megabytes"] = _empty_tab(browser)
        browser.close()
        for name, run, source in options.model:
            bundle = load_bundle(run)
            lines = Path(source).read_text(encoding="utf-8").splitlines()[: options.lines]
            found: dict[str, Any] = {
                "summary": bundle.config.summary(),
                "parameters": bundle.parameter_count,
                "vocabulary": bundle.target_tokenizer.vocabulary_size,
                "lines": len(lines),
            }
            results["models"][name] = found
            expected = {
                search: [each.text for each in Translator(bundle, settings).translate(lines)]
                for search, (settings, _) in _SEARCHES.items()
            }
            for weights in options.weights or WEIGHTS_TYPES:
                file = Path(folder, f"{weights}.html")
                file.write_text(make_page(bundle, weights, example=lines[0]), encoding="utf-8")
                # once for the operating system's sake: a file and a browser come from a disk first
                opened = [_open(launch, file) for _ in range(options.opened)][1:]
                # a browser of its own for each, so that one renderer is the tab's
                browser = launch()
                found[weights] = _measure(browser, bundle, file, weights, lines, expected, opened)
                browser.close()
                print(json.dumps({name: {weights: found[weights]}}, indent=2))
    options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(_table(results["models"]))


def _table(models: dict[str, Any]) -> str:
    head = [
        "model, weights",
        "file",
        "first answer (clock; processor)",
        "memory of the tab",
        "greedy tokens/s, a line at a time (clock; processor)",
        "lines together",
        "beam of 4",
        "repaint (clock; processor)",
        "greedy texts as in Python",
    ]
    rows = [head, ["---"] * len(head)]
    for name, model in models.items():
        for weights in WEIGHTS_TYPES:
            if weights not in model:
                continue
            found = model[weights]
            speeds = [
                f"{found[search]['tokens_per_second']:,};"
                f" {found[search]['tokens_per_processor_second']:,}"
                for search in _SEARCHES
            ]
            rows.append(
                [
                    f"{name}, {weights}",
                    f"{found['file_megabytes']} MB",
                    f"{found['first_answer_seconds']} s;"
                    f" {found['first_answer_processor_seconds']} s",
                    f"{found['megabytes']:.0f} MB",
                    *speeds,
                    f"{found['repaint_milliseconds']:.0f} ms;"
                    f" {found['repaint_processor_milliseconds']:.0f} ms",
                    found["greedy"]["texts_as_in_python"],
                ]
            )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _open(launch: Callable[[], Browser], file: Path) -> float:
    browser = launch()
    seconds = _first_answer(browser.new_page(), file)
    browser.close()
    return seconds


def _first_answer(page: Page, file: Path) -> float:
    before = time.monotonic()
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector("#target .word")
    return time.monotonic() - before


def _empty_tab(browser: Browser) -> float:
    page = browser.new_page()
    page.set_content("<p>nothing</p>")
    own = _private_megabytes(_renderer(browser))
    page.close()
    return own


def _measure(
    browser: Browser,
    bundle: Bundle,
    file: Path,
    weights: Any,
    lines: list[str],
    expected: dict[str, list[str]],
    opened: list[float],
) -> dict[str, Any]:
    page = browser.new_page()
    first_answers = [*opened, _first_answer(page, file)]
    process = _renderer(browser)
    first_processor = _processor_seconds(process)  # and a moment more: the views are mounted next
    page.wait_for_selector("html[data-ready]")
    page.locator("#explorer").scroll_into_view_if_needed()
    page.wait_for_selector("#explorer .place[aria-busy=false]")
    page.wait_for_timeout(1000)
    found: dict[str, Any] = {
        "file_megabytes": round(file.stat().st_size / 1e6, 2),
        "first_answer_seconds": round(statistics.median(first_answers), 2),
        "first_answers_seconds": [round(each, 2) for each in first_answers],
        "first_answer_processor_seconds": round(first_processor, 2),
        "megabytes": _private_megabytes(process),
    }
    processor = _processor_seconds(process)
    repaints = [page.evaluate(_EDIT, text) for text in _edits(lines)]
    processor = _processor_seconds(process) - processor
    found["repaint_milliseconds"] = round(statistics.median(repaints), 1)
    found["repaint_processor_milliseconds"] = round(1000 * processor / len(repaints), 1)
    found["repaints_milliseconds"] = [round(each, 1) for each in repaints]

    found["open_milliseconds"] = round(_open_engine(page, bundle, weights), 1)
    for name, (settings, is_together) in _SEARCHES.items():
        # these settings, whatever the bundle's own are
        kept = ("beam_size", "length_penalty", "length_penalty_kind", "patience")
        asked = {each: getattr(settings, each) for each in kept}
        page.evaluate(_TRANSLATE, [lines[:_WARM_UP], asked, is_together])
        processor = _processor_seconds(process)
        said = page.evaluate(_TRANSLATE, [lines, asked, is_together])
        processor = _processor_seconds(process) - processor
        equal = sum(a == b for a, b in zip(said["texts"], expected[name], strict=True))
        found[name] = {
            "tokens": said["tokens"],
            "tokens_per_second": round(said["tokens"] / said["seconds"]),
            "tokens_per_processor_second": round(said["tokens"] / processor),
            "texts_as_in_python": f"{equal} of {len(lines)}",
        }
    found["run_with_all_intermediates_milliseconds"] = round(
        page.evaluate(_RUN, [lines[0], {"beam_size": 1}]), 1
    )
    page.close()
    return found


def _edits(lines: list[str]) -> list[str]:
    """Texts of which each is the one before without its last word, after some other line."""
    texts = []
    for line in lines[1:]:
        words = line.split()
        texts += [" ".join(words[:-dropped] or words) for dropped in range(4)]
    return list(dict.fromkeys(texts))[:_EDITS]


def _open_engine(page: Page, bundle: Bundle, weights: Any) -> float:
    """The same model in a tab without a page around it, which holds the engine's text."""
    script = page.locator("#pellucid-engine").text_content()
    content = web_content(bundle, "a model", weights)
    page.goto("about:blank")
    page.add_script_tag(content=f"{script}globalThis.PellucidEngine = PellucidEngine;")
    packed = base64.b64encode(content.weights).decode()
    milliseconds: float = page.evaluate(_OPEN, [content.header, packed])
    return milliseconds


def _renderer(browser: Browser) -> int:
    """The process of the tab: the renderer of this Chromium that holds most memory."""
    assert browser.is_connected()
    for _ in range(40):
        found = [(_private_megabytes(each), each) for each in _renderers()]
        if found:
            return max(found)[1]
        time.sleep(0.5)  # a process gets its name some time after its start
    raise RuntimeError("Chromium has no renderer")


def _renderers() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            title = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            is_tab = b"--type=renderer" in title and b"--top-chrome" not in title
            if is_tab and _descends(int(entry.name), os.getpid()):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended
    return found


def _descends(process: int, ancestor: int) -> bool:
    while process > 1:
        if process == ancestor:
            return True
        stat = Path(f"/proc/{process}/stat").read_text()
        process = int(stat.rpartition(")")[2].split()[1])
    return False


def _private_megabytes(process: int) -> float:
    """What this process alone holds: pages that no other one shares."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    private = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return round(sum(private) * 1024 / 1e6, 1)


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model", nargs=3, action="append", required=True, metavar=("NAME", "BUNDLE", "LINES")
    )
    parser.add_argument("--lines", type=int, default=250, help="Lines to translate.")
    parser.add_argument("--opened", type=int, default=3, help="How often a file is opened.")
    parser.add_argument("--weights", action="append", choices=WEIGHTS_TYPES)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results" / "web_speed.json"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
