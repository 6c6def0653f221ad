"""``pellucid continue``: continues a text with a decoder-only model."""

import json
import sys

import click

from pellucid.cli.search_options import asked_settings, continuation_options, sampling_options


@click.command("continue")
@click.argument("bundle")
@click.argument("text", nargs=-1)
@click.option(
    "--new-tokens",
    type=click.IntRange(1),
    default=40,
    help="The most tokens to add.",
    show_default=True,
)
@continuation_options
@sampling_options
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
def continue_(bundle: str, text: tuple[str, ...], new_tokens: int, as_json: bool) -> None:
    """Go on with TEXT, or with each line of stdin.

    BUNDLE is a model trained with model.kind = "decoder".

    \b
    Examples:
      pellucid train decoder --out runs/decoder
      pellucid continue runs/decoder "the little cat"
      pellucid continue runs/decoder "we see" --sample --top-k 20 --n-best 3
    """
    from pellucid.bundle import load_any_bundle
    from pellucid.decoding.config import DecodingConfig
    from pellucid.decoding.plain_text import continue_text
    from pellucid.text.corpus.lines import iterate_lines

    model = load_any_bundle(bundle)
    settings = DecodingConfig.carried(model.settings.get("decoding", {}), f"{bundle}: decoding")
    settings = asked_settings(settings)

    for line in text or iterate_lines(sys.stdin.buffer):
        found = continue_text(model, line, settings, new_tokens)
        if as_json:
            click.echo(json.dumps({"source": line, "texts": found}, ensure_ascii=False))
        else:
            click.echo("\n".join(found))
