"""Which commands there are, by task, and which file holds each.

A file is read only when its command is asked for, so that ``pellucid --help`` answers at once.
"""

from typing import Literal, assert_never, get_args

import click

CommandName = Literal[
    "ablate",
    "backtranslate",
    "check",
    "compare",
    "config",
    "continue",
    "demo",
    "distill",
    "doctor",
    "evaluate",
    "examples",
    "export",
    "figures",
    "fill",
    "import",
    "inspect",
    "plot",
    "presets",
    "runs",
    "score",
    "serve",
    "train",
    "translate",
    "vectors",
    "verify-resume",
]
COMMAND_NAMES: tuple[CommandName, ...] = get_args(CommandName)

TASKS: dict[str, dict[CommandName, str]] = {
    "Train": {
        "demo": "Train a small French-English model in three minutes.",
        "train": "Train a model from two text files, a config or a preset.",
        "presets": "List the presets and what each is for.",
        "config": "Print a preset whole, as a config file to edit.",
        "check": "Check parallel text for errors before training on it.",
        "runs": "List training runs, the best first.",
        "plot": "Plot the loss, BLEU and learning rate of runs.",
        "verify-resume": "Prove that a killed and resumed run equals an unbroken one.",
    },
    "Translate": {
        "translate": "Translate a file, or standard input.",
        "serve": "Serve models over HTTP, with a web page.",
    },
    "Evaluate": {
        "evaluate": "Translate a test set and score it: BLEU, chrF and others.",
        "compare": "Compare two models, or one under other settings.",
        "score": "Give the log-probability of given translations.",
    },
    "Look inside": {
        "inspect": "Show what happens inside a model as it translates.",
        "ablate": "Measure what each attention head and sublayer contributes.",
        "doctor": "Check this installation, and the equations on this machine.",
        "figures": "Draw figures about the equations.",
        "examples": "Show worked examples of the equations, computed.",
    },
    "Make training text": {
        "distill": "Let a larger model translate training text for a smaller.",
        "backtranslate": "Make source sentences for target text that has none.",
    },
    "Models of one language": {
        "fill": "Fill in masked words with an encoder.",
        "continue": "Continue a text with a decoder.",
        "vectors": "Train word vectors and look up neighbors.",
    },
    "Exchange": {
        "import": "Convert a Marian model of Hugging Face into a bundle.",
        "export": "Convert a bundle for Hugging Face, CTranslate2 or ONNX.",
    },
}
"""The commands as ``--help`` lists them: by task, each with a line."""


def load_command(name: CommandName) -> click.Command:
    """The command of that name."""
    match name:
        case "ablate":
            from pellucid.cli.ablate import ablate as command
        case "backtranslate":
            from pellucid.cli.backtranslate import backtranslate as command
        case "check":
            from pellucid.cli.check import check as command
        case "compare":
            from pellucid.cli.compare import compare as command
        case "config":
            from pellucid.cli.presets import config as command
        case "continue":
            from pellucid.cli.continue_ import continue_ as command
        case "demo":
            from pellucid.cli.demo import demo as command
        case "distill":
            from pellucid.cli.distill import distill as command
        case "doctor":
            from pellucid.cli.doctor import doctor as command
        case "evaluate":
            from pellucid.cli.evaluate import evaluate as command
        case "examples":
            from pellucid.cli.examples import examples as command
        case "export":
            from pellucid.cli.export import export as command
        case "figures":
            from pellucid.cli.figures import figures as command
        case "fill":
            from pellucid.cli.fill import fill as command
        case "import":
            from pellucid.cli.import_ import import_ as command
        case "inspect":
            from pellucid.cli.inspect_ import inspect as command
        case "plot":
            from pellucid.cli.plot import plot as command
        case "presets":
            from pellucid.cli.presets import presets as command
        case "runs":
            from pellucid.cli.runs import runs as command
        case "score":
            from pellucid.cli.score import score as command
        case "serve":
            from pellucid.cli.serve import serve as command
        case "train":
            from pellucid.cli.train import train as command
        case "translate":
            from pellucid.cli.translate import translate as command
        case "vectors":
            from pellucid.cli.vectors import vectors as command
        case "verify-resume":
            from pellucid.cli.verify_resume import verify_resume as command
        case _:
            assert_never(name)
    return command
