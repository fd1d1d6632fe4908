"""The resume state: everything a run needs to continue as if it had never been stopped, in one file.

It holds weights, optimiser, random streams, the engine state of every slot, the current frames and episodes, and
the log so far. It is one safetensors file, replaced atomically after each update, so a kill can never leave parts
of two different updates. Loading it runs no code, and a state that was changed or damaged is refused by its hashes.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from gapfloor.engines.engine import Engine
from gapfloor.errors import StoreError, shortened
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.training.agent import Agent
from gapfloor.training.checkpoint import hash_contents, hash_header, write_sealed
from gapfloor.training.log import FIELDS, RECENT_EPISODES, LogRow
from gapfloor.training.ppo import Position
from gapfloor.training.streams import load_stream, save_stream

FORMAT = "gapfloor-resume/1"

#: The arrays of a `Position`.
_POSITION = ("observations", "firsts", "episode_returns", "episode_lengths")


@dataclass
class RunProgress:
    """The moving parts of a run between two updates."""

    iteration: int
    agent: Agent
    optimiser: torch.optim.Adam
    engine: Engine
    position: Position
    streams: dict[str, np.random.Generator]
    recent: deque[tuple[float, int]]
    log: list[LogRow]
    earlier_versions: list[dict[str, str]]


def save_progress(
    path: Path, progress: RunProgress, *, spec: Mapping[str, Any], versions: Mapping[str, str]
) -> None:
    """Write the state to `path`, whole or not at all."""
    tensors: dict[str, torch.Tensor] = {
        f"agent.{name}": tensor.detach().cpu().contiguous()
        for name, tensor in progress.agent.state_dict().items()
    }
    adam_steps = 0
    for name, parameter in progress.agent.named_parameters():
        moments = progress.optimiser.state[parameter]
        adam_steps = int(moments["step"])
        tensors[f"adam.mean.{name}"] = moments["exp_avg"].cpu().contiguous()
        tensors[f"adam.square.{name}"] = moments["exp_avg_sq"].cpu().contiguous()
    for slot in range(progress.engine.n_slots):
        tensors[f"engine.{slot:04d}"] = torch.frombuffer(
            bytearray(progress.engine.save(slot)), dtype=torch.uint8
        )
    for name in _POSITION:
        tensors[f"position.{name}"] = torch.from_numpy(getattr(progress.position, name))
    tensors["recent"] = torch.tensor(list(progress.recent), dtype=torch.float64).reshape(-1, 2)
    tensors["log"] = torch.tensor([astuple(row) for row in progress.log], dtype=torch.float64)
    header: dict[str, Any] = {
        "format": FORMAT,
        "spec": spec,
        "versions": versions,
        "earlier_versions": progress.earlier_versions,
        "iteration": progress.iteration,
        "adam_steps": adam_steps,
        "streams": {purpose: save_stream(stream) for purpose, stream in progress.streams.items()},
        "log_fields": FIELDS,
    }
    write_sealed(path, tensors, {**header, "content_hash": hash_contents(tensors, FORMAT)})


@dataclass(frozen=True)
class SavedState:
    """A resume state as read from disk."""

    path: Path
    header: Mapping[str, Any]
    """What it says about its run."""
    tensors: Mapping[str, torch.Tensor]

    def restore(self, *, agent: Agent, optimiser: torch.optim.Adam, engine: Engine) -> RunProgress:
        """The state put into a new agent, optimiser and engine of the same specification."""
        header, tensors = self.header, self.tensors
        try:
            agent.load_state_dict(
                {name.removeprefix("agent."): t for name, t in tensors.items() if name.startswith("agent.")}
            )
            for name, parameter in agent.named_parameters():
                optimiser.state[parameter] = {
                    "step": torch.tensor(float(header["adam_steps"])),
                    "exp_avg": torch.empty_like(parameter).copy_(tensors[f"adam.mean.{name}"]).detach(),
                    "exp_avg_sq": torch.empty_like(parameter).copy_(tensors[f"adam.square.{name}"]).detach(),
                }
            for slot in range(engine.n_slots):
                engine.load(slot, tensors[f"engine.{slot:04d}"].numpy().tobytes())
            recent = ((float(r), int(n)) for r, n in tensors["recent"].tolist())
            return RunProgress(
                iteration=header["iteration"],
                agent=agent,
                optimiser=optimiser,
                engine=engine,
                position=Position(**{name: tensors[f"position.{name}"].numpy().copy() for name in _POSITION}),
                streams={purpose: load_stream(saved) for purpose, saved in header["streams"].items()},
                recent=deque(recent, maxlen=RECENT_EPISODES),
                log=[
                    LogRow(
                        **{
                            f.name: int(v) if f.type == "int" else v
                            for f, v in zip(fields(LogRow), row, strict=True)
                        }
                    )
                    for row in tensors["log"].tolist()
                ],
                earlier_versions=header["earlier_versions"],
            )
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise StoreError(
                f"The resume state {self.path} is incomplete ({type(error).__name__}: {shortened(str(error))}): delete "
                "it to start the run again."
            ) from error


def read_state(path: Path) -> SavedState:
    """The state in `path`; one that was changed, damaged or written by another version is refused."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(HEADER_KEY, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, RecursionError, OSError) as error:
        raise StoreError(
            f"The resume state {path} cannot be read ({error}): delete it to start the run again."
        ) from error
    if (
        not isinstance(header, dict)
        or header.get("format") != FORMAT
        or header.get("log_fields") != list(FIELDS)
    ):
        raise StoreError(
            f"The resume state {path} was written by another version: delete it to start the run again."
        )
    # States of version 0.2 and before have no hashes.
    if "header_hash" in header and (
        header["header_hash"] != hash_header(header)
        or header.get("content_hash") != hash_contents(tensors, FORMAT)
    ):
        raise StoreError(
            f"The resume state {path} does not match its hash, so it was changed or damaged: delete it to start the "
            "run again."
        )
    return SavedState(path, header, tensors)
