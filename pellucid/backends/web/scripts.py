"""Joins modules of JavaScript to one script: a page of one file can import nothing.

Every module becomes a function of its own, so that no name of one meets a name of another. Modules
have the form that ours have: named imports with relative paths, and ``export`` before a
declaration. Lines that are comments are left out.
"""

import base64
import functools
import hashlib
import importlib.resources
import posixpath
import re

_ROOTS = {
    "ui": importlib.resources.files("pellucid.inspection") / "ui",
    "engine": importlib.resources.files("pellucid.backends.web") / "engine",
    "page": importlib.resources.files("pellucid.backends.web") / "page",
}
"""Where the files of each folder lie."""
_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_COMMENT = re.compile(r"^ *//.*\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|let|class) (\w+))", re.MULTILINE)


@functools.cache
def engine_script() -> str:
    """The engine of every exported page."""
    return join_modules("engine/worker.js", "PellucidEngine")


@functools.cache
def page_script() -> str:
    """Return the script that draws every exported page, beside its engine."""
    return join_modules("page/main.js", "pellucidPage")


@functools.cache
def script_sources() -> str:
    """Return the ``script-src`` that a Content-Security-Policy needs for an exported page to work.

    The two scripts by their hashes, and WebAssembly from bytes that the engine assembles.
    """
    digests = (hashlib.sha256(each.encode()).digest() for each in (engine_script(), page_script()))
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    return f"{' '.join(hashes)} 'wasm-unsafe-eval'"


def page_policy() -> str:
    """The Content-Security-Policy of an exported page: its two scripts, and nothing from anywhere.

    The worker runs the engine's own text, as a blob.
    """
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; worker-src blob:;"
        f" script-src {script_sources()}; base-uri 'none'; form-action 'none'"
    )


def read_asset(name: str) -> str:
    """A file by its folder and name, such as ``engine/model.js``."""
    folder, _, file = name.partition("/")
    return (_ROOTS[folder] / file).read_text(encoding="utf-8")


def join_modules(entry: str, variable: str) -> str:
    """A script that sets ``variable`` to what the module ``entry`` exports."""
    parts = [f"{_key(name)} = {_as_function(name)};\n" for name in _in_order(entry, ())]
    names = f"const modules = {{}};\n{''.join(parts)}"
    return f"const {variable} = (() => {{\n{names}return {_key(entry)};\n}})();\n"


def _key(name: str) -> str:
    return f'modules["{name}"]'


def _as_function(name: str) -> str:
    text = _COMMENT.sub("", read_asset(name))
    exported = [match[2] for match in _EXPORT.finditer(text)]

    def imported(match: re.Match[str]) -> str:
        names = match[1].replace(" as ", ": ")
        return f"const {{{names}}} = {_key(_resolve(name, match[2]))};\n"

    body = _EXPORT.sub(r"\1", _IMPORT.sub(imported, text))
    return f"(() => {{\n{body}return {{ {', '.join(exported)} }};\n}})()"


def _in_order(name: str, importers: tuple[str, ...]) -> list[str]:
    """``name`` after everything that it imports, each once."""
    assert name not in importers, f"modules import each other: {', '.join((*importers, name))}"
    found: dict[str, None] = {}
    for match in _IMPORT.finditer(read_asset(name)):
        found |= dict.fromkeys(_in_order(_resolve(name, match[2]), (*importers, name)))
    return [*found, name]


def _resolve(importer: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))
