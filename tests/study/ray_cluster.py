"""A Ray cluster of two nodes on this machine's loopback, stopped by its own process ids."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

RAY = str(Path(sys.executable).with_name("ray"))


#: Ray turns 127.0.0.1 into the machine's own address; other addresses of the loopback stay as they are.
HEAD, SECOND = "127.0.0.2", "127.0.0.3"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HEAD, 0))
        return int(probe.getsockname()[1])


class OneNode:
    """A head, by default with one CPU."""

    def __init__(self, folder: Path, *, authentication: dict[str, str], cpus: int = 1) -> None:
        self._cpus = cpus
        # Worker processes inherit these: the nodes, the driver and the tasks share one token.
        self.environment = {
            **os.environ,
            **authentication,
            "RAY_TMPDIR": str(folder),
            "RAY_DISABLE_IMPORT_WARNING": "1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        port = free_port()
        self.address = f"{HEAD}:{port}"
        self._head = self._start(HEAD, "--head", f"--port={port}", "--include-dashboard=false")
        self._wait_for_head(port)

    def _start(self, node: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [
            RAY, "start", *arguments, f"--node-ip-address={node}", f"--num-cpus={self._cpus}",
            "--object-store-memory=100000000", "--block", "--disable-usage-stats",
        ]  # fmt: skip
        return subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _wait_for_head(self, port: int) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection((HEAD, port), timeout=1):
                return
            time.sleep(0.5)
        _kill(self._head)
        raise RuntimeError("the head of the Ray cluster did not start")

    def close(self) -> None:
        _kill(self._head)


class TwoNodes(OneNode):
    """A head that asks for a token and a second node, one CPU each; `kill_second` takes the latter away."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder,
            authentication={
                "RAY_AUTH_MODE": "token",
                "RAY_AUTH_TOKEN": secrets.token_hex(32),
                # The loss of the second node is noticed soon. On a busy machine this loses living nodes too.
                "RAY_health_check_period_ms": "1000",
                "RAY_health_check_failure_threshold": "3",
            },
        )
        self._second = self._start(SECOND, f"--address={self.address}")
        self._wait_for_second()

    def _wait_for_second(self) -> None:
        code = (
            "import ray, sys\n"
            f"ray.init(address='{self.address}', logging_level='ERROR')\n"
            "sys.exit(0 if ray.cluster_resources().get('CPU', 0) >= 2 else 1)"
        )
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            asked = subprocess.run(
                [sys.executable, "-c", code], env=self.environment, capture_output=True, check=False
            )
            if asked.returncode == 0:
                return
            if self._second.poll() is not None:  # it gives up when the head is slow to answer
                self._second = self._start(SECOND, f"--address={self.address}")
            time.sleep(1)
        self.close()
        raise RuntimeError("the two Ray nodes did not find each other")

    def kill_second(self) -> None:
        _kill(self._second)

    def close(self) -> None:
        _kill(self._second)
        super().close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
