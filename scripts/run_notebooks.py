"""Run the notebooks of docs/notebooks in a temporary folder and write what their cells print.

    make notebooks

The second and the third use the model that the first one trains. Each prints how long it took, by
the processor's clock. One thread and 32-bit floats decide what is printed, and no clock does: the
same machine writes the same files each time.
"""

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
ORDER = ("first-model", "look-inside", "a-student")


def main() -> None:
    """Run them in their order; after an error of a cell its notebook is not written."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ORDER:
            path = NOTEBOOKS / f"{name}.ipynb"
            start = time.process_time()
            notebook = run(json.loads(path.read_text("utf-8")))
            path.write_text(as_text(notebook), "utf-8")
            sys.stdout.write(f"{name}: {time.process_time() - start:.0f} s of processor time\n")


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the output of each cell, numbered as a fresh kernel would number them."""
    scope: dict[str, Any] = {}
    cells = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    for count, cell in enumerate(cells, start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), "cell", "exec"), scope)  # noqa: S102 - our own text

        lines = printed.getvalue().splitlines(keepends=True)
        stream = {"name": "stdout", "output_type": "stream", "text": lines}
        cell["outputs"] = [stream] if lines else []
        cell["execution_count"] = count

    notebook["metadata"]["code_of_outputs"] = code_of(notebook)
    return notebook


def code_of(notebook: dict[str, Any]) -> str:
    """The first digits of the SHA-256 of all code, by which a test sees that outputs are old."""
    code = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def as_text(notebook: dict[str, Any]) -> str:
    """The file of a notebook."""
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    main()
