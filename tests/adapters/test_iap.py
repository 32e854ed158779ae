"""The tunnel through IAP, with a gcloud of our own on PATH: what it is asked for, and what becomes of it."""

from __future__ import annotations

import os
import select
import socket
import sys
from pathlib import Path

import pytest
from real_time import DEADLINE

from tpudeploy.adapters.routes import tunnel
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, Slice

FOUND = Slice(name="gemma-aaaaaaaa-0-0", zone=Zone("us-east5-a"), phase=Phase.UP)
OPENS = """
import socket, sys, time
sys.argv[0:1] = []
open({log!r}, "w").write(" ".join(sys.argv))
port = int(sys.argv[-1].split(":")[0])
with socket.create_server(("127.0.0.1", port)) as listener:
    while True:
        listener.accept()[0].close()
"""


def _gcloud(folder: Path, text: str) -> None:
    path = folder / "gcloud"
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(0o755)


def test_the_tunnel_leads_to_the_machines_port_and_ends_with_its_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gcloud(tmp_path, OPENS.format(log=str(tmp_path / "asked")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with tunnel("my-project", FOUND, 8000) as port:
        assert port is not None
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE):
            pass
    requests = (tmp_path / "asked").read_text(encoding="utf-8")
    assert requests.startswith("alpha compute tpus queued-resources ssh gemma-aaaaaaaa-0-0 --project=my-project")
    assert "--zone=us-east5-a" in requests
    assert "--tunnel-through-iap" in requests
    assert requests.endswith(f"-N -L {port}:127.0.0.1:8000")
    with socket.socket() as knock:
        assert knock.connect_ex(("127.0.0.1", port)) != 0


HAS_A_CHILD = """
import os, subprocess, sys
ssh = subprocess.Popen(["/bin/sleep", "1000"])
open({log!r}, "w").write(f"{{os.getsid(0)}} {{ssh.pid}}")
""" + OPENS.replace("{log!r}", "{other!r}")


def test_gcloud_is_out_of_reach_of_a_ctrl_c_that_is_ours_and_ends_with_its_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal sends SIGINT to the foreground process group, and in ours the tunnel would end before we do."""
    log = tmp_path / "session"
    _gcloud(tmp_path, HAS_A_CHILD.format(log=str(log), other=str(tmp_path / "asked")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with tunnel("my-project", FOUND, 8000) as port:
        assert port is not None
        session, ssh = map(int, log.read_text("utf-8").split())
        assert session != os.getsid(0)
        ending = os.pidfd_open(ssh)
    assert select.select([ending], [], [], 60.0)[0], "ssh outlives its gcloud"
    os.close(ending)


def test_a_gcloud_that_does_not_get_through_opens_no_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _gcloud(tmp_path, "raise SystemExit(1)\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with tunnel("my-project", FOUND, 8000) as port:
        assert port is None


def test_without_gcloud_there_is_no_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with tunnel("my-project", FOUND, 8000) as port:
        assert port is None
