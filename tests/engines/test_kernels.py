"""The kernels compute their equation to the last bit, and the equation computes our Transformer."""

import ctypes
import dataclasses
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from compiled_kernels import KERNELS_FOLDER, build_module, compiled_library, weights_of
from engine_bundles import random_bundle, said, sentences
from forks import fork
from tiny_models import EVERY_KIND, VOCABULARY, tiny_bundle, tiny_model

from pellucid.backends import compute_type_for
from pellucid.backends.capability import KERNELS
from pellucid.backends.kernels import equation, opening
from pellucid.backends.kernels.engine import KernelEngine
from pellucid.backends.kernels.library import Library, Search, installed_library
from pellucid.backends.kernels.opening import open_model
from pellucid.backends.kernels.weights import (
    Matrix,
    Rounded,
    Weights,
    read_weights,
    rounded,
)
from pellucid.backends.load import load
from pellucid.bundle import Bundle
from pellucid.cli.main import cli
from pellucid.core.errors import BundleError, CancelledError, ConfigError, PellucidError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.explain import explain_search
from pellucid.decoding.search.beam import beam_search
from pellucid.decoding.search.search import pad_sources
from pellucid.decoding.translator import Translator
from pellucid.serve import models

EXPRESSED = [name for name in EVERY_KIND if not KERNELS.model_problems(tiny_model(name).config)]
LINES = sentences(40)


@pytest.fixture(scope="module")
def library() -> Library:
    """Compiled where a test needs it, not while tests are collected."""
    return Library(compiled_library())


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    """As if the wheel were installed."""
    monkeypatch.syspath_prepend(str(KERNELS_FOLDER))
    monkeypatch.setattr("pellucid.backends.kernels.engine.installed_library", lambda: library)


def ids(*given: int) -> np.ndarray:
    return np.array(given, np.int32)


# ---- products ----


def sums(q: np.ndarray, whole: np.ndarray, instructions: str) -> np.ndarray:
    """q Qᵀ of contiguous arrays."""
    function = ctypes.CDLL(str(compiled_library())).pk_sums
    found = np.zeros((len(q), len(whole)), np.int32)
    number, array = ctypes.c_int32, ctypes.c_void_p
    function.argtypes = [array, number, array, number, number, ctypes.c_char_p, array]
    error = function(
        *(q.ctypes.data, len(q), whole.ctypes.data, *whole.shape),
        *(instructions.encode(), found.ctypes.data),
    )
    assert error == 0
    return found


@pytest.mark.property
@pytest.mark.parametrize(("rows", "outputs", "inputs"), [(1, 1, 1), (5, 17, 3), (7, 33, 64)])
def test_sums_are_exact_with_every_set_of_instructions(
    library: Library, rows: int, outputs: int, inputs: int
):
    draw = np.random.default_rng(rows)
    q = draw.integers(0, 128, (rows, inputs), dtype=np.uint8)
    whole = draw.integers(-127, 128, (outputs, inputs), dtype=np.int8)
    # the small ones allow four products in 16 bits; mixed, such groups of eight move to the front
    mixed = np.where(np.arange(inputs) // 8 % 2 == 1, whole // 4, whole)
    for name in library.instructions():
        for weights in (whole, whole // 4, mixed):
            expected = q.astype(int) @ weights.astype(int).T
            assert (sums(q, weights, name) == expected).all(), name


@pytest.mark.by_hand
def test_the_largest_sums_do_not_overflow(library: Library):
    """127 · 127 · 65,536 = 1,057,030,144 and its negative fit 32 bits; a pair fits 16: 32,258."""
    q = np.full((1, 65_536), 127, np.uint8)
    for name in library.instructions():
        for weight in (127, -127):
            whole = np.full((2, 65_536), weight, np.int8)
            assert sums(q, whole, name).tolist() == [[weight * 127 * 65_536] * 2]


@pytest.mark.by_hand
def test_a_panel_with_one_large_four_is_added_the_careful_way(library: Library):
    """258 · 127 = 32,766 is the most that 16 bits hold: with weights of 65, four products of 127
    make 33,020."""
    q = np.full((1, 8), 127, np.uint8)
    for weight in (64, 65, -64, -65):
        whole = np.full((3, 8), weight, np.int8)
        for name in library.instructions():
            assert sums(q, whole, name).tolist() == [[8 * 127 * weight] * 3]


@pytest.mark.by_hand
def test_inputs_far_from_each_other_are_added_in_16_bits(library: Library):
    """Two units of weight 100, or one of 100 and one of 50, are beyond 16 bits: 300 · 127 = 38,100.
    Each of -100 goes with one of 100, wherever it is; the two units left are added with care."""
    q = np.full((6, 24), 127, np.uint8)
    whole = np.repeat(np.array([[100, 100, 100, -100, -100, 50]], np.int8), 4, axis=1)
    for name in library.instructions():
        assert sums(q, whole, name).tolist() == [[4 * 127 * 150]] * 6


@pytest.mark.by_hand
def test_a_matrix_is_rounded_with_a_scale_for_each_output():
    """Largest 2.54: the scale is 0.02 and 1.0 becomes 50; a row of zeros has the scale 0."""
    matrix = rounded(np.array([[2.54, -1.0], [0.0, 0.0]], np.float32))
    assert matrix.whole.tolist() == [[127, -50], [0, 0]]
    np.testing.assert_allclose(matrix.scale, [0.02, 0.0], rtol=1e-6)


@pytest.mark.by_hand
def test_a_row_is_quantized_from_its_least_to_its_largest_number():
    """From -1 to 1.54 there are 127 steps of 0.02: 0 is 50 of them above the least."""
    q, low, step = equation.quantize(np.array([[-1.0, 0.0, 1.54]], np.float32))
    assert (q.tolist(), low.tolist()) == ([[0, 50, 127]], [-1.0])
    np.testing.assert_allclose(step, [0.02], rtol=1e-6)


def test_a_row_of_almost_no_width_is_constant():
    """127 / 2e-37 is beyond float32, and 0 times it is NaN."""
    q, low, _ = equation.quantize(np.array([[0.0, 1e-38, 2e-37]], np.float32))
    assert (q.tolist(), low.tolist()) == ([[0, 0, 0]], [0.0])


def test_the_exponential_is_that_of_numpy_to_its_stated_tolerance():
    x = np.linspace(-87, 88, 100_001, dtype=np.float32)
    np.testing.assert_allclose(equation.exp(x), np.exp(x.astype(np.float64)), rtol=2e-7)
    assert equation.exp(np.float32([-1000.0]))[0] == equation.exp(np.float32([-87.0]))[0]


# ---- the equation is our Transformer, the library is the equation ----


@pytest.mark.parametrize("variant", EXPRESSED)
def test_without_rounding_the_equation_is_the_model(variant: str):
    model = tiny_model(variant)
    source, target = [5, 7, 4, 11], [6, 9, 8]
    with torch.inference_mode():
        logits = model(
            torch.tensor([[*source, EOS_ID]]), torch.tensor([[BOS_ID, *target]])
        )  # in float64
    expected = logits[0].log_softmax(-1)[range(4), [*target, EOS_ID]]
    found = equation.forced_log_probs(weights_of(model, are_exact=True), ids(*source), ids(*target))
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-5)


@pytest.mark.parametrize("variant", EXPRESSED)
def test_the_library_gives_every_bit_of_the_equation(variant: str, library: Library):
    """Greedy search of three sources at once: ids and log-probabilities."""
    weights = weights_of(tiny_model(variant, seed=3))
    sources, limits = [[5, 7, 4, 11], [6], [9, 9, 12, 4, 8, 7]], [9, 3, 12]
    expected = [
        equation.greedy(weights, ids(*source), limit)
        for source, limit in zip(sources, limits, strict=True)
    ]
    for name in library.instructions():
        model = library.open(weights, name)
        assert model.instructions == name
        found = model.search(Search(sources, limits, np.ones(15, np.float32)))
        assert [each for [each] in found] == expected


def test_rows_of_almost_no_width_are_the_equation_too(library: Library):
    """What the decoder attends to differs by less than 1e-36."""
    model = tiny_model("pre-norm", seed=3)
    for name, parameter in model.named_parameters():
        if name.startswith("encoder.last_norm"):
            narrow = 2e-37 * torch.arange(parameter.numel()) / parameter.numel()
            parameter.data = narrow.double() if name.endswith("bias") else 0 * parameter.data
    weights = weights_of(model)
    expected = equation.greedy(weights, ids(5, 7, 4), 6)
    for name in library.instructions():
        found = library.open(weights, name).search(
            Search([[5, 7, 4]], [6], np.ones(15, np.float32))
        )
        assert found == [[expected]]


def test_wide_models_and_long_vocabularies_are_the_equation_too(library: Library):
    """Widths that fill no vector, more rows and keys than a block, a vocabulary of two blocks."""
    weights = big_weights(d_model=36, vocabulary=1111)
    draw = np.random.default_rng(2)
    sources = [draw.integers(4, 1111, draw.integers(1, 20)).tolist() for _ in range(70)]
    asked = Search(sources, [4] * 70, np.ones(9, np.float32))
    expected = {n: equation.greedy(weights, ids(*sources[n]), 4) for n in (0, 1, 63, 64, 69)}
    for name in library.instructions():
        found = library.open(weights, name).search(asked)
        assert {n: found[n][0] for n in expected} == expected, name
        assert len({tuple(each[0]) for [each] in found}) > 30


def big_weights(d_model: int, vocabulary: int) -> Weights:
    bundle = random_bundle(d_model=d_model, heads=3, d_ff=70, norm="pre", output_bias=False)
    weights = weights_of(bundle.model)
    draw = np.random.default_rng(1)
    table = rounded(draw.standard_normal((vocabulary, d_model)).astype(np.float32))
    return dataclasses.replace(weights, source=table, target=table, output=table)


@dataclasses.dataclass(frozen=True)
class Prefixes:
    """The state of the equation in our own search: the words so far of each hypothesis."""

    memory: tuple[np.ndarray, ...]
    ids: np.ndarray
    sentence_count: int
    beam_count: int

    @property
    def length(self) -> int:
        return self.ids.shape[1] - 1

    def select(self, rows: torch.Tensor) -> "Prefixes":
        sentences = rows[:, 0] // self.beam_count
        memory = tuple(self.memory[index] for index in sentences.tolist())
        return Prefixes(memory, self.ids[rows.flatten().numpy()], *rows.shape)


@dataclasses.dataclass(frozen=True)
class EquationModel:
    """The equation as our own search sees a model."""

    weights: Weights
    target_vocabulary_size: int = VOCABULARY
    max_length: int | None = None

    def encode(self, source: torch.Tensor) -> list[np.ndarray]:
        rows = source.numpy().astype(np.int32)
        return [equation.encode(self.weights, row[row != PAD_ID]) for row in rows]

    def start(self, memory: list[np.ndarray]) -> Prefixes:
        return Prefixes(tuple(memory), np.empty((len(memory), 0), np.int32), len(memory), 1)

    def step(self, newest: torch.Tensor, state: Prefixes) -> tuple[torch.Tensor, Prefixes]:
        prefixes = np.append(state.ids, newest.numpy().reshape(-1, 1), 1).astype(np.int32)
        beams = newest.shape[1]
        logits = [
            equation.decode(self.weights, state.memory[row // beams], prefix)[-1]
            for row, prefix in enumerate(prefixes)
        ]
        after = Prefixes(state.memory, prefixes, *newest.shape)
        return torch.tensor(np.array(logits)).view(*newest.shape, -1), after


SEARCHES: list[dict[str, object]] = [
    {"beam_size": 4, "n_best": 4, "length_penalty": 1.0},
    {"beam_size": 3, "n_best": 1, "length_penalty": 0.0, "patience": 2.0},
    {"beam_size": 5, "n_best": 2, "length_penalty": -1.0, "forced_stop": "free"},
    {"beam_size": 4, "n_best": 3, "stop_bound": "current", "length_penalty_kind": "power"},
    {"beam_size": 8, "n_best": 8, "max_length": 2},  # fewer words than candidates
]


@pytest.mark.parametrize(
    ("variant", "changes"),
    [
        *(("biases, untied, unshared", each) for each in SEARCHES),
        *(("rotary", each) for each in SEARCHES[:1]),  # the search knows nothing of positions
        *(("ssru", each) for each in SEARCHES[:1]),  # whose states are selected too
    ],
    ids=str,
)
def test_beam_search_is_our_own_over_the_equation(variant: str, changes: dict, library: Library):
    settings = DecodingConfig(**{"max_length": 8, **changes})
    weights = weights_of(tiny_model(variant, seed=5))
    sources = [[5, 7, 4, 11], [6], [9, 9, 12, 4, 8]]
    padded = pad_sources(sources, torch.nn.Linear(1, 1))
    expected = beam_search(EquationModel(weights), padded, settings)

    found = library.open(weights).search(search_of(sources, settings))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert [tuple(each[0][:-1]) for each in ours] == [each.ids for each in theirs]
        for (_, log_probs), like in zip(ours, theirs, strict=True):
            # torch's softmax adds in another order
            assert log_probs == pytest.approx(like.token_log_probs, abs=1e-5)


def search_of(sources: list[list[int]], settings: DecodingConfig) -> Search:
    from pellucid.backends.kernels.engine import _penalties, _search

    limits = [settings.max_length or 8] * len(sources)
    return _search(sources, limits, _penalties(settings, max(limits)), settings)


# ---- the engine ----


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return random_bundle(norm="pre")


@pytest.fixture(scope="module")
def engine(bundle: Bundle, library: Library) -> KernelEngine:
    return KernelEngine(bundle, library, "a test")


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_close_to_those_of_float32(
    bundle: Bundle, engine: KernelEngine, beam_size: int
):
    settings = DecodingConfig(beam_size=beam_size, max_length=16)
    fast, ours = Translator(bundle, settings, engine), Translator(bundle, settings)
    pairs = list(zip(fast.translate(LINES), ours.translate(LINES), strict=True))
    # random models magnify rounding: their best two words are often close
    assert sum(a.text == b.text for a, b in pairs) > len(LINES) / 2
    assert len({a.text for a, _ in pairs}) > 10
    for found, expected in pairs:
        if found.text == expected.text:
            assert found.score == pytest.approx(expected.score, abs=1.0)
            assert len(found.token_log_probs) == len(found.tokens) + 1


def test_a_batch_gives_what_each_line_gives_alone(bundle: Bundle, engine: KernelEngine):
    translator = Translator(bundle, DecodingConfig(beam_size=3, max_length=16), engine)
    together = translator.translate(LINES)
    alone = [translator.translate(line) for line in LINES]
    assert said(together) == said(alone)
    assert [each.token_log_probs for each in together] == [each.token_log_probs for each in alone]


def test_threads_and_forks_search_with_one_model(
    bundle: Bundle, engine: KernelEngine, monkeypatch: pytest.MonkeyPatch
):
    translator = Translator(bundle, DecodingConfig(max_length=16), engine)
    expected = said(translator.translate(LINES))

    monkeypatch.setattr("pellucid.backends.kernels.engine.thread_count", lambda: 4)
    assert said(translator.translate(LINES)) == expected
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(said(translator.translate(LINES))))
        for _ in range(3)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [expected] * 3

    child = fork()
    if child == 0:
        os._exit(0 if said(translator.translate(LINES)) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_what_it_cannot_do_is_refused_by_name(bundle: Bundle, engine: KernelEngine):
    settings = DecodingConfig(beam_size=65, n_best=1, min_length=2, banned=("war",))
    with pytest.raises(ConfigError) as caught:
        Translator(bundle, settings, engine).translate("je suis")
    assert str(caught.value) == (
        'the engine kernels cannot do min_length=2; banned=["war"]; beam_size=65, as it has at most'
        " 64 beams"
    )
    settings = DecodingConfig(max_length=2048)
    assert engine.refusals(settings) == ["max_length=2048, as it numbers 2047 tokens"]


@pytest.mark.parametrize(
    "changes", [{"positions": "alibi"}, {"activation": "gelu"}, {"norm_kind": "rms"}]
)
def test_models_that_it_cannot_express_are_refused_by_name(
    changes: dict[str, str], library: Library
):
    [(name, value)] = changes.items()
    with pytest.raises(BundleError, match=f"cannot express this model: it has no {name}={value}"):
        open_model(random_bundle(**changes), library)


def test_a_change_of_the_model_is_followed(library: Library):
    bundle = random_bundle()
    engine = choose_engine_of(bundle, library)
    translator = Translator(bundle, DecodingConfig(max_length=16), engine)
    before = said(translator.translate(LINES))
    bundle.model.get_parameter("decoder.layers.1.cross_attention.w_qkv").data.zero_()
    after = said(translator.translate(LINES))
    again = Translator(bundle, translator.settings, KernelEngine(bundle, library, "a test"))
    assert before != after == said(again.translate(LINES))


def choose_engine_of(bundle: Bundle, library: Library) -> KernelEngine:
    engine = KernelEngine(bundle, library, "a test")
    engine.follow(bundle)
    return engine


def test_a_watcher_ends_it_between_two_batches(bundle: Bundle, engine: KernelEngine):
    class Ending:
        needs_steps = False
        asked = 0

        def before_step(self, length: int) -> None:
            self.asked += 1
            if self.asked == 2:
                raise CancelledError("enough")

        def saw_step(self, step: object) -> None:
            raise AssertionError

    ending = Ending()
    settings = DecodingConfig(max_length=16, batch_tokens=64)
    with pytest.raises(CancelledError, match="enough"):
        Translator(bundle, settings, engine).translate(LINES, watcher=ending)
    assert ending.asked == 2


# ---- opening ----


@pytest.mark.usefixtures("installed")
def test_auto_takes_it_where_int8_is_asked_for_and_never_for_float32(bundle_folder: Path):
    assert load(bundle_folder, device="cpu").engine.name == "ctranslate2"
    for compute_type in ("int8", "auto"):
        translator = load(bundle_folder, device="cpu", compute_type=compute_type)
        assert translator.engine.name == "kernels"
        assert translator.engine.reason.startswith("the fastest in int8; int8 by ")
        assert translator.engine.signature(translator.settings) == "kernels/int8"
        assert translator.engine.signature(DecodingConfig(min_length=2)) == "torch"
    named = load(bundle_folder, engine="kernels", device="cpu", compute_type="int8")
    assert said(named.translate(LINES)) == said(translator.translate(LINES))


@pytest.mark.usefixtures("installed")
def test_whoever_asked_for_8_bits_is_told_of_what_has_none(
    bundle_folder: Path, caplog: pytest.LogCaptureFixture
):
    """A search that only torch has, and a tree, which is torch's."""
    warning = "the model is computed in float32, not in int8: kernels cannot do min_length=2"
    settings = DecodingConfig(min_length=2)
    for compute_type, count in (("auto", 0), ("int8", 1)):
        translator = load(bundle_folder, device="cpu", compute_type=compute_type)
        for _ in range(2):
            translator.translate(LINES[0], settings)
        warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert warnings.count(warning) == count
    explain_search(translator, LINES[0], settings=DecodingConfig(max_length=3))
    assert caplog.messages[-1] == (
        "the tree is that of torch in float32; kernels/int8 may find others"
    )


@pytest.mark.usefixtures("installed")
def test_a_process_that_translates_with_it_imports_no_torch(bundle_folder: Path):
    """Nor is a model closed at its end, when a daemon thread may be searching with it."""
    code = (
        "import sys; from pathlib import Path;"
        "from pellucid.backends.kernels import engine, library;"
        "engine.installed_library = lambda: library.Library(Path(sys.argv[2]));"
        "import pellucid; found = pellucid.load(sys.argv[1], 'kernels', 'cpu', 'int8')"
        ".translate('je suis'); assert 'torch' not in sys.modules; print(found.text);"
        "import types; told = types.SimpleNamespace(pk_close=print);"
        "none = library.Packed({'position_count': 0}, None);"
        "models = [library.Model(told, each, none) for each in ('deleted', 'at the end')];"
        "del models[0]"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, str(bundle_folder), str(compiled_library())],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = load(bundle_folder, "kernels", "cpu", "int8").translate("je suis")
    assert child.stdout.splitlines() == [expected.text, "deleted"]


@pytest.mark.usefixtures("installed")
def test_a_type_that_it_does_not_have_is_refused(bundle_folder: Path):
    with pytest.raises(ConfigError, match="computes in int8 alone: compute_type must be int8 or"):
        load(bundle_folder, engine="kernels", compute_type="float32")


@pytest.mark.usefixtures("installed")
def test_whoever_names_it_alone_gets_its_type(bundle_folder: Path, tmp_path: Path):
    """In Python, in the command and in the server; other engines keep float32."""
    translator = load(bundle_folder, "kernels", "cpu")
    assert translator.engine.signature(translator.settings) == "kernels/int8"
    served = models.open_model(models.ModelPlace("m", bundle_folder, engine="kernels"))
    assert served.translator.engine.name == "kernels"
    given, out = tmp_path / "given", tmp_path / "out"
    given.write_text("je suis\n")
    arguments = ["translate", str(bundle_folder), str(given), "-o", str(out)]
    result = CliRunner().invoke(cli, [*arguments, "--engine", "kernels"])
    assert result.exception is None
    assert out.read_text() == f"{translator.translate('je suis').text}\n"
    assert compute_type_for("auto", None) == compute_type_for("torch", None) == "float32"


def _not_built() -> Path:
    raise FileNotFoundError


@pytest.mark.parametrize("wheel", [None, SimpleNamespace(library_path=_not_built)])
def test_without_the_wheel_the_command_is_named(
    wheel: object, bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """None is what Python cannot import."""
    monkeypatch.setitem(sys.modules, "pellucid_kernels", wheel)
    installed_library.cache_clear()
    with pytest.raises(PellucidError, match="needs pellucid-kernels, which is not") as caught:
        load(bundle_folder, engine="kernels", device="cpu", compute_type="int8")
    assert "pip install ./kernels" in str(caught.value.hint)


def test_a_library_of_another_release_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("pellucid.backends.kernels.library.VERSION", 99)
    with pytest.raises(PellucidError, match="has interface 4, and interface 99 is needed"):
        Library(compiled_library())
    (tmp_path / "no.so").write_bytes(b"no library")
    with pytest.raises(PellucidError, match="cannot be loaded"):
        Library(tmp_path / "no.so")


@pytest.mark.usefixtures("installed")
def test_numbers_that_differ_by_a_bit_are_noticed_and_told(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    right = equation.forced_log_probs
    monkeypatch.setattr(
        opening, "forced_log_probs", lambda *given: np.nextafter(right(*given), np.float32(0))
    )
    with pytest.raises(BundleError, match="compute other numbers than their equation"):
        load(bundle_folder, engine="kernels", device="cpu", compute_type="int8")
    monkeypatch.setattr("pellucid.backends.load.ctranslate2_problems", lambda _: ["a test"])
    with caplog.at_level(logging.WARNING, "pellucid.backends"):
        assert load(bundle_folder, device="cpu", compute_type="int8").engine.name == "torch"
    assert "not the engine kernels: the kernels (" in caplog.text


def test_a_model_that_8_bits_change_too_much_is_refused(
    library: Library, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(opening, "_TOLERANCE", 1e-4)
    with pytest.raises(BundleError, match="8 bits are too few for this model"):
        open_model(tiny_bundle("pre-norm"), library)


# ---- hostile numbers ----


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_model_of_nan_or_infinity_is_an_error(number: float, library: Library):
    model = tiny_model("paper")
    model.get_parameter("decoder.layers.1.feed_forward.outer.bias").data[0] = number
    with pytest.raises(PellucidError, match="the model gives NaN or infinity"):
        library.open(weights_of(model)).search(Search([[5]], [4], np.ones(7, np.float32)))


def test_requests_out_of_range_are_refused(library: Library):
    model = library.open(weights_of(tiny_model("learned positions")))
    ones = np.ones(200, np.float32)
    right = Search([[5, 6]], [4], ones)
    assert model.search(right)
    for wrong in (
        dataclasses.replace(right, sources=[[VOCABULARY]]),
        dataclasses.replace(right, sources=[[-1]]),
        dataclasses.replace(right, sources=[[5] * 40]),  # with its stop 41 of 40 positions
        dataclasses.replace(right, limits=[40]),
        dataclasses.replace(right, limits=[-1]),
        dataclasses.replace(right, beam_size=65),
        dataclasses.replace(right, beam_size=0),
        dataclasses.replace(right, n_best=2),
        dataclasses.replace(right, forced=[[5, VOCABULARY]]),
    ):
        with pytest.raises(PellucidError, match="ids, lengths or limits out of range"):
            model.search(wrong)


def other_sizes() -> Iterator[Weights]:
    weights = weights_of(tiny_model("paper"))
    for name in ("heads", "key_size", "value_size", "d_ff"):
        for size in (0, -1, 3, 1 << 30):
            yield dataclasses.replace(weights, **{name: size})
    yield dataclasses.replace(weights, positions="none")
    yield dataclasses.replace(weights, norm="pre")
    yield dataclasses.replace(weights, decoder=())
    yield dataclasses.replace(weights, encoder=weights.encoder[:1] * 2000)
    low = dataclasses.replace(weights.target, whole=np.full((VOCABULARY, 8), -128, np.int8))
    assert isinstance(low, Rounded)
    yield dataclasses.replace(weights, target=low)


@pytest.mark.parametrize("number", range(len(list(other_sizes()))))
def test_sizes_that_do_not_fit_the_tensors_are_refused(number: int, library: Library):
    wrong = list(other_sizes())[number]
    if not wrong.decoder:
        wrong = dataclasses.replace(wrong, decoder=weights_of(tiny_model("paper")).decoder[:1])
        wrong = dataclasses.replace(wrong, output=one_word_less(wrong.output))
    with pytest.raises(BundleError, match="cannot compute a model of these sizes"):
        library.open(wrong)


@pytest.mark.parametrize("name", ["feed_forward.inner.bias", "self_attention.b_qkv", "w_qkv"])
def test_a_weight_and_a_bias_that_do_not_fit_are_refused(name: str, library: Library):
    """The library is told no size of a bias: a shorter one would be read beyond its end."""
    model = tiny_model("biases, untied, unshared")
    named = {n: each.detach().float().numpy() for n, each in model.named_parameters()}
    place = next(each for each in named if each.endswith(name))
    for spoilt in (named[place][..., :1].reshape(-1)[:1], np.zeros((1, *named[place].shape))):
        with pytest.raises(BundleError, match="a weight of the model and its bias do not fit"):
            read_weights({**named, place: spoilt}, model.config)

    weights = weights_of(model)
    short = dataclasses.replace(weights.encoder[0].inner, bias=np.zeros(1, np.float32))
    layer = dataclasses.replace(weights.encoder[0], inner=short)
    with pytest.raises(BundleError, match="cannot compute a model of these sizes"):
        library.open(dataclasses.replace(weights, encoder=(layer, *weights.encoder[1:])))


def one_word_less(matrix: Matrix) -> Matrix:
    assert isinstance(matrix, Rounded)
    return Rounded(matrix.whole[:-1], matrix.scale[:-1])


@pytest.mark.parametrize("models", [20, pytest.param(300, marks=pytest.mark.nightly)])
def test_random_models_run_clean_under_sanitizers(models: int, tmp_path: Path):
    """Addresses, undefined behavior and leaks; and all sets of instructions give the same bits."""
    program = build_module().build(tmp_path / "fuzz", fuzzer=True)
    child = subprocess.run([program, str(models), "0"], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr[-3000:]
    searches, refused = (int(word) for word in child.stdout.split()[:3:2])
    assert searches > models / 3
    assert refused > models / 6


@pytest.mark.nightly
def test_an_arm_processor_gives_the_same_bits(tmp_path: Path):
    """NEON under an emulator: the checksum of all results of random models is that of this one."""
    tools = ("aarch64-linux-gnu-gcc", "qemu-aarch64-static")
    if missing := [name for name in tools if shutil.which(name) is None]:
        pytest.skip(f"{missing[0]} is not installed")

    # as the library is compiled, and without sanitizers, which the emulator does not know
    flags = ["-std=c11", "-O3", "-ffp-contract=off", "-Wno-psabi"]
    printed = []
    for compiler, more, runner in (
        ("cc", [], []),
        ("aarch64-linux-gnu-gcc", ["-static"], ["qemu-aarch64-static", "-cpu", "max"]),
    ):
        program = tmp_path / compiler
        source = KERNELS_FOLDER / "fuzz.c"
        subprocess.run([compiler, *flags, *more, source, "-o", program, "-lm"], check=True)
        child = subprocess.run([*runner, program, "200", "0"], capture_output=True, text=True)
        assert child.returncode == 0, child.stderr
        printed.append(child.stdout.split()[-1])
    assert printed[0] == printed[1]
