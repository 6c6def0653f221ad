"""Pellucid: train, open up and ship encoder-decoder Transformers.

    translator = pellucid.load("runs/demo")
    [translation] = translator.translate(["je suis étudiant"], beam_size=5)
    translation.text, translation.score, translation.tokens, translation.token_log_probs

Names are imported when they are first used, so that ``import pellucid`` costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.decoding.config import DecodingConfig as DecodingConfig
    from pellucid.decoding.explain import explain_search as explain_search
    from pellucid.decoding.requests import Request as Request
    from pellucid.decoding.result import Translation as Translation
    from pellucid.decoding.translator import Translator as Translator
    from pellucid.engines.load import load as load
    from pellucid.evaluation.evaluate import evaluate as evaluate
    from pellucid.inspection.capture import Capture as Capture
    from pellucid.inspection.capture import inspect as inspect
    from pellucid.inspection.report.write import write_report as write_report
    from pellucid.training.config import RunConfig as RunConfig
    from pellucid.training.presets import read_config as read_config
    from pellucid.training.train import train as train

__version__ = "0.1.0"

__all__ = [
    "Capture",
    "DecodingConfig",
    "Request",
    "RunConfig",
    "Translation",
    "Translator",
    "__version__",
    "evaluate",
    "explain_search",
    "inspect",
    "load",
    "read_config",
    "train",
    "write_report",
]


def __getattr__(name: str) -> Any:
    match name:
        case "load":
            from pellucid.engines.load import load

            return load
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
        case "train":
            from pellucid.training.train import train

            return train
        case "write_report":
            from pellucid.inspection.report.write import write_report

            return write_report
    raise AttributeError(f"module 'pellucid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
