"""Loads damaged policy files one after the other and reports what went wrong, as JSON.

    python tests/fuzz/policy_files.py --folder FILES --kind sb3 --first 0 --cases 1000

`FILES` holds one sound file of each kind (`write_sound_files` makes them). Every damaged file has to load or to be
refused with a GapfloorError that does not advise to trust it when it is damaged; nothing may be run, and nothing
written outside the folder. A crash of the process is seen by whoever started it: `current.json` says which case it was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.mutations import mutant
from gapfloor.actions.spaces import Discrete
from gapfloor.errors import GapfloorError
from gapfloor.policies.load import PolicySource
from gapfloor.policies.protocol import LogitsReader

#: The file of each kind, the line that loads it, the shape of what it is asked about, and its number of actions.
KINDS: dict[str, tuple[str, str, tuple[int, ...], int]] = {
    "sb3": ("ppo.zip", "sb3:{path}", (2, 4), 2),
    "dqn": ("dqn.zip", "sb3:{path}", (2, 4), 2),
    "recurrent": ("recurrent.zip", "recurrent:{path}", (2, 4), 2),
    "cleanrl": ("agent.pt", "cleanrl:{path},agent=fuzz.sound_files:Agent", (2, 4), 3),
    "statedict": ("weights.pt", "statedict:{path},net=torch.nn:Linear,args=4,3", (2, 4), 3),
    "torchscript": ("script.pt", "torchscript:{path}", (2, 4), 3),
    "onnx": ("net.onnx", "onnx:{path}", (2, 4), 3),
    "npz": ("stats.npz", "sb3:{folder}/ppo.zip,vecnormalize={path}", (2, 4), 2),
    "json": ("stats.json", "sb3:{folder}/ppo.zip,vecnormalize={path}", (2, 4), 2),
    "checkpoint": ("checkpoint.safetensors", "{path}", (2, 16, 16, 3), 15),
    "bare": ("ppo.zip", "{path}", (2, 4), 2),
}

#: Seconds after which a case counts as a hang.
MOST_SECONDS = 10

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
        if event in (
            "os.system",
            "subprocess.Popen",
            "os.exec",
            "os.posix_spawn",
            "socket.connect",
            "os.remove",
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


def run_case(line: str, shape: tuple[int, ...], n_actions: int) -> str:
    """`loaded` or `refused`; anything else is raised."""
    observations = np.zeros(shape, dtype=np.uint8 if len(shape) == 4 else np.float32)
    try:
        policy = PolicySource(line).load()
        reader = LogitsReader(policy, name="damaged", n_slots=shape[0], space=Discrete(n_actions))
        reader.read(observations, np.ones(shape[0], dtype=bool))
    except GapfloorError as error:
        if error.exit_code != 2 or not str(error):
            raise AssertionError(f"exit code {error.exit_code}: {error}") from error
        return "refused"
    return "loaded"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kind", choices=[*KINDS], required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=100)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    name, template, shape, n_actions = KINDS[options.kind]
    sound = (options.folder / name).read_bytes()
    scratch = options.folder / f"{options.kind}-{options.first}"
    scratch.mkdir()
    path = scratch / name
    line = template.format(path=path, folder=options.folder)
    path.write_bytes(sound)
    if options.kind != "bare":
        assert run_case(line, shape, n_actions) == "loaded"
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

    def stop(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    watch = Watch(options.folder)
    counts = {"loaded": 0, "refused": 0}
    failures: list[dict[str, Any]] = []
    for number in range(options.first, options.first + options.cases):
        (scratch / "current.json").write_text(json.dumps({"kind": options.kind, "number": number}))
        path.write_bytes(mutant(sound, number))
        signal.alarm(MOST_SECONDS)
        try:
            with watch.watching():
                counts[run_case(line, shape, n_actions)] += 1
        except (Exception, Hang) as error:
            text = "".join(traceback.format_exception(error)[-6:])
            what = f"{type(error).__name__}: {error}"
            failures.append({"kind": options.kind, "number": number, "error": what, "text": text})
        finally:
            signal.alarm(0)
    written = sorted(each.name for each in scratch.iterdir() if each.name not in (name, "current.json"))
    json.dump({"counts": counts, "failures": failures, "watched": watch.seen, "written": written}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
