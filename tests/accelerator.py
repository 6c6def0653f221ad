"""A CPU that gives itself out as a CUDA device, so that its branches run with real numbers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda")


class CudaByName(TorchFunctionMode):
    """Every tensor says that it is on ``cuda``; what is put there stays where it is.

    The program chooses its branches by ``tensor.device``, so that all of those for an accelerator
    are taken. The numbers are still a CPU's, and can be compared with what a CPU's branches give.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_host = False
        """Whether tensors say that they are on the CPU, from which they are sent to the device."""
        self.pinned: list[Tensor] = []
        """What was copied into pinned memory, which a CPU has none of."""
        self.asynchronous: list[Tensor] = []
        """What was sent without waiting for it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func == Tensor.device.__get__:
            return torch.device("cpu") if self.is_host else CUDA
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        if func == Tensor.pin_memory:
            self.pinned.append(args[0])
            return args[0]
        named = kwargs or {}
        if func == Tensor.to and named.get("non_blocking"):
            self.asynchronous.append(args[0])
        return func(*map(_here, args), **{name: _here(each) for name, each in named.items()})


def _here(argument: Any) -> Any:
    is_there = isinstance(argument, torch.device) and argument.type == "cuda"
    return torch.device("cpu") if is_there else argument
