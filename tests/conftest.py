"""Shapes written in signatures are executed: the hook is installed before pellucid is imported."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; two cores are shared

from jaxtyping import install_import_hook

install_import_hook(["pellucid.equations", "pellucid.model"], "beartype.beartype")
