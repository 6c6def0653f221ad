"""Opens a folder on disk as a translator, and chooses its engine."""

import importlib.util
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never, get_args

from pellucid.backends import (
    ComputeType,
    Device,
    EngineName,
    compute_type_for,
    is_hub_address,
)
from pellucid.backends.capability import KERNELS
from pellucid.backends.copied_engine import CopiedEngine
from pellucid.backends.ctranslate2.engine import (
    Ctranslate2Engine,
    onnxruntime_is_loaded,
    open_workers,
)
from pellucid.backends.ctranslate2.support import ctranslate2_problems
from pellucid.backends.hub import fetch
from pellucid.bundle import Bundle, StoredModel, load_bundle, open_bundle
from pellucid.core.errors import (
    BundleError,
    ConfigError,
    InputMissingError,
    MissingExtraError,
    PellucidError,
    WriteError,
)
from pellucid.core.installation import has_torch, install_command
from pellucid.core.limits import LOAD_SECONDS
from pellucid.core.near_names import did_you_mean
from pellucid.core.system import may_have_gpu
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine, SearchWatcher
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.sentences import knows_single_sentences
from pellucid.decoding.suspicious import usual_of
from pellucid.decoding.torch_engine import TorchEngine
from pellucid.decoding.translator import Translator, settings_of_search
from pellucid.documents.protected import literals_in
from pellucid.text.languages import languages_of

_log = logging.getLogger("pellucid.backends")
_IN_FLOAT32 = "the model is computed in float32, not in int8: %s"


class AutoEngine(Engine):
    """A fast engine for the calls that it supports, PyTorch for others; logs each reason once.

    ``needs_int8``: whether 8 bits were asked for, which PyTorch has not; the reason is a warning
    then.
    """

    def __init__(self, fast: CopiedEngine, *, needs_int8: bool = False) -> None:
        self._fast = fast
        self._needs_int8 = needs_int8
        self._logged: set[str] = set()

    @property
    def name(self) -> str:
        """The faster engine, which serves every call that it supports."""
        return self._fast.name

    @property
    def reason(self) -> str:
        """Why the faster engine was chosen, and how it computes."""
        return self._fast.reason

    def signature(self, settings: DecodingConfig) -> str:
        """The signature of the engine that would serve such a call."""
        return self._engine_for(settings).signature(settings)

    def thread_count(self, settings: DecodingConfig) -> int:
        """Return the number of threads of the engine that would serve such a call."""
        return self._engine_for(settings).thread_count(settings)

    def _engine_for(self, settings: DecodingConfig) -> Engine:
        # as the translator will ask it: without what is done before and after the search
        problems = self._fast.refusals(settings_of_search(settings))
        able = not problems and not self._fast.is_changed()
        return self._fast if able else TorchEngine()

    def follow(self, bundle: Translatable) -> None:
        """From now on each search first checks whether the model was changed."""
        self._fast.follow(bundle)

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """Search with the faster engine that supports the call, and with the model as it is."""
        problems = self._fast.refusals(settings, lines, watcher)
        if problems:
            reason = f"{self._fast.name} cannot do {'; '.join(problems)}"
        elif self._fast.is_changed():
            reason = f"the model was changed after it was converted for {self._fast.name}"
        else:
            return self._fast.find(lines, settings, watcher)

        # once for each reason: a stream would repeat it for every batch
        if reason not in self._logged:
            self._logged.add(reason)
            if self._needs_int8:
                _log.warning(_IN_FLOAT32, reason)
            else:
                _log.info("engine torch: %s", reason)
        return TorchEngine(reason).search(lines, bundle, settings, watcher)


def load(
    path: Path | str,
    engine: EngineName = "auto",
    device: Device = "auto",
    compute_type: ComputeType | None = None,
    seconds: float = LOAD_SECONDS,
) -> Translator:
    """A translator from a bundle, from the best bundle of a run, or from a Marian folder.

    ``hf://ORG/NAME`` names a model of the Hugging Face Hub (extra ``hub``), which is fetched once.

    ``engine`` searches: ``torch`` supports everything, ``ctranslate2`` is fast, ``kernels`` (the
    package pellucid-kernels) is the fastest and computes in ``int8`` alone, ``auto`` takes a fast
    one wherever it can and logs which and why. ``device`` ``auto`` is a GPU if there is one.
    ``compute_type`` ``float32`` gives the results of torch, and is taken unless one is given or the
    engine is ``kernels``; ``int8`` rounds the weights, in the kernels where they are installed,
    else in ctranslate2; ``auto`` is the faster one of the two on this machine; ``bfloat16``, of
    torch alone, is for the matrices of a Transformer's blocks.
    Reading a bundle may take at most ``seconds``.

    Raises ConfigError naming every argument that is not known, InputMissingError if there is no
    model, CorruptError if it was damaged, BundleError if its parts do not fit, it is not read in
    time or the named engine cannot express it, MissingExtraError if that is not installed.
    """
    compute_type = compute_type_for(engine, compute_type)
    _check(path, engine, device, compute_type)
    if is_hub_address(path):
        path = fetch(str(path))
    bundle, settings, chosen = load_parts(path, engine, device, compute_type, seconds)

    # only a model that was trained on single sentences needs its lines split
    source, target = languages_of(bundle.settings, Path(path).resolve().name)
    splits = knows_single_sentences(bundle.manifest)
    return Translator(
        bundle,
        settings,
        chosen,
        split=splits,
        source_language=source,
        target_language=target,
        usual_warnings=usual_of(bundle.manifest),
        literals_in=literals_in,
    )


def is_marian_folder(path: Path) -> bool:
    """Whether a folder may hold a Marian model as transformers stores it, and holds no bundle."""
    return (path / "config.json").is_file() and not (path / "config.toml").exists()


def load_parts(
    path: Path | str,
    engine: EngineName = "auto",
    device: Device = "auto",
    compute_type: ComputeType | None = None,
    seconds: float = LOAD_SECONDS,
) -> tuple[Bundle, DecodingConfig, Engine]:
    """The parts of a translator as ``load`` makes it, for a program that never changes the model.

    Raises as ``load`` does.
    """
    compute_type = compute_type_for(engine, compute_type)
    # before anything is read, so that all wrong arguments are named at once
    _check(path, engine, device, compute_type)
    takes_gpu = device == "cuda" or (device == "auto" and _has_gpu())
    bundle = _open(Path(path), "cuda" if takes_gpu else "cpu", seconds, engine)
    if compute_type == "bfloat16" and has_torch():
        from pellucid.model.layers import narrow

        narrow(bundle.model)

    if bundle.device == "cpu":
        bundle.when_read(lambda: _store_by_columns(bundle))

    has_scale = bundle.quality_points is not None
    settings = DecodingConfig.of_bundle(bundle.settings, path, has_scale=has_scale)
    chosen = _choose(bundle, engine, compute_type)
    if chosen.name == "torch" and not has_torch():
        raise _no_engine(engine, chosen.reason)
    if chosen.name == "torch" and isinstance(bundle.held, StoredModel):
        bundle.held.read()  # so that errors of the model are raised here
    if chosen.name == "torch" and compute_type == "int8":
        # whoever asked for 8 bits must know that there are none
        _log.warning(_IN_FLOAT32, chosen.reason)
    elif engine != "torch":  # a choice of the user needs no reason
        _log.info("engine %s: %s", chosen.name, chosen.reason)
    return bundle, settings, chosen


def _no_engine(engine: EngineName, reason: str) -> MissingExtraError:
    """The error where no engine that is installed can search the model."""
    if engine == "auto" and importlib.util.find_spec("ctranslate2") is None:
        instead = f"PyTorch: {install_command('train')}"
        if importlib.util.find_spec("pellucid_kernels") is not None:
            instead = f"compute_type=int8 for the engine kernels, or {instead}"
        return MissingExtraError("CTranslate2 or PyTorch", "fast", "translating", instead=instead)
    return MissingExtraError("PyTorch", "train", f"the engine torch ({reason})")


def _store_by_columns(bundle: Bundle) -> None:
    # imported only once the model is in memory, and torch with it
    from pellucid.model.layers import store_by_columns

    store_by_columns(bundle.model)


def choose_engine(
    bundle: Bundle, engine: EngineName = "auto", compute_type: ComputeType | None = None
) -> Engine:
    """The named engine, or with ``auto`` the fastest that can search ``bundle``.

    ``bfloat16`` states that the bundle was narrowed, and needs torch. The engine follows changes of
    the model, which the caller holds.
    Raises BundleError, MissingExtraError, ConfigError or WriteError if ctranslate2 is named and
    cannot be used; with ``auto`` that is the reason for torch.
    """
    chosen = _choose(bundle, engine, compute_type_for(engine, compute_type))
    chosen.follow(bundle)
    return chosen


def _choose(bundle: Bundle, engine: EngineName, compute_type: ComputeType) -> Engine:
    if compute_type == "bfloat16":
        return TorchEngine("compute_type is bfloat16", compute_type)

    match engine:
        case "torch":
            return TorchEngine()
        case "ctranslate2":
            problems = _machine_problems(bundle)
            if problems:
                raise ConfigError(
                    f"the engine ctranslate2 cannot be used: {'; '.join(problems)}",
                    hint="take the engine torch",
                )
            return _fast_engine(bundle, compute_type, "it was named")
        case "kernels":
            from pellucid.backends.kernels.engine import open_kernels

            return open_kernels(bundle, "it was named")
        case "auto":
            kernels = _kernels_for(bundle) if compute_type in ("int8", "auto") else None
            if kernels is not None:
                return AutoEngine(kernels, needs_int8=compute_type == "int8")
            problems = _machine_problems(bundle) or _bundle_problems(bundle)
            if problems:
                return TorchEngine("; ".join(problems))
            try:
                fast = _fast_engine(bundle, compute_type, "the fastest that supports the settings")
            except WriteError as error:
                # without a folder for the converted model torch still works
                return TorchEngine(f"the model cannot be converted for ctranslate2: {error}")
            except BundleError as error:
                # the copy computes something else, which the user has to know
                _log.warning("engine torch: %s", error)
                return TorchEngine(str(error))
            return AutoEngine(fast, needs_int8=compute_type == "int8")
        case _:
            assert_never(engine)


def _kernels_for(bundle: Bundle) -> CopiedEngine | None:
    """The engine of the kernels where it is installed and can compute the model; logs why not."""
    is_installed = importlib.util.find_spec("pellucid_kernels") is not None
    if not is_installed or bundle.device != "cpu" or KERNELS.model_problems(bundle.config):
        return None
    from pellucid.backends.kernels.engine import open_kernels

    try:
        return open_kernels(bundle, "the fastest in int8")
    except PellucidError as error:
        # the library is of another release, or it failed its check, which the user has to know
        _log.warning("not the engine kernels: %s", error)
        return None


def _fast_engine(bundle: Bundle, compute_type: ComputeType, reason: str) -> Ctranslate2Engine:
    return Ctranslate2Engine(bundle, open_workers(bundle, compute_type), reason)


def _machine_problems(bundle: Bundle) -> list[str]:
    """Why CTranslate2 must not be used here, whatever the model."""
    problems = []
    if bundle.device != "cpu":
        problems.append("ctranslate2 is used on CPUs only")
    if onnxruntime_is_loaded():
        problems.append("this process has loaded onnxruntime, and the two block each other at exit")
    return problems


def _bundle_problems(bundle: Bundle) -> list[str]:
    """Why CTranslate2 cannot run this model, or is not installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        return [f"ctranslate2 is not installed ({install_command('fast')})"]
    return [
        f"ctranslate2 cannot express this model: {each}" for each in ctranslate2_problems(bundle)
    ]


def _open(path: Path, device: str, seconds: float, engine: EngineName) -> Bundle:
    """Open a bundle or a Marian folder; for the engine torch the model is read now."""
    if len(path.parts) == 2 and not path.is_absolute() and not path.parent.exists():
        raise InputMissingError(
            f"there is no folder {path}",
            hint="a model of the Hugging Face Hub is named hf://ORG/NAME",
        )
    if is_marian_folder(path):
        from pellucid.backends.huggingface.import_folder import read_huggingface

        bundle = read_huggingface(path)
        bundle.model.to(device)
        return bundle
    return (load_bundle if engine == "torch" else open_bundle)(path, device, seconds)


def _has_gpu() -> bool:
    """Whether torch can use a GPU. Without a device file torch is not even imported."""
    if not (may_have_gpu() and has_torch()):
        return False
    import torch

    return torch.cuda.is_available()


def _check(path: object, engine: str, device: str, compute_type: str) -> None:
    """Raise ConfigError naming every argument that is not known or does not fit."""
    problems = []
    if not isinstance(path, str | Path):
        problems.append(f"path must be a str or a Path, got {path!r}")
    if path == "":  # as a Path it would be the current folder
        problems.append("path must not be empty")

    for name, value, known in (
        ("engine", engine, get_args(EngineName)),
        ("device", device, get_args(Device)),
        ("compute_type", compute_type, get_args(ComputeType)),
    ):
        if value not in known:
            hint = did_you_mean(value, known, "; {}") if isinstance(value, str) else ""
            problems.append(f"{name} must be one of {', '.join(known)}, got {value!r}{hint}")

    if device == "cuda" and not _has_gpu():
        problems.append("device=cuda needs a GPU that torch can use, and there is none")
    if engine == "torch" and compute_type == "int8":
        problems.append("compute_type=int8 is for the engines kernels and ctranslate2, not torch")
    if engine == "ctranslate2" and compute_type == "bfloat16":
        problems.append("compute_type=bfloat16 is for the engine torch, not for ctranslate2")
    if engine == "kernels" and compute_type in ("float32", "bfloat16"):
        problems.append(
            f"the engine kernels computes in int8 alone: compute_type must be int8 or auto, got"
            f" {compute_type}"
        )
    if engine in ("ctranslate2", "kernels") and device == "cuda":
        problems.append(f"the engine {engine} is used on CPUs only, got device=cuda")

    if problems:
        raise ConfigError("; ".join(problems))
