"""Law: clear = fast. The program gives what the page of equations gives, in training mode too.

The page is ``pellucid/equations/transformer.py``; every pair of settings of two switches is met by
one config (``switch_pairs.py``). Which numbers dropout sets to zero, and where, is part of the
equation (the paper's §5.4): both sides draw from the same seed.
"""

import dataclasses
from collections.abc import Sequence

import pytest
import torch
from switch_pairs import settings_that_meet_every_pair
from tiny_models import EVERY_KIND, VOCABULARY, sources, targets, tiny_model
from torch import Tensor

from pellucid.core.special import EOS_ID, PAD_ID
from pellucid.equations import text_models, transformer
from pellucid.equations.losses import guided_alignment_loss
from pellucid.equations.weights import count_parameters, parameter_sets
from pellucid.model.build import build_any_model
from pellucid.model.clear import clear_text_model, clear_transformer
from pellucid.model.config import parse_model_config
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import Batch, label_positions
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import CrossEntropy, GuidedAlignment, build_objective
from pellucid.training.precision import autocast
from pellucid.training.step import find_gradient

EXACT = {"rtol": 1e-12, "atol": 1e-12}
GRADIENTS = {"rtol": 1e-11, "atol": 1e-11}
EVERY_PAIR = settings_that_meet_every_pair()
FEW = 20
"""The first configs have every choice of every switch, and seven of eight pairs of choices.
Training meets every pair each time; what else is held to the page meets the rest at night."""


def later(index: int) -> list[pytest.MarkDecorator]:
    return [pytest.mark.nightly] if index >= FEW else []


few_numbered = pytest.mark.parametrize(
    "settings",
    [pytest.param(each, marks=later(index)) for index, each in enumerate(EVERY_PAIR)],
    ids=range(len(EVERY_PAIR)),
)


def random_model(
    settings: dict[str, object], kind: str = "transformer", noise: float = 0.3
) -> SequenceModel:
    """A model in float64 none of whose parameters is zero or one, in training mode."""
    config = parse_model_config({"kind": kind, **settings})
    model = build_any_model(config, VOCABULARY, VOCABULARY).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
    return model


def example() -> tuple[Tensor, Tensor]:
    """Sources of 5, 3, 1 and no tokens, and labels of 4, 1, 6 and 2, filled up with PAD."""
    source = sources(5, 3, 1, 2)
    source[3] = PAD_ID
    labels = targets(4, 6, seed=8)
    labels[:, 0] = torch.tensor([4, EOS_ID, 6, 7])
    for row, length in enumerate((4, 1, 6, 2)):
        labels[row, length - 1] = EOS_ID
        labels[row, length:] = PAD_ID
    return source, labels


def batch_of(source: Tensor, labels: Tensor, *, on_accelerator: bool = False) -> Batch:
    """The batch as training sees it; an accelerator gets the positions of the labels as well."""
    return Batch(
        source=source,
        target_input=transformer.shift_right(labels, 2),
        labels=labels,
        target_token_count=int((labels != PAD_ID).sum()),
        non_padding=label_positions(labels) if on_accelerator else None,
    )


def gradients(model: SequenceModel, loss: Tensor) -> list[Tensor | None]:
    return list(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True))


def assert_equal_gradients(
    model: SequenceModel, ours: Sequence[Tensor | None], theirs: Sequence[Tensor | None]
) -> None:
    """A parameter that a pass does not use has a gradient of zero or none."""
    for (name, parameter), left, right in zip(model.named_parameters(), ours, theirs, strict=True):
        zero = torch.zeros_like(parameter)
        torch.testing.assert_close(
            zero if left is None else left,
            zero if right is None else right,
            **GRADIENTS,
            msg=lambda text, name=name: f"{name}: {text}",
        )


@pytest.mark.parametrize(
    ("settings", "training"),
    [
        *(pytest.param(each, True, id=f"training-{n}") for n, each in enumerate(EVERY_PAIR)),
        *(
            pytest.param(each, False, marks=later(n), id=f"evaluation-{n}")
            for n, each in enumerate(EVERY_PAIR)
        ),
    ],
)
def test_logits_and_their_gradients(settings: dict[str, object], training: bool):
    model = random_model(settings).train(training)
    source, labels = example()
    target_input = transformer.shift_right(labels, 2)

    model.dropout_source.seed(7)
    fast = model(source, target_input)
    model.dropout_source.seed(7)
    clear = transformer.logits(clear_transformer(model), source, target_input)

    torch.testing.assert_close(fast, clear, **EXACT)
    direction = torch.randn(fast.shape, generator=torch.Generator().manual_seed(2)).double()
    direction[target_input == PAD_ID] = (
        0.0  # nothing is learned there: the row of PAD has no gradient
    )
    assert_equal_gradients(
        model,
        gradients(model, (fast * direction).sum()),
        gradients(model, (clear * direction).sum()),
    )


@pytest.mark.parametrize(
    ("settings", "on_accelerator"),
    [
        *(pytest.param(each, False, marks=later(n)) for n, each in enumerate(EVERY_PAIR)),
        *((each, True) for each in EVERY_PAIR[:6]),
    ],
    ids=[*range(len(EVERY_PAIR)), *(f"accelerator {index}" for index in range(6))],
)
def test_an_update_follows_the_gradient_of_the_written_loss(
    settings: dict[str, object], on_accelerator: bool
):
    """Through the training step itself, which has to put the model into training mode."""
    model = random_model(settings).eval()
    source, labels = example()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    config = TrainingConfig(max_steps=1, clip_norm=0.0)

    model.dropout_source.seed(7)
    batch = batch_of(source, labels, on_accelerator=on_accelerator)
    report = find_gradient(model, optimizer, [batch], CrossEntropy(0.1), config)
    ours = [parameter.grad for parameter in model.parameters()]

    model.train().dropout_source.seed(7)
    total = transformer.loss(clear_transformer(model), source, labels, 0.1)
    theirs = gradients(model, total / batch.target_token_count)
    assert report.loss == pytest.approx(total.item() / batch.target_token_count, rel=1e-12)
    assert_equal_gradients(model, ours, theirs)


@pytest.mark.parametrize("head", [None, 0], ids=["mean of all heads", "one head"])
@pytest.mark.parametrize("settings", EVERY_PAIR[:FEW], ids=range(FEW))
def test_guided_alignment_follows_the_attention_of_the_page(
    settings: dict[str, object], head: int | None, monkeypatch: pytest.MonkeyPatch
):
    """In training mode, with the weights of the page before dropout reaches them."""
    model = random_model({**settings, "layer_drop": 0.0}).train()
    layer = model.config.decoder_layers - 1
    source, labels = example()
    batch = batch_of(source, labels)
    links = torch.tensor([[0, 0, 1], [0, 0, 3], [0, 3, 0], [1, 0, 2], [2, 4, 0]])
    batch = dataclasses.replace(batch, links=links)
    objective = build_objective(
        TrainingConfig(max_steps=1), guided=GuidedAlignment(layer, head, 0.7)
    )

    model.dropout_source.seed(7)
    ours = objective(model, batch).loss

    found: list[Tensor] = []
    softmax = transformer.masked_softmax
    monkeypatch.setattr(
        transformer,
        "masked_softmax",
        lambda scores, mask: found.append(softmax(scores, mask)) or found[-1],
    )
    model.dropout_source.seed(7)
    written = transformer.loss(clear_transformer(model), source, labels, 0.1)
    weights = found[-1]  # cross-attention comes last in a block
    assert weights.shape[2:] == (labels.shape[1], source.shape[1])
    given = torch.zeros(len(source), *weights.shape[2:], dtype=torch.bool)
    given[tuple(links.T)] = True
    chosen = weights.mean(dim=1) if head is None else weights[:, head]
    written = written + 0.7 * guided_alignment_loss(chosen, given)

    torch.testing.assert_close(ours, written, **EXACT)
    assert_equal_gradients(model, gradients(model, ours), gradients(model, written))


@pytest.mark.property
@pytest.mark.parametrize("settings", EVERY_PAIR[:20], ids=range(20))
def test_the_parameter_sets_hold_every_parameter_once(settings: dict[str, object]):
    """EQ-85, EQ-86: the shapes of the paper, and as many numbers as the program learns."""
    model = random_model(settings)
    page = clear_transformer(model)
    sets = dict(parameter_sets(page))
    config = model.config
    key, value = sets["decoder.0.cross_attention.w_k"], sets["decoder.0.cross_attention.w_v"]
    assert ("decoder.0.ssru.w_f" in sets) == (config.decoder == "ssru")
    assert key.shape == (config.heads, config.d_model, config.key_size)
    assert value.shape == (config.heads, config.d_model, config.value_size)
    if config.projection == "per_head":  # the composites of two stages are products, not parameters
        assert count_parameters(page) == sum(each.numel() for each in model.parameters())


def test_an_accelerator_gets_the_positions_of_labels_and_not_of_the_source():
    """The meta device has shapes only: 13 labels, 11 words of the source."""
    source, labels = example()
    there = batch_of(source, labels).to("meta")
    assert there.non_padding is not None
    assert there.non_padding.shape == ((labels != PAD_ID).sum().item(),)
    assert (labels != PAD_ID).sum() != (source != PAD_ID).sum()


@few_numbered
def test_cached_steps_and_crossed_beams(settings: dict[str, object]):
    """Beams that go on with each other's words; every step has the logits of the page."""
    model = random_model({**settings, "encoder_layers": 1}).eval()
    source, page = sources(4, 2), clear_transformer(model)
    words = [targets(2, 5, seed=seed) for seed in (3, 4)]
    with torch.no_grad():
        state = model.start(model.encode(source))
        _, state = model.step(words[0][:, :1], state)
        state = state.select(torch.tensor([[0, 0], [1, 1]]))
        prefixes = [words[0][:, :1], words[0][:, :1]]
        found = [torch.empty(2, 0, VOCABULARY).double()] * 2
        for position in range(1, 5):
            ids = torch.stack([word[:, position] for word in words], dim=1)
            logits, state = model.step(ids, state)
            prefixes = [
                torch.cat((prefix, ids[:, [beam]]), dim=1) for beam, prefix in enumerate(prefixes)
            ]
            found = [torch.cat((each, logits[:, [beam]]), dim=1) for beam, each in enumerate(found)]
            state = state.select(torch.tensor([[1, 0], [3, 2]]))
            prefixes.reverse()
            found.reverse()

        for prefix, each in zip(prefixes, found, strict=True):
            expected = transformer.logits(page, source, prefix)[:, 1:]
            torch.testing.assert_close(each, expected, **EXACT)


@few_numbered
def test_models_of_plain_text(settings: dict[str, object]):
    """Encoder-only and decoder-only models: logits, and the loss that an update follows."""
    own = {"share_embeddings", "start_symbol", "decoder"}
    text = {name: value for name, value in settings.items() if name not in own}
    ids = example()[1]
    for kind, layers, logits in (
        ("encoder", "decoder_layers", text_models.fill_logits),
        ("decoder", "encoder_layers", text_models.continue_logits),
    ):
        model = random_model({k: v for k, v in text.items() if k != layers}, kind)
        model.dropout_source.seed(7)
        fast = model(ids)
        model.dropout_source.seed(7)
        torch.testing.assert_close(fast, logits(clear_text_model(model), ids), **EXACT)

        model.dropout_source.seed(7)
        sums = model.loss(ids, transformer.shift_right(ids, 2), ids, 0.1)
        model.dropout_source.seed(7)
        written = written_text_loss(model, ids)
        torch.testing.assert_close(sums.loss, written, **EXACT)
        assert_equal_gradients(model, gradients(model, sums.loss), gradients(model, written))


def written_text_loss(model: SequenceModel, ids: Tensor) -> Tensor:
    if model.config.kind == "decoder":
        return text_models.continue_loss(clear_text_model(model), ids, 0.1)
    hidden, chosen = model.hide(ids)
    return text_models.fill_loss(clear_text_model(model), hidden, ids, chosen, 0.1)


EMPTY = ("no sentence", "no source", "no target")


@pytest.mark.parametrize(
    ("variant", "shape"),
    [
        # a shape of three for each everyday, and all three for two kinds that differ most
        pytest.param(
            variant,
            shape,
            marks=[]
            if variant in ("paper", "additive") or index % 3 == number
            else pytest.mark.nightly,
        )
        for index, variant in enumerate(EVERY_KIND)
        for number, shape in enumerate(EMPTY)
    ],
)
def test_what_is_empty_gives_logits_of_its_shape_and_a_loss_of_its_labels(variant: str, shape: str):
    model = tiny_model(variant).train()
    source = sources(3, 2)[: 0 if shape == "no sentence" else 2]
    source = source[:, : 0 if shape == "no source" else 3]
    labels = targets(2, 4)[: len(source), : 0 if shape == "no target" else 4]
    target_input = torch.full_like(labels, 2)

    logits = model(source, target_input)
    assert logits.shape == (*labels.shape, VOCABULARY)
    assert logits.isfinite().all()
    sums = model.loss(source, target_input, labels, 0.1)
    assert sums.token_count == labels.numel()
    sums.loss.backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())

    model.eval()
    state = model.start(model.encode(source))
    stepped, state = model.step(torch.full((len(source), 1), 2), state)
    assert stepped.shape == (len(source), 1, VOCABULARY)
    if shape == "no source":
        torch.testing.assert_close(stepped, model(source, target_input[:, :1]), **EXACT)


WELL_CONDITIONED: dict[str, dict[str, object]] = {
    "paper": {},
    "biases": {"attention_bias": True, "output_bias": True, "tie_output": False},
    "pre-norm, rms, gelu, rotary": {
        "norm": "pre",
        "norm_kind": "rms",
        "activation": "gelu",
        "positions": "rotary",
    },
    "pre-norm, swish, relative": {"norm": "pre", "activation": "swish", "positions": "relative"},
    "pre-norm, alibi": {"norm": "pre", "positions": "alibi"},
    "ssru": {"decoder": "ssru"},
}


@pytest.mark.parametrize("variant", WELL_CONDITIONED)
def test_bfloat16_keeps_the_direction_and_the_size_of_every_gradient(variant: str):
    """Under autocast, as training runs on a CPU that has bfloat16, beside the page in float64.

    The worst cosine of these models is 0.996, and a norm differs by 2.0 percent at most; queries,
    keys and values whose gradients are 5 percent too long are noticed.
    """
    sizes = {"d_model": 32, "d_ff": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 2}
    model = random_model({**sizes, **WELL_CONDITIONED[variant], "dropout": 0.0}, noise=0.02)
    source, labels = sources(*range(2, 14)), targets(12, 11, seed=8)
    total = transformer.loss(clear_transformer(model), source, labels, 0.1)
    theirs = gradients(model, total)

    model.float()
    with autocast("bf16", "cpu"):
        sums = CrossEntropy(0.1)(model, batch_of(source, labels))
    ours = gradients(model, sums.loss)
    for (name, _), left, right in zip(model.named_parameters(), ours, theirs, strict=True):
        assert left is not None
        assert right is not None
        cosine = torch.cosine_similarity(left.double().flatten(), right.flatten(), dim=0)
        assert cosine > 0.99, name
        assert left.norm() / right.norm() == pytest.approx(1.0, abs=0.03), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("variant", ["paper", "relative", "alibi, pre-norm", "ssru, from zero"])
def test_a_model_of_half_floats_is_its_page_and_has_gradients(variant: str, dtype: torch.dtype):
    """No autocast brings the rows back to the dtype of the parameters."""
    model = tiny_model(variant).to(dtype)
    source, target_input = sources(4, 3), targets(2, 3)
    logits = model(source, target_input)
    assert logits.dtype == dtype
    page = transformer.logits(clear_transformer(model), source, target_input)
    torch.testing.assert_close(page, logits, rtol=0.1, atol=0.1)
    logits.sum().backward()
    assert all(each.grad is not None for each in model.parameters() if each.requires_grad)
