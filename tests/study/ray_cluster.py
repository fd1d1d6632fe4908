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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TwoNodes:
    """A head with one CPU and a second node with one CPU; `kill_second` takes the latter away."""

    def __init__(self, folder: Path) -> None:
        # Worker processes inherit these: the nodes, the driver and the tasks share one token.
        self.environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_TMPDIR": str(folder),
            "RAY_DISABLE_IMPORT_WARNING": "1",
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_failure_threshold": "3",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        self.address = f"127.0.0.1:{free_port()}"
        port = self.address.split(":")[1]
        self._head = self._start("--head", f"--port={port}", "--include-dashboard=false")
        time.sleep(4)
        self._second = self._start(f"--address={self.address}")
        self._wait_for_two()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [
            RAY, "start", *arguments, "--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=100000000",
            "--block", "--disable-usage-stats",
        ]  # fmt: skip
        return subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _wait_for_two(self) -> None:
        code = (
            "import ray, time, sys\n"
            f"ray.init(address='{self.address}', logging_level='ERROR')\n"
            "end = time.time() + 60\n"
            "while time.time() < end and ray.cluster_resources().get('CPU', 0) < 2: time.sleep(.5)\n"
            "sys.exit(0 if ray.cluster_resources().get('CPU', 0) >= 2 else 1)"
        )
        for _ in range(5):
            if (
                subprocess.run(
                    [sys.executable, "-c", code], env=self.environment, capture_output=True
                ).returncode
                == 0
            ):
                return
            time.sleep(2)
        self.close()
        raise RuntimeError("the two Ray nodes did not find each other")

    def kill_second(self) -> None:
        _kill(self._second)

    def close(self) -> None:
        _kill(self._second)
        _kill(self._head)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
