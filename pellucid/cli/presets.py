"""``pellucid presets`` and ``pellucid config``: lists the presets, and prints one in full."""

import textwrap

import click

from pellucid.cli.options import settings_option

_WIDTH = 96


@click.command()
def presets() -> None:
    """List the presets: what each is for and what it needs.

    \b
    Examples:
      pellucid config multi30k > my.toml
      pellucid train my.toml --set data.source=train.en --set data.target=train.de
    """
    from pellucid.training.presets import preset_comment, preset_names

    names = preset_names()
    indent = max(map(len, names)) + 2
    for name in names:
        # The comment at the top of the preset's file is its description: one text for both.
        about = textwrap.wrap(" ".join(preset_comment(name)), _WIDTH - indent)
        click.echo(f"{name:<{indent}}{about[0]}")
        for line in about[1:]:
            click.echo(" " * indent + line)
    click.echo(
        "\nOne of them whole: pellucid config NAME.  To train it: pellucid train NAME.", err=True
    )


@click.command()
@click.argument("preset")
@settings_option("Change one setting first; may be given many times.")
def config(preset: str, overrides: tuple[str, ...]) -> None:
    """Print the config PRESET, or a .toml file, whole: every setting with what it means.

    What is printed is itself a config: edit it and train from it.

    \b
    Examples:
      pellucid config demo
      pellucid config multi30k --set training.max_minutes=10 > my.toml
    """
    from pellucid.training.presets import config_text

    # The text ends with a line feed: what is printed is the file, byte for byte.
    click.echo(config_text(preset, overrides), nl=False)
