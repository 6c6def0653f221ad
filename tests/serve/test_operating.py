"""What an operator does while the server runs, as docs/serving.md says it."""

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from commands import pellucid
from served_models import LINES, bundle, serving, write_bundle
from server_processes import ServerProcess, serving_process, wait_until

from pellucid.bundle import save_bundle
from pellucid.cli.serve import _read_keys, serve
from pellucid.core.errors import ConfigError
from pellucid.serve.metrics import Metrics
from pellucid.serve.server.auth import KeyRing
from pellucid.serve.server.guard import Policy

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "docs" / "monitoring"
OLD, NEW = "an old key of many letters", "a new key of many letters"


def status(server: ServerProcess, headers: Mapping[str, str], path: str = "/v1/models") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("GET", path, headers=dict(headers))
        return connection.getresponse().status
    finally:
        connection.close()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_keys_are_replaced_and_never_by_none():
    keys = KeyRing([OLD])
    keys.replace([OLD, NEW])
    assert keys.opens(OLD)
    assert keys.opens(NEW)
    keys.replace([NEW])
    assert not keys.opens(OLD)
    for bad in ([], ["short"], ["sha256:00"]):
        with pytest.raises(ConfigError):
            keys.replace(bad)
        assert keys.opens(NEW)


def test_the_key_of_the_environment_has_no_line_end(monkeypatch: pytest.MonkeyPatch):
    """A secret that ``echo`` wrote; it opened nothing."""
    monkeypatch.setenv("PELLUCID_API_KEY", f"{NEW}\n")
    assert _read_keys(None) == [NEW]


@pytest.mark.parametrize(
    "line",
    ["short", f"{NEW} # of Bob", f"{NEW}  -", "schlüssel-schlüssel", "sha256:00", "SHA256:00"],
)
def test_a_line_that_opens_nothing_is_no_key(tmp_path: Path, line: str):
    """The server started with it, and refused every client."""
    path = tmp_path / "keys"
    path.write_text(f"# of Alice\n  # in use\n{OLD}\n{line}\n")
    with pytest.raises(ConfigError, match=r"keys, line 4: an? .*API key must "):
        _read_keys(str(path))
    path.write_text(f"  # in use\n{OLD}\n")
    assert _read_keys(str(path)) == [OLD]


def test_a_hash_of_a_key_may_be_named_in_capitals():
    digest = hashlib.sha256(NEW.encode()).hexdigest()
    assert KeyRing([f"SHA256:{digest.upper()}"]).opens(NEW)
    assert not KeyRing([f"SHA256:{digest}"]).opens(f"SHA256:{digest}")


@pytest.mark.parametrize("option", ["--glossary", "--languages"])
def test_a_name_that_stands_twice_is_refused(tmp_path: Path, option: str):
    """The last one counted, without a word."""
    model, terms = write_bundle(tmp_path / "m"), tmp_path / "terms.tsv"
    terms.write_text("source\ttarget\nchat\tcat\n")
    value = f"m={terms if option == '--glossary' else 'fr-en'}"
    result = pellucid("serve", model, "--port", 0, option, value, option, value)
    assert result.code == ConfigError.exit_code
    assert result.error_line == f"error: {option} is given twice for m"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_key_is_changed_without_a_restart(tmp_path: Path, workers: int):
    folder = write_bundle(tmp_path / "tiny")
    file = tmp_path / "keys"
    file.write_text(f"{OLD}\n")
    options = ["--api-key-file", file, "--engine", "torch", "--workers", workers]
    with serving_process(folder, *options, "--log-format", "json") as server:
        assert (status(server, bearer(OLD)), status(server, bearer(NEW))) == (200, 401)
        file.write_text(f"{OLD}\n{NEW}\n")
        server.signal(signal.SIGHUP)
        wait_until(lambda: all(status(server, bearer(NEW)) == 200 for _ in range(5)))
        assert status(server, bearer(OLD)) == 200
        file.write_text(f"{NEW}\n")
        server.signal(signal.SIGHUP)
        wait_until(lambda: all(status(server, bearer(OLD)) == 401 for _ in range(8)))
        assert status(server, bearer(NEW)) == 200
        file.write_text("# none\n")
        server.signal(signal.SIGHUP)
        assert all(status(server, bearer(NEW)) == 200 for _ in range(5))
        assert status(server, {}) == 401

        basic = base64.b64encode(f"anybody:{NEW}".encode()).decode()
        assert status(server, {"Authorization": f"Basic {basic}"}, "/docs") == 200
    assert server.command.result is not None
    lines = server.command.result.err.splitlines()
    entries = [json.loads(line) for line in lines if line.startswith("{")]
    asked = [entry for entry in entries if entry.get("path") == "/docs"]
    assert [(entry["method"], entry["status"], entry["level"]) for entry in asked] == [
        ("GET", 200, "INFO")
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", asked[0]["time"])
    assert asked[0]["request_id"] in asked[0]["message"]
    assert OLD not in server.command.result.err
    assert NEW not in server.command.result.err


def test_a_browser_is_asked_for_the_key_of_the_description():
    with serving(policy=Policy(keys=KeyRing([OLD]))) as client:
        for path in ("/docs", "/openapi.json"):
            refused = client.get(path)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == 'Basic realm="pellucid"'
            assert client.get(path, auth=("anybody", OLD)).status_code == 200
            assert client.get(path, auth=("anybody", NEW)).status_code == 401
        # What such a browser would send from a page of another origin changes nothing.
        body = {"text": LINES[0]}
        other = {"origin": "http://evil.example"}
        answer = client.post("/v1/translate", json=body, headers=other, auth=("a", OLD))
        assert answer.status_code == 403


def recipes() -> list[str]:
    """The blocks of the recipes in docs/serving.md, in order."""
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    part = page.partition("**Upgrade, rollback, canary.**")[2].partition("**Several processes.**")[
        0
    ]
    return re.findall(r"```\n(.*?)```", part, re.DOTALL)


def test_upgrade_rollback_and_canary_are_as_the_page_says(tmp_path: Path):
    start, upgrade, rollback, canary = recipes()
    save_bundle(tmp_path / "first", bundle(), card="", details={"step": 1})
    save_bundle(tmp_path / "second", bundle("rnn"), card="", details={"step": 1})

    def shell(lines: str, pid: int = 0) -> None:
        done = subprocess.run(
            ["bash", "-ec", lines],
            cwd=tmp_path,
            env={**os.environ, "PID": str(pid)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def kinds(server: ServerProcess) -> dict[str, str]:
        return {each["name"]: each["kind"] for each in server.ask("GET", "/v1/models")[1]["models"]}

    link, command = start.splitlines()
    assert command == "pellucid serve en-de=current --port 8000"
    shell(link)
    with serving_process(f"en-de={tmp_path / 'current'}", "--engine", "torch") as server:
        assert kinds(server) == {"en-de": "transformer"}
        first = server.translate(LINES[0])
        shell(upgrade, server.command.pid)
        wait_until(lambda: kinds(server) == {"en-de": "rnn"})
        assert server.translate(LINES[0]) != first
        shell(rollback, server.command.pid)
        wait_until(lambda: kinds(server) == {"en-de": "transformer"})
        assert server.translate(LINES[0]) == first

    assert canary == "pellucid serve en-de=current canary=second --port 8000\n"
    places = [f"en-de={tmp_path / 'current'}", f"canary={tmp_path / 'second'}"]
    with serving_process(*places, "--engine", "torch") as server:
        assert kinds(server) == {"en-de": "transformer", "canary": "rnn"}
        assert server.translate(LINES[0]) == first
        body = {"text": LINES[0], "model": "canary"}
        answer = server.ask("POST", "/v1/translate", body)[1]
        assert answer["translations"][0]["text"] != first


def metric_names() -> set[str]:
    found = set()
    for family in Metrics().registry.collect():
        found.add(family.name)
        ends = ("_total",) if family.type == "counter" else ()
        ends = ("_bucket", "_sum", "_count") if family.type == "histogram" else ends
        found |= {family.name + end for end in ends}
    return found


def named_in(text: str) -> set[str]:
    return set(re.findall(r"pellucid_\w+", text))


def test_board_and_alerts_name_metrics_that_exist():
    board = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
    queries = [each["expr"] for panel in board["panels"] for each in panel["targets"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) == 8
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))
    [group] = rules["groups"]
    assert len(group["rules"]) == 3
    for rule in group["rules"]:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        queries.append(rule["expr"])
    known = metric_names()
    for query in queries:
        assert named_in(query), query
        assert named_in(query) <= known, query
        assert query.count("(") == query.count(")")

    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    table = page.partition("## Metrics")[2].partition("\n\nLabels")[0]
    assert named_in(table) <= known


def test_promtool_takes_the_alerts():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    command = [promtool, "check", "rules", str(MONITORING / "alerts.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_default_is_in_the_manual():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    part = page.partition("## pellucid serve")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(--[\w-]+)` \| (.*) \|$", part, re.MULTILINE))
    options = [each for each in serve.params if each.opts[0].startswith("--")]
    assert {each.opts[0] for each in options} - {"--help"} == rows.keys()
    for option in options:
        default = option.default
        if isinstance(default, bool) or not isinstance(default, str | int | float):
            continue
        said = rows[option.opts[0]].replace(",", "")
        number = f"{default:g}" if isinstance(default, float) else str(default)
        assert re.search(rf"(?<![\w.]){re.escape(number)}(?![\w])", said), option.opts[0]
