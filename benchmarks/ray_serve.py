"""The deployment of docs/scale.md under Ray Serve: each answer is compared with the model's own.

    pip install "ray[serve]"
    python benchmarks/ray_serve.py --model runs/demo --text test.fr

It starts Ray on this machine (``serve run translation:app``) in a temporary folder, waits until the
application answers, sends the lines from 16 threads, and stops it again. Times are not measured.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pellucid

ROOT = Path(__file__).parents[1]
ADDRESS = "http://127.0.0.1:8000/"
COMMAND = [sys.executable, "-c", "from ray.serve.scripts import cli; cli()", "run"]


def ask(text: str) -> str:
    data = json.dumps({"text": text}).encode()
    with urllib.request.urlopen(urllib.request.Request(ADDRESS, data), timeout=120) as answer:
        return json.load(answer)["translation"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--replicas", type=int, default=1)
    options = parser.parse_args()
    lines = options.text.read_text(encoding="utf-8").split("\n")[: options.lines]
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8").split("\n## Ray Serve\n")[1]
    found = re.search(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert found is not None
    code = found[1].replace("num_replicas=2", f"num_replicas={options.replicas}")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "translation.py").write_text(code)
        (folder / "runs").mkdir()
        (folder / "runs" / "en-de").symlink_to(options.model.resolve())
        environment = {
            **os.environ,
            "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
            "RAY_ADDRESS": "local",
            # On a busy machine a process of Ray needs longer than five seconds to start.
            "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
        }
        process = subprocess.Popen([*COMMAND, "translation:app"], cwd=folder, env=environment)
        try:
            deadline = time.monotonic() + 600
            while True:
                try:
                    ask(lines[0])
                    break
                except (urllib.error.URLError, ConnectionError):
                    assert process.poll() is None, "Ray Serve ended"
                    assert time.monotonic() < deadline, "Ray Serve did not answer"
                    time.sleep(1)
            with ThreadPoolExecutor(16) as pool:
                answers = list(pool.map(ask, lines))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)

    translator = pellucid.load(options.model)
    wanted = [each.text for each in translator.translate(lines)]
    differ = sum(one != other for one, other in zip(answers, wanted, strict=True))
    print(f"{len(lines)} lines: {len(lines) - differ} equal the model's own, {differ} differ")


if __name__ == "__main__":
    main()
