"""Whether a Ray cluster asks for a token: one that does not runs the code of everyone who can reach it.

See https://docs.ray.io/en/latest/ray-security/token-auth.html. Ray before 2.52 has no authentication.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

from gapfloor.errors import UsageError

#: Connects as a stranger would: success is what must not happen.
_CONNECT = "import sys, ray; ray.init(address=sys.argv[1], logging_level='ERROR', log_to_driver=False)"
_MOST_SECONDS = 120


def refuse_open_cluster(address: str) -> None:
    """Refuse a cluster that lets a process without a token in.

    The question is put to the cluster itself: what is set here does not say what its nodes check.
    """
    stranger = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")}
    stranger |= {"RAY_AUTH_MODE": "disabled", "RAY_NUM_REDIS_GET_RETRIES": "2"}
    try:
        asked = subprocess.run(
            [sys.executable, "-P", "-c", _CONNECT, address], env=stranger, capture_output=True, check=False,
            timeout=_MOST_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return  # nobody was let in; whether the cluster answers at all is seen when the study connects
    if asked.returncode == 0:
        raise UsageError(
            f"The Ray cluster at {address} asks for no token, so everyone who can reach it can run code on it: start "
            "its nodes with RAY_AUTH_MODE=token (docs/studies.md), or, if nobody else can reach it, add "
            "--without-authentication."
        )


def require_token_here() -> None:
    """Give a cluster that this process starts a token of its own, unless the user has chosen something else."""
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
