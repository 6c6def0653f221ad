"""Law: the averaged parameters of a run and the predictions of an ensemble are the equations'."""

import pytest
import torch
from tiny_models import sources, targets, tiny_model

from pellucid.core.special import PAD_ID
from pellucid.equations.averages import ensemble_log_probs, mean_of_parameters, moving_average
from pellucid.equations.embedding import shift_right
from pellucid.model.ensemble import Ensemble
from pellucid.text.batching import Batch
from pellucid.training.averaging import Average
from pellucid.training.config import TrainingConfig
from pellucid.training.objective import CrossEntropy
from pellucid.training.step import apply_gradient, build_optimizer, find_gradient

EXACT = {"rtol": 1e-12, "atol": 1e-12}
UPDATES = 12


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("settings", [{"average_decay": 0.5}, {"average_last": 3}])
def test_what_a_run_validates_is_the_average_of_its_parameters(
    settings: dict[str, object], optimizer: str
):
    """In training mode with dropout. The decay grows until the 8th update, where it is 0.5."""
    model = tiny_model(dropout=0.2).train()
    config = TrainingConfig.parse({"max_steps": UPDATES, "optimizer": optimizer, **settings})
    parameters = dict(model.named_parameters())
    average = Average(config, parameters)
    updates = build_optimizer(model, config)
    labels = targets(3, 4, seed=5)
    batch = Batch(
        source=sources(5, 3, 4),
        target_input=shift_right(labels, 2),
        labels=labels,
        target_token_count=int((labels != PAD_ID).sum()),
    )

    expected, snapshots = {}, []
    for update in range(1, UPDATES + 1):
        report = find_gradient(model, updates, [batch], CrossEntropy(0.1), config)
        apply_gradient(updates, report, 0.05)
        average.after_update()
        average.before_validation()

        present = {name: each.detach().clone() for name, each in parameters.items()}
        snapshots.append(present)
        for name, each in present.items():
            if "average_decay" in settings:
                before = expected.get(name, each)
                expected[name] = moving_average(before, each, update, config.average_decay)
            else:
                last = torch.stack([snapshot[name] for snapshot in snapshots[-3:]])
                expected[name] = mean_of_parameters(last)

        with average.applied():
            for name, parameter in parameters.items():
                torch.testing.assert_close(parameter.detach(), expected[name], **EXACT)
        for name, parameter in parameters.items():
            assert torch.equal(parameter, present[name])


@pytest.mark.parametrize("training", [False, True])
def test_an_ensemble_predicts_as_the_equation_says_and_so_do_its_gradients(training: bool):
    models = [tiny_model(variant, dropout=0.0).train(training) for variant in ("paper", "rotary")]
    ensemble = Ensemble(models)
    source, prefix = sources(5, 3, 4), shift_right(targets(3, 4, seed=5), 2)
    logits = torch.stack([model(source, prefix) for model in models])
    expected = ensemble_log_probs(logits)
    found = ensemble(source, prefix).softmax(dim=-1).log()
    torch.testing.assert_close(found, expected, **EXACT)

    # a weight for each entry, so that no gradients cancel
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(3)).double()
    parameters = list(ensemble.parameters())
    ours = torch.autograd.grad((found * weights).sum(), parameters)
    equation = torch.autograd.grad((expected * weights).sum(), parameters)
    torch.testing.assert_close(ours, equation, **EXACT)


@torch.no_grad()
def test_an_ensemble_steps_as_the_equation_says():
    models = [tiny_model(variant, dropout=0.0).eval() for variant in ("paper", "lstm")]
    ensemble = Ensemble(models)
    source, prefix = sources(5, 3, 4), shift_right(targets(3, 4, seed=5), 2)
    expected = ensemble_log_probs(torch.stack([model(source, prefix) for model in models]))
    state = ensemble.start(ensemble.encode(source))
    for position in range(prefix.shape[1]):
        log_probs, state = ensemble.step(prefix[:, position : position + 1], state)
        found = log_probs[:, 0].softmax(dim=-1).log()
        torch.testing.assert_close(found, expected[:, position], **EXACT)
