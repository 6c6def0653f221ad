"""The floors of docs/architecture.md: imports go down, and nothing runs code from data."""

import ast
import dataclasses
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from package_trees import FILES, PACKAGE, nodes_of

ROOT = Path(__file__).parents[2]

FLOORS = {
    "core": 0,
    "phrasebook": 0.5,
    "equations": 1,
    "model": 2,
    "text": 2,
    "bundle": 3,
    "decoding": 4,
    "documents": 5,
    "evaluation": 5,
    "training": 6,
    "inspection": 7,
    "backends": 8,
    "batch": 9,
    "estimator": 9,
    "parts": 9,
    "serve": 9,
    "cli": 10,
}
FORBIDDEN_CALLS = {"eval", "exec", "compile"}
READS_PICKLES = PACKAGE / "backends" / "huggingface" / "pytorch_file.py"
"""The one file that may call torch.load, and only with weights_only=True."""
WORKS_WITHOUT_TORCH = {
    PACKAGE / name
    for name in (
        "bundle.py",
        "decoding/torch_engine.py",
        "decoding/translator.py",
        "decoding/writing.py",
        "backends/ctranslate2/cache.py",
        "backends/ctranslate2/export.py",
        "backends/copied_engine.py",
        "backends/forced_scores.py",
        "backends/kernels/opening.py",
        "backends/user_cache.py",
        "core/errors.py",
        "core/files.py",
        "core/system.py",
        "backends/ctranslate2/engine.py",
        "backends/load.py",
        "parts.py",
        "evaluation/signature.py",
        "serve/live.py",
        "serve/models.py",
        "serve/service.py",
        "training/presets.py",
    )
}
"""What a sentence passes on its way through CTranslate2 (tests/engines/test_without_torch.py), and
what refuses a wrong config or a missing file (tests/cli/test_bad_input.py):
here what needs torch, or another package that takes long to import, is imported when it is used."""
TOLD_KEYWORDS = {"allow_pickle", "shell", "weights_only"}
FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


def area_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return None if parts[0] in ("__init__", "__main__") else parts[0]


@dataclasses.dataclass(frozen=True)
class Source:
    """A file of the package, read and walked once for all tests."""

    path: Path
    imports: tuple[tuple[int, str], ...]
    calls: tuple[tuple[int, str, dict[str | None, str]], ...]
    """Line, what is called, and of the keyword arguments ``TOLD_KEYWORDS``, as they are written."""
    functions: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]

    @property
    def area(self) -> str | None:
        return area_of(self.path)

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the floor"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def dotted(node: ast.expr) -> str:
    """What is called, as it is written; empty where it is more than a name after names."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name) if before := dotted(value):
            return f"{before}.{name}"
        case _:
            return ""


@functools.cache
def sources() -> tuple[Source, ...]:
    found = []
    for path in FILES:
        nodes = nodes_of(path)
        calls = [
            (
                node.lineno,
                dotted(node.func),
                {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg in TOLD_KEYWORDS},
            )
            for node in nodes
            if isinstance(node, ast.Call)
        ]
        functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        found.append(Source(path, tuple(imports_of(nodes)), tuple(calls), tuple(functions)))
    return tuple(found)


def test_every_area_has_a_floor():
    areas = {area_of(path) for path in FILES} - {None}
    assert areas <= FLOORS.keys()


def test_imports_go_down():
    wrong = [
        f"{source.at(line)}: {source.area} (floor {FLOORS[source.area]}) imports {name}"
        for source in sources()
        if source.area is not None  # pellucid/__init__.py and __main__.py look down on the house
        for line, name in source.imports
        if name.startswith("pellucid.")
        and (area := name.split(".")[1]) in FLOORS
        and area != source.area
        and FLOORS[area] >= FLOORS[source.area]
    ]
    assert wrong == []


def runs_data(path: Path, called: str, keywords: dict[str | None, str]) -> bool:
    if path == READS_PICKLES and called == "torch.load":
        return keywords.get("weights_only") != "True"
    loads = ("torch.load", "torch.save", "torch.jit.load", "yaml.load")
    is_on = "True" in (keywords.get("shell"), keywords.get("allow_pickle"))
    return called in FORBIDDEN_CALLS or called in loads or is_on


def test_nothing_runs_code_from_data():
    """S1: no pickle, no eval, no torch.load, no shell."""
    wrong = []
    for source in sources():
        for line, name in source.imports:
            if name.split(".")[0] in FORBIDDEN_MODULES:
                wrong.append(f"{source.at(line)} imports {name}")
        for line, called, keywords in source.calls:
            if runs_data(source.path, called, keywords):
                wrong.append(f"{source.at(line)} calls {called} with {keywords}")
    assert wrong == []


KNOWS_THE_SYSTEM = PACKAGE / "core" / "system.py"
OF_SOME_SYSTEMS = re.compile(
    r"\bimport (fcntl|resource|msvcrt|winreg)\b|[\"'](/proc|/sys)\b|\bsys\.platform\b"
    r"|\bplatform\.system\b|\bos\.(uname|pread|sysconf|getloadavg|register_at_fork|O_NOFOLLOW"
    r"|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY|O_BINARY|sched_\w+|fsync)\b|\bsignal\.SIGHUP\b"
)
OF_SERVERS = {PACKAGE / "serve", PACKAGE / "cli" / "serve.py", PACKAGE / "documents" / "child.py"}
"""Where nothing is reached on Windows: the command refuses first. SIGHUP may be named there."""


def test_only_one_file_knows_what_systems_differ_in():
    wrong = []
    for path in FILES:
        refuses = not OF_SERVERS.isdisjoint({path, *path.parents})
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = OF_SOME_SYSTEMS.search(line)
            if found and path != KNOWS_THE_SYSTEM and not (refuses and "SIGHUP" in found[0]):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {found[0]}")
    assert wrong == []


def test_only_the_command_line_prints():
    wrong = [
        source.at(line)
        for source in sources()
        if source.area != "cli"
        for line, called, _ in source.calls
        if called == "print"
    ]
    assert wrong == []


def test_no_open_keyword_dictionaries():
    wrong = [
        f"{source.at(function.lineno)}: {function.name} takes **kwargs"
        for source in sources()
        for function in source.functions
        if function.args.kwarg is not None
    ]
    assert wrong == []


def test_late_imports_only_where_start_up_counts_or_a_package_is_optional():
    """Inside functions: anything in cli, lazily in pellucid/__init__.py, what needs torch where one
    can do without, optional packages, and parts of torch that take a second to load and that few
    runs need."""
    optional = {"matplotlib", "tensorboard", "torch.utils.tensorboard", "ctranslate2", "onnx"}
    optional |= {"pellucid_kernels", "huggingface_hub", "trackio", "wandb", "mlflow"}
    optional |= {"lxml", "markdown_it", "mdit_py_plugins", "polib", "yaml"}
    optional |= {"fsspec", "pyarrow", "zstandard", "datasets", "ray", "py3langid"}
    optional |= {f"torch.distributed.{part}" for part in ("device_mesh", "fsdp", "tensor")}
    of_metrics = {"numpy", "sacrebleu", "sacremoses", "sentencepiece"}
    wrong = []
    for source in sources():
        if source.area in ("cli", None) or source.path in WORKS_WITHOUT_TORCH:
            continue
        # the command line's help reads the table of metrics
        allowed = optional | of_metrics if source.area == "evaluation" else optional
        for function in source.functions:
            for line, name in imports_of(ast.walk(function)):
                if not any(name == each or name.startswith(each + ".") for each in allowed):
                    wrong.append(f"{source.at(line)} imports {name} inside {function.name}")
    assert wrong == []


def test_importing_pellucid_costs_nothing():
    code = "import sys, pellucid; print(sorted({'torch', 'numpy', 'pydantic'} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_help_does_not_import_torch():
    """In one process: what one command imports would be seen with the next as well."""
    names = ("", "demo", "train", "translate", "evaluate", "compare", "export", "import")
    code = (
        "import sys\n"
        "from pellucid.cli.main import cli\n"
        f"for name in {names!r}:\n"
        "    cli.main([*name.split(), '--help'], standalone_mode=False)\n"
        "    loaded = sorted({'torch', 'numpy', 'sacrebleu'} & set(sys.modules))\n"
        "    print('loaded', name, loaded)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.count("Usage:") == len(names)
    loaded = [line for line in result.stdout.splitlines() if line.startswith("loaded")]
    assert loaded == [f"loaded {name} []" for name in names]


def test_every_public_name_can_be_had():
    import pellucid

    for name in pellucid.__all__:
        assert getattr(pellucid, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pellucid.nothing  # noqa: B018
