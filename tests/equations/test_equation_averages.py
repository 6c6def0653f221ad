"""Means of parameters, moving averages and ensembles: by hand, against torch and numpy."""

import math

import numpy as np
import pytest
import torch
from equation_checks import close
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pellucid.core.errors import ConfigError
from pellucid.equations.averages import ensemble_log_probs, mean_of_parameters, moving_average


@pytest.mark.by_hand
def test_a_mean_of_three_models_by_hand():
    """Equal weights: 9 / 3 and -3 / 3. Weights 2, 1 and 1: (2 + 2 + 6) / 4 and (3 - 6) / 4."""
    models = torch.tensor([[1.0, 0.0], [2.0, 3.0], [6.0, -6.0]])
    close(mean_of_parameters(models), [3.0, -1.0])
    close(mean_of_parameters(models, [2, 1, 1]), [2.5, -0.75])
    close(mean_of_parameters(models[:, 0], [0, 0, 0.1]), 6.0)
    infinite = torch.tensor([math.inf, math.nan, 6.0])  # they do not count at all
    close(mean_of_parameters(infinite, [0, 0, 0.1]), 6.0)


@pytest.mark.referee
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_mean_is_numpy_s(shape: tuple[int, ...]):
    models, weights = torch.randn(4, *shape), [0.1, 2, 0, 7.5]
    expected = np.average(models.numpy(), axis=0, weights=weights)
    close(mean_of_parameters(models, weights), torch.as_tensor(expected))
    close(mean_of_parameters(models), torch.as_tensor(np.mean(models.numpy(), axis=0)))


@pytest.mark.property
def test_only_the_ratio_of_the_weights_counts_however_large_they_are():
    models = torch.randn(4, 2, 3).float()
    expected = mean_of_parameters(models, [1, 2, 3, 4])
    for factor in (2, 1e-46, 1e38):  # the last two are not in float32
        scaled = mean_of_parameters(models, [factor * weight for weight in (1, 2, 3, 4)])
        close(scaled, expected, tolerance=1e-6)
    close(mean_of_parameters(models, [0.3] * 4), mean_of_parameters(models), tolerance=1e-6)


@pytest.mark.parametrize(
    "weights",
    [[1.0], [1, 1, 1], [0, 0], [3, -1], [math.nan, 1], [1, math.nan], [math.inf, 1], []],
)
def test_weights_that_give_no_mean_are_refused(weights: list[float]):
    with pytest.raises(ConfigError, match="2 models need 2 finite weights"):
        mean_of_parameters(torch.ones(2, 3), weights)


@pytest.mark.by_hand
def test_a_moving_average_by_hand():
    """d = ½. t = 1: 4. t = 2: d₂ = 3/12, so ¼ · 4 + ¾ · 8 = 7. t = 9: d₉ = 10/19 > ½, so ½."""
    average = moving_average(torch.tensor(100.0), torch.tensor(4.0), 1, 0.5)
    close(average, 4.0)
    average = moving_average(average, torch.tensor(8.0), 2, 0.5)
    close(average, 7.0)
    close(moving_average(average, torch.tensor(1.0), 9, 0.5), 4.0)


@pytest.mark.property
def test_a_moving_average_lies_between_its_two_values_and_a_constant_stays():
    average, parameter = torch.randn(50), torch.randn(50)
    for update in (1, 2, 10, 1000):
        result = moving_average(average, parameter, update, 0.9)
        assert (result <= torch.maximum(average, parameter) + 1e-12).all()
        assert (result >= torch.minimum(average, parameter) - 1e-12).all()
        close(moving_average(parameter, parameter, update, 0.9), parameter)


@pytest.mark.referee
def test_an_old_moving_average_is_torch_s():
    """torch.optim.swa_utils has the same decay from the first update on."""
    module = torch.nn.Linear(3, 2)
    theirs = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs.update_parameters(module)
    ours = module.weight.detach().clone()
    for update in range(100, 105):
        module.weight.data += torch.randn(2, 3)
        theirs.update_parameters(module)
        ours = moving_average(ours, module.weight.detach(), update, 0.9)
        close(ours, theirs.module.weight.detach())


@pytest.mark.parametrize(("update", "decay"), [(0, 0.9), (-1, 0.9), (5, 1.0), (5, -0.1)])
def test_updates_and_decays_out_of_range_are_refused(update: int, decay: float):
    with pytest.raises(ConfigError, match="update must be at least 1 and decay"):
        moving_average(torch.zeros(1), torch.ones(1), update, decay)


@pytest.mark.by_hand
def test_two_models_predict_together_by_hand():
    """The geometric means of (4/5, 1/5) and (1/2, 1/2) are as 2 to 1.

    With the first model once more they are as the cube roots of 16 to 1.
    """
    logits = torch.tensor([[0.8, 0.2], [0.5, 0.5]]).log()
    close(ensemble_log_probs(logits).exp(), [2 / 3, 1 / 3])
    close(ensemble_log_probs(torch.cat((logits, logits[:1]))).exp()[0], 1 / (1 + 16 ** (-1 / 3)))
    excluded = torch.tensor([[0.0, -math.inf], [-5.0, 0.0]])
    close(ensemble_log_probs(excluded).exp(), [1.0, 0.0])


@pytest.mark.referee
def test_an_ensemble_is_numpy_s_geometric_mean():
    logits = torch.randn(3, 2, 5, 7)
    probabilities = torch.nn.functional.softmax(logits, dim=-1).numpy()
    means = np.prod(probabilities, axis=0) ** (1 / 3)
    expected = means / means.sum(axis=-1, keepdims=True)
    close(ensemble_log_probs(logits).exp(), torch.as_tensor(expected))


@pytest.mark.property
def test_the_predictions_of_twins_are_those_of_one_and_a_constant_does_not_count():
    logits = torch.randn(3, 2, 5, 7)
    twins = logits[:1].expand(4, -1, -1, -1)
    close(ensemble_log_probs(twins), logits[0].log_softmax(dim=-1))
    raised = logits + torch.randn(3, 2, 5, 1)
    close(ensemble_log_probs(raised), ensemble_log_probs(logits))
    close(ensemble_log_probs(logits).exp().sum(dim=-1), torch.ones(2, 5))
