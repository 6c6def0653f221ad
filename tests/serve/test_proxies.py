"""The files for proxies in docs/proxies: valid, and no looser than the server behind them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pellucid.serve.limits import Limits

FOLDER = Path(__file__).parents[2] / "docs" / "proxies"
NGINX = (FOLDER / "nginx.conf").read_text(encoding="utf-8")
CADDY = (FOLDER / "Caddyfile").read_text(encoding="utf-8")
LIMITS = Limits()


def number_of(text: str, pattern: str) -> float:
    """The one number that the pattern finds."""
    [found] = re.findall(pattern, text)
    return float(found)


def test_nginx_takes_its_file(tmp_path: Path):
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if nginx is None:
        pytest.skip("nginx is not installed: apt-get install nginx")
    # Its folders for temporary files belong to root.
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {tmp_path / kind};\n" for kind in kinds)
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX.replace("http {\n", "http {\naccess_log off;\n" + folders, 1))
    options = f"pid {tmp_path / 'pid'}; error_log stderr;"
    done = subprocess.run(
        [nginx, "-t", "-g", options, "-c", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_caddy_takes_its_file(tmp_path: Path):
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed: apt-get install caddy")
    command = [caddy, "validate", "--config", FOLDER / "Caddyfile", "--adapter", "caddyfile"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", [NGINX, CADDY], ids=["nginx", "caddy"])
def test_their_limits_fit_those_of_the_server(text: str):
    """A proxy waits longer than the server answers, and gives up a connection before it does."""
    assert text.count("{") == text.count("}")
    is_nginx = text is NGINX
    size = r"client_max_body_size (\d+)m;" if is_nginx else r"max_size (\d+)MiB"
    assert number_of(text, size) * (1 << 20) == LIMITS.max_file_bytes
    answer = r"proxy_read_timeout (\d+)s;" if is_nginx else r"response_header_timeout (\d+)s"
    assert number_of(text, answer) > LIMITS.max_request_seconds
    behind = r"\n {8}keepalive_timeout (\d+)s;  # below" if is_nginx else r"\tkeepalive (\d+)s"
    assert number_of(text, behind) < LIMITS.max_idle_seconds
    head = r"client_header_timeout (\d+)s;" if is_nginx else r"read_header (\d+)s"
    assert number_of(text, head) == LIMITS.max_receipt_seconds
    if is_nginx:
        assert "proxy_request_buffering on;" in text, "else bodies come in chunks, and are refused"
        assert "proxy_buffering off;" in text, "else streams are held back"
    else:
        body = number_of(text, r"read_body (\d+)s")
        assert body > LIMITS.max_receipt_seconds + LIMITS.max_upload_seconds
