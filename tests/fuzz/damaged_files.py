"""Reads damaged files one after the other and reports what went wrong, as JSON.

    python tests/fuzz/damaged_files.py --folder FILES --kinds sb3,onnx --first 0 --cases 1000

`FILES` holds one sound file of each kind (`write_every_kind` makes them). Every damaged file
has to be read or to be refused with a GapfloorError; nothing may be run, and nothing written outside the folder. A
crash of the process is seen by whoever started it: `current.json` says which case it was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.input_files import INPUT_KINDS, InputKind
from fuzz.mutations import mutant
from fuzz.side_files import SIDE_KINDS, seal_checkpoint
from gapfloor.errors import CheckFailedError, GapfloorError

#: The file of each kind, the line that loads it, the shape of what it is asked about, and its number of actions.
POLICY_KINDS: dict[str, tuple[str, str, tuple[int, ...], int]] = {
    "sb3": ("ppo.zip", "sb3:{path}", (2, 4), 2),
    "dqn": ("dqn.zip", "sb3:{path}", (2, 4), 2),
    "recurrent": ("recurrent.zip", "recurrent:{path}", (2, 4), 2),
    "cleanrl": ("agent.pt", "cleanrl:{path},agent=fuzz.sound_files:Agent", (2, 4), 3),
    "statedict": ("weights.pt", "statedict:{path},net=torch.nn:Linear,args=4,3", (2, 4), 3),
    "onnx": ("net.onnx", "onnx:{path}", (2, 4), 3),
    "npz": ("stats.npz", "sb3:{folder}/ppo.zip,vecnormalize={path}", (2, 4), 2),
    "json": ("stats.json", "sb3:{folder}/ppo.zip,vecnormalize={path}", (2, 4), 2),
    "checkpoint": ("checkpoint.safetensors", "{path}", (2, 16, 16, 3), 15),
    "sealed-checkpoint": ("checkpoint.safetensors", "{path}", (2, 16, 16, 3), 15),
    "bare": ("ppo.zip", "{path}", (2, 4), 2),
}

#: Everything that is not a policy.
FILE_KINDS = INPUT_KINDS | SIDE_KINDS

#: Seconds of computing after which a case counts as a hang, and of waiting: a shared machine may be busy meanwhile.
MOST_SECONDS, MOST_SECONDS_OF_WAITING = 10, 60

#: Memory that the whole process may use.
MOST_MEMORY = 8 << 30


class Hang(BaseException):
    """A case took too long. Not an Exception, so that no handler of a loader takes it for damage."""


class Watch:
    """Notes what a loader must not do: run programs, connect, or open files for writing outside the folder."""

    def __init__(self, folder: Path) -> None:
        self.seen: list[str] = []
        self._folder, self._on = str(folder), False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        is_outside = not str(arguments[0] if arguments else "").startswith(self._folder)
        if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect") or (
            event in ("os.remove", "os.rename", "os.mkdir", "os.link", "os.symlink") and is_outside
        ):
            self.seen.append(f"{event} {arguments!r}"[:300])
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            path = str(arguments[0])
            if not path.startswith((self._folder, "/dev/")):
                self.seen.append(f"open {path} for writing")

    @contextlib.contextmanager
    def watching(self) -> Any:
        self._on = True
        try:
            yield
        finally:
            self._on = False


def load_policy(line: str, shape: tuple[int, ...], n_actions: int) -> None:
    """Load a policy and ask it once."""
    from gapfloor.actions.spaces import Discrete
    from gapfloor.policies.load import PolicySource
    from gapfloor.policies.policy import LogitsReader

    observations = np.zeros(shape, dtype=np.uint8 if len(shape) == 4 else np.float32)
    policy = PolicySource(line).load()
    reader = LogitsReader(policy, name="damaged", n_slots=shape[0], space=Discrete(n_actions))
    reader.read(observations, np.ones(shape[0], dtype=bool))


def kind_of_file(kind: str, folder: Path) -> InputKind:
    """The kind by its name: a policy is loaded by its line."""
    if kind in FILE_KINDS:
        return FILE_KINDS[kind]
    name, template, shape, n_actions = POLICY_KINDS[kind]
    return InputKind(
        name,
        lambda path: load_policy(template.format(path=path, folder=folder), shape, n_actions),
        seal_checkpoint if kind == "sealed-checkpoint" else mutant,
    )


def run_case(read: Callable[[Path], Any], path: Path) -> str:
    """`loaded` or `refused`; anything else is raised."""
    try:
        read(path)
    except GapfloorError as error:
        if not str(error) or (error.exit_code != 2 and not isinstance(error, CheckFailedError)):
            raise AssertionError(f"exit code {error.exit_code}: {error}") from error
        return "refused"
    return "loaded"


@dataclass
class Findings:
    """What one process found."""

    counts: dict[str, int] = field(default_factory=lambda: {"loaded": 0, "refused": 0})
    failures: list[dict[str, Any]] = field(default_factory=list)
    watched: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kinds", type=lambda text: text.split(","), required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=100)
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    def stop(*_: object) -> None:
        raise Hang

    for each in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(each, stop)
    watch = Watch(options.folder)
    found = Findings(watched=watch.seen)
    for kind in options.kinds:
        read_damaged(kind, options.folder, range(options.first, options.first + options.cases), watch, found)
    json.dump(asdict(found), sys.stdout)
    return 0


def read_damaged(name: str, folder: Path, numbers: range, watch: Watch, found: Findings) -> None:
    """Read the damaged files of one kind with these numbers."""
    kind = kind_of_file(name, folder)
    scratch = folder / f"{name}-{numbers.start}"
    if name in FILE_KINDS:
        shutil.copytree(folder / "inputs", scratch)
    else:
        scratch.mkdir()
        shutil.copy(folder / kind.file, scratch / kind.file)
    path = scratch / kind.file
    sound = path.read_bytes()
    if name != "bare":
        assert run_case(kind.read, path) == "loaded"
    before = set(scratch.rglob("*"))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for number in numbers:
        (folder / f"current-{numbers.start}.json").write_text(json.dumps({"kind": name, "number": number}))
        path.write_bytes(kind.damage(sound, number))
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        signal.alarm(MOST_SECONDS_OF_WAITING)
        try:
            with watch.watching():
                found.counts[run_case(kind.read, path)] += 1
        except (Exception, Hang) as error:
            text = "".join(traceback.format_exception(error)[-6:])
            found.failures.append(
                {"kind": name, "number": number, "error": f"{type(error).__name__}: {error}", "text": text}
            )
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
    found.written += sorted(str(each.relative_to(scratch)) for each in set(scratch.rglob("*")) - before)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
