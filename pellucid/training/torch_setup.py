"""Settings of PyTorch and the C library during training; they are undone afterwards."""

import contextlib
import ctypes
import gc
from collections.abc import Iterator

import torch

from pellucid.core.errors import InputMissingError
from pellucid.core.world import local_rank, world_of_environment
from pellucid.training.config import RunConfig

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of <malloc.h>
_DEFAULT_TRIM, _DEFAULT_PAD, _DEFAULT_MMAP = 128 << 10, 0, 128 << 10  # of mallopt(3)
_LARGEST = (1 << 31) - 1
_PAD = 64 << 20


@contextlib.contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Within this block the C library keeps freed memory; afterwards it returns it to the kernel.

    glibc returns large blocks at once, and the kernel fills them with zeros page by page when they
    are needed again: a tenth of an update's time. Other C libraries are left alone.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return

    # Blocks above the threshold are mapped one by one and returned at once; with a high one they
    # come from the heap, which keeps them.
    libc.mallopt(_MMAP_THRESHOLD, 1 << 30)
    libc.mallopt(_TRIM_THRESHOLD, _LARGEST)
    libc.mallopt(_TOP_PAD, _PAD)
    try:
        yield
    finally:
        libc.mallopt(_MMAP_THRESHOLD, _DEFAULT_MMAP)
        libc.mallopt(_TRIM_THRESHOLD, _DEFAULT_TRIM)
        libc.mallopt(_TOP_PAD, _DEFAULT_PAD)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)


@contextlib.contextmanager
def no_plan_for_each_shape() -> Iterator[None]:
    """Within this block attention on a GPU takes a kernel that serves batches of any shape.

    In half precision PyTorch prefers cuDNN's, which compiles a plan for every new shape: an update
    of the paper's base model, with batches of all lengths, took 0.39 s on an H200, on the host.
    """
    was_enabled = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was_enabled)


@contextlib.contextmanager
def torch_for_training(config: RunConfig) -> Iterator[None]:
    """Set threads, seed, denormals, kernels, freed memory and garbage collection for training.

    Afterwards threads, kernels and generators are those of the caller again.
    """
    threads, generator = torch.get_num_threads(), torch.get_rng_state()
    # Asking for these would start CUDA, if nothing has.
    has_cuda = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    generators_of_gpus = torch.cuda.get_rng_state_all() if has_cuda else []

    if config.training.threads is not None:
        torch.set_num_threads(config.training.threads)

    # For what draws from PyTorch's own generator; dropout has its own source.
    torch.manual_seed(config.training.seed)
    torch.set_flush_denormal(True)  # numbers below 1e-38 cost a hundred times more than others
    gc.freeze()  # the collector then skips what has been imported, which stays anyway
    try:
        with freed_memory_is_kept(), no_plan_for_each_shape():
            yield
    finally:
        gc.unfreeze()
        torch.set_flush_denormal(False)  # the caller may need numbers that small
        torch.set_num_threads(threads)
        torch.set_rng_state(generator)
        if generators_of_gpus:
            torch.cuda.set_rng_state_all(generators_of_gpus)


def device_of(config: RunConfig) -> str:
    """Where this process trains, as PyTorch names it.

    Raises InputMissingError if a GPU was asked for, and PyTorch sees none.
    """
    wanted = config.training.device
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputMissingError(
            "training.device is cuda, but PyTorch sees no CUDA device",
            hint="use training.device=auto, or install a CUDA build of PyTorch",
        )
    if wanted == "cpu" or not torch.cuda.is_available():
        return "cpu"
    if world_of_environment().is_alone:
        return "cuda"

    # One GPU for each process of this machine, set before NCCL or FSDP pick the first by default.
    own = local_rank() % torch.cuda.device_count()
    torch.cuda.set_device(own)
    return f"cuda:{own}"
