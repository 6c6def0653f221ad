"""PyTorch's optimizers without its compiler, whose import takes three CPU-seconds of every start.

PyTorch marks these methods for its compiler, and with the first call of one of them it imports the
whole of it, although nothing is compiled here. Below the marks they are plain functions.
"""

import inspect

import torch


class Optimizer(torch.optim.Optimizer):
    """The base of every optimizer here: PyTorch's own, unmarked."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class AdamW(Optimizer, torch.optim.AdamW):
    """PyTorch's AdamW, unmarked."""

    # the mark of a step also switches gradients off
    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


class SGD(Optimizer, torch.optim.SGD):
    """PyTorch's SGD, unmarked."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.SGD.step))
