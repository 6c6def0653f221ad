"""``pellucid demo``: generates a corpus, trains on it, translates, and draws the attention."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pellucid.decoding.translator import Translator
    from pellucid.phrasebook.corpus import Pair
    from pellucid.training.config import RunConfig

FAMOUS_SENTENCE = "je suis étudiant"
"""The worked example of the Single Page (EQ-122); it is never trained on."""
_SHOWN = 8


@click.command()
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/demo"),
    help="Run folder.  [default: runs/demo]",
)
@click.pass_obj
def demo(obj: dict[str, bool], out: Path) -> int:
    """Train a small French-English Transformer in three minutes and watch it translate.

    Needs no files and no network: the sentences come from a grammar inside Pellucid. A demo
    that was stopped goes on where it was; one that is finished is shown again.
    """
    from pellucid.cli.display import Display, next_commands

    with Display(quiet=obj["quiet"]) as display:
        display.begin("loading PyTorch")  # before the import, which takes seconds
        from pellucid import phrasebook
        from pellucid.cli.display import EXIT_CODES, StopRequests
        from pellucid.engines.load import load
        from pellucid.training.presets import read_config
        from pellucid.training.train import train

        config = read_config("demo")
        stop = display.counting(config, StopRequests())
        # Resuming starts a new run in an empty folder, and shows a finished one again.
        result = train(config, out, resume=True, listener=display.hear, should_stop=stop)
    if result.reason in EXIT_CODES:
        click.echo("saved; run the same command again to go on", err=True)
        return EXIT_CODES[result.reason]

    wanted = config.phrasebook
    with Display(quiet=obj["quiet"]) as display_of_test:
        display_of_test.begin(f"translating {wanted.held_out:,} sentences it has never seen")
        # The corpus is generated again: the seed gives the same split as in training.
        held_out = phrasebook.split(wanted.pairs, wanted.held_out, wanted.seed).test
        # The figures of the demo are those of our own search, with every extra or none installed.
        translator = load(out, "torch")
        figures = _score(translator, held_out)
    figures["training_seconds"] = round(result.progress.seconds, 1)  # of all parts of a resumed run

    _tell(translator, held_out, figures)
    _write_result(out, config, figures)
    _draw(translator, out)
    click.echo("\nTry it:")
    for command in next_commands(config, out, FAMOUS_SENTENCE):
        click.echo(f"  {command}")
    return 0


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
    shown = pairs[:_SHOWN]
    translations = translator.translate([pair.source for pair in shown])
    click.echo("\nSentences it has never seen:\n")
    for pair, translation in zip(shown, translations, strict=True):
        # The grammar generates one translation of each sentence, so equality is a fair test.
        mark = " " if translation.text == pair.target else "x"
        click.echo(f"  {mark} {pair.source}\n      {translation.text}")
        if translation.text != pair.target:
            click.echo(f"      (should be: {pair.target})")
    [famous] = translator.translate([FAMOUS_SENTENCE])
    figures["famous_sentence"] = {"source": FAMOUS_SENTENCE, "translation": famous.text}
    click.echo(
        f"\n{figures['held_out_sentences']:,} held-out sentences:"
        f"  exact match {figures['exact_match']:.1f}%"
        f"  BLEU {figures['bleu']:.2f}  chrF {figures['chrf']:.2f}"
        f"\n\n  {FAMOUS_SENTENCE}  ->  {famous.text}"
    )


def _write_result(out: Path, config: "RunConfig", figures: dict[str, Any]) -> None:
    from pellucid.core.files import write_file

    result = {**figures, "config": config.to_table()}
    text = json.dumps(result, indent=2, ensure_ascii=False)
    write_file(out / "result.json", text.encode())
    click.echo(f"\nFigures: {out / 'result.json'}")


def _draw(translator: "Translator", out: Path) -> None:
    from pellucid.bundle import Bundle
    from pellucid.core.errors import MissingExtraError
    from pellucid.inspection.capture import inspect
    from pellucid.inspection.figures.attention import draw_attention

    assert isinstance(translator.bundle, Bundle)
    last = translator.bundle.model.config.decoder_layers - 1
    weights = f"decoder.layers.{last}.cross_attention.heads.*.weights"
    picture = out / "attention.png"
    try:
        draw_attention(inspect(translator, FAMOUS_SENTENCE, only=(weights,)), picture)
        click.echo(f"Picture: {picture}")
    except MissingExtraError as error:
        click.echo(f"No picture: {error}; {error.hint}", err=True)
