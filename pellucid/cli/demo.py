"""``pellucid demo``: generates a corpus, trains on it, translates, and draws the attention."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pellucid.cli.options import PATH, FiniteRange

if TYPE_CHECKING:
    from pellucid.decoding.translator import Translator
    from pellucid.phrasebook.corpus import Pair
    from pellucid.training.config import RunConfig

FAMOUS_SENTENCE = "Je suis étudiant."
"""The worked example of the Single Page (EQ-122); it is never trained on."""
SHOWN_SENTENCES = (
    FAMOUS_SENTENCE,
    "Bonjour Marie !",
    "je vois un chat noir dans le jardin",
    "Où est la gare ?",
    "J\u2019ai faim.",
)
"""Sentences that people type first, as they type them."""
ENOUGH = 95.0
"""Percent of held-out sentences that must come out exactly right."""
_SHOWN = 6
_MINUTES = 30.0
"""Ten times what two quiet cores need: the clock is there for machines that are far too busy."""
_TIME_IS_UP = "demo_minutes"


@click.command()
@click.option(
    "-o",
    "--out",
    type=PATH,
    default=Path("runs/demo"),
    help="Run folder.  [default: runs/demo]",
)
@click.option(
    "--minutes",
    type=FiniteRange(min=0, min_open=True),
    default=_MINUTES,
    help="Stop training after so many minutes, to go on another time.  [default: 30]",
)
@click.pass_obj
def demo(obj: dict[str, bool], out: Path, minutes: float) -> int:
    """Train a small French-English Transformer in some minutes and watch it translate.

    Needs no files and no network: the sentences come from a grammar inside Pellucid. It ends when
    its updates are made, some three minutes on two cores with nothing else to do. A demo that was
    stopped, or that did not get so far in --minutes, goes on where it was; one that is finished
    is shown again. Exit code 1 if fewer than 95% of the held-out sentences are right.
    """
    from pellucid.cli.display import Display

    with Display(quiet=obj["quiet"]) as display:
        display.begin("loading PyTorch")  # before the import, which takes seconds
        from pellucid.cli.display import EXIT_CODES, StopRequests
        from pellucid.core.run_names import CONFIG_FILE
        from pellucid.training.presets import read_config
        from pellucid.training.train import train

        config = read_config("demo")
        # A finished run is shown again; a new one must not warn that it finds no checkpoint.
        resume = (out / CONFIG_FILE).exists()
        with StopRequests() as asked:
            stop = display.counting(config, _until(asked, minutes))
            result = train(config, out, resume=resume, listener=display.hear, should_stop=stop)

    if result.reason in EXIT_CODES:
        click.echo("saved; run the same command again to go on", err=True)
        return EXIT_CODES[result.reason]

    steps, planned = result.progress.step, config.training.max_steps
    if result.reason == _TIME_IS_UP:
        click.echo(
            f"{steps:,} of {planned:,} updates were made in --minutes {minutes:g}: this machine is"
            " slow or busy. Run the same command again to go on",
            err=True,
        )
        if result.progress.validated_step == 0:
            return 1
    exact = _show(config, out, result.progress.seconds, quiet=obj["quiet"])

    if exact >= ENOUGH:
        return 0
    if result.reason != _TIME_IS_UP:
        click.echo(
            f"{exact:.1f}% are exactly right, where {ENOUGH:g}% were expected: please report it",
            err=True,
        )
    return 1


def _until(asked: Callable[[], str | None], minutes: float) -> Callable[[], str | None]:
    """``asked``, called before each update: it may end training, and so does the clock.

    Each call also chooses the number of threads, which a demo can do as it need not be repeatable.
    """
    import torch

    from pellucid.training.threads import FastestThreads

    threads = FastestThreads(torch.get_num_threads())
    ends = math.inf

    def stop() -> str | None:
        nonlocal ends
        if ends == math.inf:
            ends = time.monotonic() + 60.0 * minutes  # from the first update on
        threads.before_update()
        return asked() or (_TIME_IS_UP if time.monotonic() >= ends else None)

    return stop


def _show(config: "RunConfig", out: Path, seconds: float, *, quiet: bool) -> float:
    """Translate, write the figures, and draw; returns how many percent are exactly right."""
    from pellucid import phrasebook
    from pellucid.backends.load import load
    from pellucid.cli.display import Display, next_commands
    from pellucid.core.files import write_file

    wanted = config.phrasebook
    with Display(quiet=quiet) as display:
        display.begin(f"translating {wanted.held_out:,} sentences it has never seen")
        # The corpus is generated again: the seed gives the same split as in training.
        held_out = phrasebook.split(0, wanted.held_out, wanted.seed, wanted.style).test
        # The figures of the demo are those of our own search, with every extra or none installed.
        translator = load(out, "torch")
        figures = _score(translator, held_out)
    figures["training_seconds"] = round(seconds, 1)  # of all parts of a resumed run

    _tell(translator, held_out, figures)
    result = {**figures, "config": config.to_table()}
    write_file(out / "result.json", json.dumps(result, indent=2, ensure_ascii=False).encode())
    click.echo(f"\nFigures: {out / 'result.json'}")
    _draw(translator, out)
    click.echo("\nTry it:")
    for command in next_commands(config, out, FAMOUS_SENTENCE):
        click.echo(f"  {command}")
    return float(figures["exact_match"])


def _score(translator: "Translator", pairs: "list[Pair]") -> dict[str, Any]:
    from pellucid.evaluation.evaluate import evaluate

    began = time.perf_counter()
    evaluation = evaluate(
        translator, [pair.source for pair in pairs], [pair.target for pair in pairs], language="en"
    )
    return {
        "held_out_sentences": len(pairs),
        "exact_match": evaluation.exact_match,
        "bleu": evaluation.bleu,
        "chrf": evaluation.chrf,
        "signatures": evaluation.signatures,
        "evaluation_seconds": round(time.perf_counter() - began, 1),
    }


def _tell(translator: "Translator", pairs: "list[Pair]", figures: dict[str, Any]) -> None:
    # The first is the famous sentence, which is shown below.
    shown = pairs[1 : 1 + _SHOWN]
    translations = translator.translate([pair.source for pair in shown])
    click.echo("\nSentences it has never seen:\n")
    for pair, translation in zip(shown, translations, strict=True):
        # The grammar generates one translation of each sentence, so equality is a fair test.
        mark = " " if translation.text == pair.target else "x"
        click.echo(f"  {mark} {pair.source}\n      {translation.text}")
        if translation.text != pair.target:
            click.echo(f"      (should be: {pair.target})")
    click.echo(
        f"\n{figures['held_out_sentences']:,} held-out sentences:"
        f"  exact match {figures['exact_match']:.1f}%"
        f"  BLEU {figures['bleu']:.2f}  chrF {figures['chrf']:.2f}"
    )

    click.echo("\nAs people type:\n")
    typed = translator.translate(list(SHOWN_SENTENCES))
    for source, translation in zip(SHOWN_SENTENCES, typed, strict=True):
        click.echo(f"  {source}  ->  {translation.text}")
    figures["famous_sentence"] = {"source": FAMOUS_SENTENCE, "translation": typed[0].text}


def _draw(translator: "Translator", out: Path) -> None:
    from pellucid.bundle import Bundle
    from pellucid.core.errors import MissingExtraError
    from pellucid.inspection.capture import inspect
    from pellucid.inspection.figures.attention import draw_attention

    assert isinstance(translator.bundle, Bundle)
    weights = f"{translator.bundle.model.config.cross_attentions[-1]}.heads.*.weights"
    picture = out / "attention.png"
    try:
        draw_attention(inspect(translator, FAMOUS_SENTENCE, only=(weights,)), picture)
        click.echo(f"Picture: {picture}")
    except MissingExtraError as error:
        click.echo(f"No picture: {error}; {error.hint}", err=True)
