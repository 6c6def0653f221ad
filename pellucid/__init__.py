"""Pellucid: train, open up and ship encoder-decoder Transformers.

    translator = pellucid.load("runs/demo")
    [translation] = translator.translate(["je suis étudiant"], beam_size=5)
    translation.text, translation.score, translation.tokens, translation.token_log_probs

load .................. a Translator from a bundle, a run folder or a Marian folder
load_bundle ........... a Bundle: the torch module, its tokenizers and settings
save_bundle ........... a Bundle written to a folder, with its model card
Translator ............ translates, scores given translations, names alternatives
Translation ........... a text with its score, tokens, alignment and n-best list
Request ............... a text with constraints of its own: a prefix, required phrases
DecodingConfig ........ how translations are searched for, or drawn
read_config ........... a RunConfig from a preset or a TOML file
RunConfig ............. everything that decides a training run
train_files ........... train a model from two text files, within so many minutes
choose_config ......... the settings that train_files would choose, with their reasons
train ................. train a model by a RunConfig into a run folder
Seq2SeqTranslator ..... fit, predict, score: an estimator in scikit-learn's shape
evaluate .............. BLEU, chrF, TER and more, each with its signature
explain_search ........ the tree of a search, and why it chose what it chose
inspect ............... a Capture: every intermediate of a forward pass by name
clear ................. a bundle's weights, as the pages of pellucid.equations take them
Capture ............... those intermediates, with their axes, equations and meaning
why ................... why this word and not that one, part by part
write_report .......... one sentence walked through the model, as an HTML file

From transformers: ``pellucid.load(path)`` is what ``from_pretrained`` and ``pipeline`` are there,
tokenizers included. Names are imported when they are first used, so that ``import pellucid`` costs
nothing.
"""

from typing import TYPE_CHECKING, Any

from pellucid.core.version import __version__ as __version__

if TYPE_CHECKING:
    from pellucid.backends.load import load as load
    from pellucid.bundle import clear as clear
    from pellucid.bundle import load_bundle as load_bundle
    from pellucid.bundle import save_bundle as save_bundle
    from pellucid.decoding.config import DecodingConfig as DecodingConfig
    from pellucid.decoding.explain import explain_search as explain_search
    from pellucid.decoding.requests import Request as Request
    from pellucid.decoding.result import Translation as Translation
    from pellucid.decoding.translator import Translator as Translator
    from pellucid.estimator import Seq2SeqTranslator as Seq2SeqTranslator
    from pellucid.evaluation.evaluate import evaluate as evaluate
    from pellucid.inspection.capture import Capture as Capture
    from pellucid.inspection.capture import inspect as inspect
    from pellucid.inspection.report.page import write_report as write_report
    from pellucid.inspection.why import why as why
    from pellucid.training.automatic import choose_config as choose_config
    from pellucid.training.automatic import train_files as train_files
    from pellucid.training.config import RunConfig as RunConfig
    from pellucid.training.presets import read_config as read_config
    from pellucid.training.train import train as train


__all__ = [
    "Capture",
    "DecodingConfig",
    "Request",
    "RunConfig",
    "Seq2SeqTranslator",
    "Translation",
    "Translator",
    "__version__",
    "choose_config",
    "clear",
    "evaluate",
    "explain_search",
    "inspect",
    "load",
    "load_bundle",
    "read_config",
    "save_bundle",
    "train",
    "train_files",
    "why",
    "write_report",
]

_LOADERS = ("AutoModel", "AutoModelForSeq2SeqLM", "MarianMTModel", "from_pretrained", "pipeline")
"""How those who know transformers would call ``load``."""


def __getattr__(name: str) -> Any:
    try:
        return _attribute(name)
    except ModuleNotFoundError as error:
        from pellucid.core.errors import MissingExtraError

        raise MissingExtraError.of_training(error, f"pellucid.{name}") or error from None


def _attribute(name: str) -> Any:
    match name:
        case "load":
            from pellucid.backends.load import load

            return load
        case "clear":
            from pellucid.bundle import clear

            return clear
        case "load_bundle":
            from pellucid.bundle import load_bundle

            return load_bundle
        case "save_bundle":
            from pellucid.bundle import save_bundle

            return save_bundle
        case "DecodingConfig":
            from pellucid.decoding.config import DecodingConfig

            return DecodingConfig
        case "explain_search":
            from pellucid.decoding.explain import explain_search

            return explain_search
        case "Request":
            from pellucid.decoding.requests import Request

            return Request
        case "Translation":
            from pellucid.decoding.result import Translation

            return Translation
        case "Translator":
            from pellucid.decoding.translator import Translator

            return Translator
        case "evaluate":
            from pellucid.evaluation.evaluate import evaluate

            return evaluate
        case "Capture":
            from pellucid.inspection.capture import Capture

            return Capture
        case "inspect":
            from pellucid.inspection.capture import inspect

            return inspect
        case "RunConfig":
            from pellucid.training.config import RunConfig

            return RunConfig
        case "read_config":
            from pellucid.training.presets import read_config

            return read_config
        case "choose_config":
            from pellucid.training.automatic import choose_config

            return choose_config
        case "train_files":
            from pellucid.training.automatic import train_files

            return train_files
        case "train":
            from pellucid.training.train import train

            return train
        case "Seq2SeqTranslator":
            from pellucid.estimator import Seq2SeqTranslator

            return Seq2SeqTranslator
        case "write_report":
            from pellucid.inspection.report.page import write_report

            return write_report
        case "why":
            from pellucid.inspection.why import why

            return why
    instead = "; pellucid.load(path) gives a translator" if name in _LOADERS else ""
    raise AttributeError(f"module 'pellucid' has no attribute {name!r}{instead}")


def __dir__() -> list[str]:
    return __all__
