"""The operating system: all that Linux, macOS and Windows do in different ways, or not at all.

No other module imports ``fcntl`` or ``resource``, reads below ``/proc`` or ``/sys``, or looks for a
function of ``os`` that a system may lack. macOS has no ``/proc``, no affinity and no bound on
memory that holds. Windows has none of these, and neither locks that end with their process nor a
fork: where that matters, ``LACKS_POSIX`` leads to one line that says so.
"""

import errno
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

_PROC, _SYS, _DEV = Path("/proc"), Path("/sys"), Path("/dev")
_MOST_LINES = 100
"""Lines of the description of one processor; a machine may have hundreds of them."""

IS_LINUX, IS_MACOS = sys.platform == "linux", sys.platform == "darwin"
LACKS_POSIX = fcntl is None
"""Whether this is Windows: no locks of files and folders, no fork, no limits of a process."""

HANG_UP: int | None = getattr(signal, "SIGHUP", None)
"""The signal of a terminal or a connection that is closed."""
END_SIGNALS = tuple(each for each in (signal.SIGINT, signal.SIGTERM, HANG_UP) if each is not None)
"""The signals that ask a process to end; programs cannot ignore SIGKILL."""


# Files and folders

_NOT_FOLLOWED = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK"))
_AS_IT_IS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY"))
_position = threading.Lock()


def open_to_read(path: Path, *, follows_links: bool = False) -> int:
    """The descriptor of a file or folder; no pipe waits for its writer, no child inherits it.

    Raises OSError; on Windows for every folder.
    """
    return os.open(path, os.O_RDONLY | _AS_IT_IS | (0 if follows_links else _NOT_FOLLOWED))


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """At most ``size`` bytes from a position, which a fork and other threads do not move."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    with _position:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, size)


def lock(descriptor: int, *, shared: bool = False, waits: bool = False) -> None:
    """Lock an open file or folder until it is closed or the process ends, however it ends.

    Raises BlockingIOError if another has locked it and this one does not wait, another OSError
    where there are no such locks: on Windows, and in some file systems of a network.
    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "this system has no locks that end with their process")
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fcntl.flock(descriptor, kind if waits else kind | fcntl.LOCK_NB)


def unlock(descriptor: int) -> None:
    """End a lock at once, also if a fork has the descriptor too."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def sync(descriptor: int) -> None:
    """Wait until what was written to a file is on the disk. Raises OSError."""
    # macOS: there fsync ends when the disk has the bytes in its own memory
    if hasattr(fcntl, "F_FULLFSYNC"):
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:  # a file system that does not know it
            os.fsync(descriptor)
    else:
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Make renames inside ``folder`` durable: a name is part of its folder, not of the file."""
    if LACKS_POSIX:
        return  # Windows opens no folder, and writes names with the file
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


_CURRENT_FOLDER = -100  # AT_FDCWD of Linux's <fcntl.h>
_EXCHANGE = 2  # RENAME_EXCHANGE of <linux/fs.h>, and RENAME_SWAP of macOS's <sys/stdio.h>


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step, by Linux's renameat2 or macOS's renamex_np.

    False if this system or file system cannot; then nothing has changed.
    """
    # a rename cannot replace a folder that is not empty, and Python has no call that can
    try:
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):  # Windows
        return False
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(library, "renameat2"):
        here = _CURRENT_FOLDER
        return not library.renameat2(here, names[0], here, names[1], _EXCHANGE)
    if hasattr(library, "renamex_np"):
        return not library.renamex_np(*names, _EXCHANGE)
    return False


# Processors


def usable_cores() -> int:
    """The logical cores that this process may use, which a container or a scheduler may limit."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def physical_cores() -> int:
    """The physical cores that this process may use; two threads of one core count once.

    All logical cores where the system does not say: outside Linux, and in some containers.
    """
    try:
        folders = [_SYS / f"devices/system/cpu/cpu{each}" for each in os.sched_getaffinity(0)]
        return len({(each / "topology/thread_siblings_list").read_text() for each in folders})
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def processor_fields() -> dict[str, str]:
    """Linux's description of the first processor, such as "model name" and "flags".

    Empty where it says nothing, as on other systems.
    """
    fields: dict[str, str] = {}
    try:
        with (_PROC / "cpuinfo").open(encoding="utf-8", errors="replace") as file:
            for line in itertools.islice(file, _MOST_LINES):
                name, _, value = line.partition(":")
                fields.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    return fields


def processor_name() -> str:
    """The name of the processor, whose instructions decide how sums are rounded."""
    import platform

    return processor_fields().get("model name") or platform.processor() or platform.machine()


def thread_count() -> int:
    """Return the number of threads that torch may use.

    Without torch the default that torch would take: ``OMP_NUM_THREADS``, or the physical cores that
    this process may use.
    """
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):  # else it is being imported
        return int(torch.get_num_threads())
    # OpenMP allows a list, with a number for each level of nesting
    named = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return physical_cores()


def is_busy() -> bool:
    """Whether more threads want to run than there are cores; False where nobody can tell."""
    try:
        return os.getloadavg()[0] > (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return False


def has_nvidia_card() -> bool:
    """Whether a driver of NVIDIA is loaded, in the Windows Subsystem for Linux too."""
    signs = (_PROC / "driver/nvidia/version", _DEV / "nvidiactl", _DEV / "dxg")
    return any(each.exists() for each in signs)


def may_have_gpu() -> bool:
    """False if PyTorch can certainly use no GPU here."""
    names = ("nvidiactl", "nvidia0", "kfd", "dxg")
    return not IS_LINUX or any((_DEV / each).exists() for each in names)


# Memory


class Memory(NamedTuple):
    """The memory of the machine in bytes."""

    total: int
    available: int | None
    """Bytes to be had without swapping; None where the system does not say (macOS)."""
    swap: int
    """Free bytes for swapping."""


def memory() -> Memory | None:
    """The memory of the machine; None where the system does not say."""
    try:
        # MemAvailable and not MemFree: the file cache makes room when it is asked to.
        lines = (_PROC / "meminfo").read_text(encoding="utf-8").splitlines()
        table = {line.partition(":")[0]: 1024 * int(line.split()[1]) for line in lines}
        return Memory(table["MemTotal"], table["MemAvailable"], table.get("SwapFree", 0))
    except (OSError, ValueError, LookupError):
        pass
    try:
        return Memory(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None, 0)
    except (AttributeError, OSError, ValueError):
        return None


def memory_limit() -> int | None:
    """The bytes of memory that a container may use, by version 2 or 1 of Linux's control groups.

    Memory in use is not subtracted: most of it is the file cache, which the kernel frees.
    """
    limits = []
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limits.append(int((_SYS / "fs/cgroup" / name).read_text()))
        except (OSError, ValueError):  # there is no such group, or no limit ("max")
            continue
    return min(limits, default=None)


def peak_memory() -> int:
    """The most bytes of memory that this process has used; 0 where the system does not say."""
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if IS_MACOS else 1024 * peak  # KiB on Linux


# Processes and their limits


def limit_open_files(wanted: int) -> int:
    """Let this process open ``wanted`` files at least, as far as the system allows; the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):  # macOS allows fewer than it says
        return soft
    return allowed


def limit_cpu_time(seconds: int, leeway: int) -> None:
    """End this process by SIGXCPU after so many seconds of CPU time, and kill it soon after."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + leeway))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold the text of a user


def limit_memory(more: int | None) -> bool:
    """Let this process allocate ``more`` bytes than it has now; None is without limit.

    Returns False where the system does not hold a process to that, as macOS.
    """
    space = resource.RLIM_INFINITY
    try:
        if more is not None:
            # Of address space: what libraries and the stacks of threads have reserved is there.
            pages = int((_PROC / "self/statm").read_text(encoding="ascii").split()[0])
            space = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (space, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        return False
    return True


def after_fork(call: Callable[[], None]) -> None:
    """Let ``call`` run in every process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)
