"""Who a run is: the only place that spells the name of an agent and of a run.

An agent is a method by name; a run is one trained instance of it. Cells, training logs, CKA records and messages
all take their names from here, so that the runs of a blind agent are never filed under the sighted one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.json_values import DAMAGED

#: What the name of an agent that was trained on black images ends in.
BLIND_SUFFIX = "_blind"

#: The key of gapfloor's own header within the metadata of a safetensors file.
HEADER_KEY = "gapfloor"

#: The longest safetensors header that is read to identify a run; one written by gapfloor has a few kilobytes.
_LONGEST_HEADER = 10_000_000


def agent_name(encoder: str, *, is_blind: bool = False) -> str:
    """The name of the agent that trains this encoder.

    >>> agent_name("impala"), agent_name("impala", is_blind=True)
    ('impala', 'impala_blind')
    """
    return f"{encoder}{BLIND_SUFFIX}" if is_blind else encoder


def agent_of_header(header: Mapping[str, Any], *, default: str = "policy") -> str:
    """The agent's name in the header of a checkpoint; `default` where the header names no encoder."""
    return agent_name(str(header.get("encoder", default)), is_blind=bool(header.get("blind")))


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """One run: a game and mode, an agent, a training budget and a seed.

    >>> run = RunIdentity(game="starpilot", mode="easy", agent="impala_blind", budget="8M", seed=1)
    >>> run.name
    'starpilot-easy-impala_blind-8M-s1'
    >>> run.name_in_game, run.description
    ('impala_blind-8M-s1', 'starpilot impala_blind 8M seed 1')
    """

    game: str = ""
    mode: str = ""
    agent: str = ""
    """The agent's name, with the suffix of a blind one."""
    budget: str = ""
    """The label of the training budget, e.g. 8M; empty where it is not known."""
    seed: int | None = None
    """None where the policy was not trained from a seed."""

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> RunIdentity:
        """The run that a checkpoint's header describes; without a budget label, its number of steps."""
        return cls(
            game=str(header["game"]), mode=str(header["mode"]), agent=agent_of_header(header),
            budget=str(header.get("budget", header["steps"])), seed=header["seed"],
        )  # fmt: skip

    @classmethod
    def from_labels(cls, labels: Mapping[str, Any]) -> RunIdentity:
        """The run under whose labels a cell is filed."""
        return cls(**{name: labels[name] for name in ("game", "mode", "agent", "budget", "seed")})

    @property
    def name(self) -> str:
        """The full name, which is also the run's folder below `runs/`; empty parts are left out."""
        return _joined(self.game, self.mode, self.name_in_game)

    @property
    def name_in_game(self) -> str:
        """The name where game and mode are known."""
        return _joined(self.agent, self.budget, "" if self.seed is None else f"s{self.seed}")

    @property
    def description(self) -> str:
        """The run in the words of a message."""
        seed = "" if self.seed is None else f"seed {self.seed}"
        return " ".join(part for part in (self.game, self.agent, self.budget, seed) if part)

    @property
    def labels(self) -> dict[str, Any]:
        """The columns that identify the run in a table, in the order of the records."""
        return {
            "game": self.game, "mode": self.mode, "budget": self.budget, "agent": self.agent, "seed": self.seed,
        }  # fmt: skip


def read_run_identity(folder: str | Path) -> RunIdentity | None:
    """The run of a folder below `runs/`, from its checkpoint; None where that cannot be read.

    Training logs of version 0.1 name the encoder where they should name the agent, so whoever pools logs by agent
    must ask the checkpoint. Only its header is read, which needs neither torch nor safetensors.
    """
    try:
        return RunIdentity.from_header(read_run_header(Path(folder)))
    except KeyError:
        return None


def read_run_header(folder: Path) -> dict[str, Any]:
    """What gapfloor wrote into the header of a run's checkpoint; empty where it cannot be read."""
    try:
        with open(folder / "checkpoint.safetensors", "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            metadata = json.loads(file.read(length))["__metadata__"] if length <= _LONGEST_HEADER else {}
        header = json.loads(metadata[HEADER_KEY])
    except DAMAGED:
        return {}
    return header if isinstance(header, dict) else {}


def _joined(*parts: str) -> str:
    return "-".join(part for part in parts if part)
