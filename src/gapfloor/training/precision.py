"""Whether this machine can train in bfloat16: tried in a process of its own, because a machine that cannot may crash.

Some virtual machines announce AMX and do not run it: torch's convolutions then end the process with an illegal
instruction. What is tried is one gradient of the encoder that will be trained.
"""

from __future__ import annotations

import os
import subprocess
import sys

from gapfloor.errors import UsageError

_WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA"
_SCRIPT = "import sys; from gapfloor.training.precision import try_bf16; try_bf16(sys.argv[1])"


def check_bf16(encoder: str) -> None:
    """Refuse bf16 where a gradient of this encoder in bf16 ends the process."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _SCRIPT, encoder],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise UsageError(
            f"torch cannot compute in bf16 on this machine ({last[0]}): use --precision float32, or set "
            f"{_WITHOUT_AMX}=AVX512_CORE_BF16, with which torch does not use AMX."
        )


def try_bf16(encoder: str) -> None:
    """One gradient in bf16."""
    import torch

    from gapfloor.engines.procgen import N_ACTIONS, OBSERVATION_SHAPE
    from gapfloor.training.agent import make_agent

    agent = make_agent(encoder, observation_shape=OBSERVATION_SHAPE, n_actions=N_ACTIONS, seed=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, values = agent(torch.zeros((8, *OBSERVATION_SHAPE), dtype=torch.uint8))
    torch.autograd.grad(logits.float().sum() + values.float().sum(), list(agent.parameters()))
