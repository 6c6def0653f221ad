"""Which file holds which command; a file is read only when its command is asked for."""

from typing import Literal, assert_never, get_args

import click

LearningName = Literal[
    "backtranslate", "check", "demo", "distill", "plot", "runs", "train", "vectors"
]
UsingName = Literal["compare", "continue", "evaluate", "fill", "score", "serve", "translate"]
OpeningName = Literal["ablate", "doctor", "figures", "inspect", "verify-resume"]
MovingName = Literal["export", "import"]
CommandName = Literal[LearningName, UsingName, OpeningName, MovingName]
COMMAND_NAMES: tuple[CommandName, ...] = tuple(sorted(get_args(CommandName)))


def load_command(name: CommandName) -> click.Command:
    """The command of that name."""
    match name:
        case "backtranslate" | "check" | "demo" | "distill" | "plot" | "runs" | "train" | "vectors":
            return _learning(name)
        case "compare" | "continue" | "evaluate" | "fill" | "score" | "serve" | "translate":
            return _using(name)
        case "ablate" | "doctor" | "figures" | "inspect" | "verify-resume":
            return _opening(name)
        case "export" | "import":
            return _moving(name)
        case _:
            assert_never(name)


def _learning(name: LearningName) -> click.Command:
    match name:
        case "backtranslate":
            from pellucid.cli.backtranslate import backtranslate

            return backtranslate
        case "check":
            from pellucid.cli.check import check

            return check
        case "demo":
            from pellucid.cli.demo import demo

            return demo
        case "distill":
            from pellucid.cli.distill import distill

            return distill
        case "plot":
            from pellucid.cli.plot import plot

            return plot
        case "runs":
            from pellucid.cli.runs import runs

            return runs
        case "train":
            from pellucid.cli.train import train

            return train
        case "vectors":
            from pellucid.cli.vectors import vectors

            return vectors
        case _:
            assert_never(name)


def _using(name: UsingName) -> click.Command:
    match name:
        case "compare":
            from pellucid.cli.compare import compare

            return compare
        case "continue":
            from pellucid.cli.continue_ import continue_

            return continue_
        case "evaluate":
            from pellucid.cli.evaluate import evaluate

            return evaluate
        case "fill":
            from pellucid.cli.fill import fill

            return fill
        case "score":
            from pellucid.cli.score import score

            return score
        case "serve":
            from pellucid.cli.serve import serve

            return serve
        case "translate":
            from pellucid.cli.translate import translate

            return translate
        case _:
            assert_never(name)


def _opening(name: OpeningName) -> click.Command:
    match name:
        case "ablate":
            from pellucid.cli.ablate import ablate

            return ablate
        case "doctor":
            from pellucid.cli.doctor import doctor

            return doctor
        case "figures":
            from pellucid.cli.figures import figures

            return figures
        case "inspect":
            from pellucid.cli.inspect_ import inspect

            return inspect
        case "verify-resume":
            from pellucid.cli.verify_resume import verify_resume

            return verify_resume
        case _:
            assert_never(name)


def _moving(name: MovingName) -> click.Command:
    match name:
        case "export":
            from pellucid.cli.export import export

            return export
        case "import":
            from pellucid.cli.import_ import import_

            return import_
        case _:
            assert_never(name)
