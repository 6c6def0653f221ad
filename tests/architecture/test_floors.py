"""The floors of docs/architecture.md: imports go down, and nothing runs code from data."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pellucid"
FILES = sorted(PACKAGE.rglob("*.py"))

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
        "decoding/engine.py",
        "decoding/result.py",
        "decoding/translator.py",
        "backends/ctranslate2/cache.py",
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
what refuses a wrong config (tests/cli/test_bad_input.py):
here what needs torch, or another package that takes long to import, is imported when it is used."""
FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


def area_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return None if parts[0] in ("__init__", "__main__") else parts[0]


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(tree: ast.Module) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the floor"
            module = node.module or ""
            found += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
    return found


def functions_of(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_every_area_has_a_floor():
    areas = {area_of(path) for path in FILES} - {None}
    assert areas <= FLOORS.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path):
    own = area_of(path)
    if own is None:
        return  # pellucid/__init__.py and __main__.py look down on the whole house
    for line, name in imports_of(tree_of(path)):
        parts = name.split(".")
        if parts[0] != "pellucid" or len(parts) < 2 or parts[1] not in FLOORS:
            continue
        area = parts[1]
        assert area == own or FLOORS[area] < FLOORS[own], (
            f"{path.relative_to(ROOT)}:{line}: {own} (floor {FLOORS[own]}) imports"
            f" {area} (floor {FLOORS[area]})"
        )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_runs_code_from_data(path: Path):
    """S1: no pickle, no eval, no torch.load, no shell."""
    tree = tree_of(path)
    for line, name in imports_of(tree):
        assert name.split(".")[0] not in FORBIDDEN_MODULES, f"{path}:{line} imports {name}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called not in FORBIDDEN_CALLS, f"{path}:{node.lineno} calls {called}"
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if path == READS_PICKLES and called == "torch.load":
            assert keywords.get("weights_only") == "True", f"{path}:{node.lineno} unpickles"
            continue
        assert called not in ("torch.load", "torch.save", "torch.jit.load", "yaml.load"), (
            f"{path}:{node.lineno} calls {called}"
        )
        assert keywords.get("shell") != "True", f"{path}:{node.lineno} runs a shell"
        assert keywords.get("allow_pickle") != "True", f"{path}:{node.lineno} unpickles"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_command_line_prints(path: Path):
    if area_of(path) == "cli":
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) != "print", f"{path}:{node.lineno} prints"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_open_keyword_dictionaries(path: Path):
    for function in functions_of(tree_of(path)):
        assert function.args.kwarg is None, f"{path}: {function.name} takes **kwargs"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_late_imports_only_where_start_up_counts_or_a_package_is_optional(path: Path):
    """Inside functions: anything in cli, lazily in pellucid/__init__.py, what needs torch where one
    can do without, optional packages, and parts of torch that take a second to load and that few
    runs need."""
    if area_of(path) in ("cli", None) or path in WORKS_WITHOUT_TORCH:
        return
    optional = {"matplotlib", "tensorboard", "torch.utils.tensorboard", "ctranslate2", "onnx"}
    optional |= {"lxml", "markdown_it", "mdit_py_plugins", "polib", "yaml"}
    optional |= {"fsspec", "pyarrow", "zstandard", "datasets", "ray", "py3langid"}
    optional |= {f"torch.distributed.{part}" for part in ("device_mesh", "fsdp", "tensor")}
    if area_of(path) == "evaluation":  # the command line's help reads the table of metrics
        optional |= {"sacrebleu", "sacremoses", "sentencepiece"}
    for function in functions_of(tree_of(path)):
        for line, name in imports_of(ast.Module(body=[function], type_ignores=[])):
            allowed = any(name == each or name.startswith(each + ".") for each in optional)
            assert allowed, f"{path}:{line} imports {name} inside {function.name}"


def test_importing_pellucid_costs_nothing():
    code = "import sys, pellucid; print(sorted({'torch', 'numpy', 'pydantic'} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command",
    [[], ["demo"], ["train"], ["translate"], ["evaluate"], ["compare"], ["export"], ["import"]],
)
def test_help_does_not_import_torch(command: list[str]):
    code = (
        "import sys\n"
        "from pellucid.cli.main import cli\n"
        f"cli.main({[*command, '--help']!r}, standalone_mode=False)\n"
        "print(sorted({'torch', 'numpy', 'sacrebleu'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "Usage:" in result.stdout
    assert result.stdout.strip().endswith("[]")


def test_every_public_name_can_be_had():
    import pellucid

    for name in pellucid.__all__:
        assert getattr(pellucid, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pellucid.nothing  # noqa: B018
