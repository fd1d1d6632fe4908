"""Gives damaged inputs to whole commands, one after the other in one process, and prints what went wrong as JSON.

    python tests/fuzz/harness.py --folder FILES --kinds sb3,onnx --first 0 --cases 1000

`FILES` is what `write_sound_folder` wrote. Every command has to end with exit code 0, 1 or 2. It may run nothing but
git, write nothing outside its own folder, and print no character that a terminal would obey. A crash of the process
is seen by whoever started it: `current.json` says which case it was.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import random
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fuzz import sound_folder
from fuzz.kinds import KINDS, Kind
from fuzz.mutations import mutate_words
from gapfloor.cli.main import LazyGroup
from gapfloor.cli.main import main as gapfloor

#: Seconds of computing after which a case counts as a hang, and of waiting: a shared machine may be busy meanwhile.
MOST_SECONDS, MOST_SECONDS_OF_WAITING = 20, 200

#: Memory that the whole process may use.
MOST_MEMORY = 8 << 30

#: The longest message that a user should have to read.
MOST_CHARACTERS = 20_000

_PROGRAMS = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect")
_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod")


class Hang(BaseException):
    """A case took too long. Not an Exception, so that no handler of a reader takes it for damage."""


class Finished(NamedTuple):
    """What a command left behind."""

    code: Any
    out: str
    err: str


class Watch:
    """Notes what a command must not do: run programs, connect, or change files outside the folder (prevented too)."""

    def __init__(self, folder: Path) -> None:
        self.seen: list[str] = []
        temporary = tempfile.gettempdir() + "/gapfloor-"
        self._allowed = (str(folder), "/dev/null", "/dev/shm", temporary, os.environ["MPLCONFIGDIR"])
        self._on = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in _PROGRAMS:
            if Path(os.fsdecode(arguments[0])).name != "git":
                self.seen.append(f"{event} {arguments!r}"[:300])
        elif event in _CHANGES or (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        ):
            # The target of a rename or a link counts too. What is not allowed is prevented: the machine is not ours.
            paths = arguments[:2] if event in ("os.rename", "os.link", "os.symlink") else arguments[:1]
            for path in (os.path.abspath(os.fsdecode(each)) for each in paths if not isinstance(each, int)):
                if not path.startswith(self._allowed):
                    self.seen.append(f"{event} {path}")
                    raise PermissionError(errno.EACCES, "Permission denied", path)

    @contextlib.contextmanager
    def watching(self) -> Any:
        self._on = True
        try:
            yield
        finally:
            self._on = False


def run_line(words: list[str]) -> Finished:
    """Run a command in this process and folder, as a user would type it."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            gapfloor(words)
        except SystemExit as stop:
            code = stop.code
    return Finished(code, out.getvalue(), err.getvalue())


def wrong_with(done: Finished, *, asked_for_traceback: bool = False) -> str:
    """What a command did that no input may make it do; empty if nothing."""
    if done.code not in (0, 1, 2):
        return f"exit code {done.code}: {done.err[-1500:]}"
    if done.code == 2 and not done.err.strip():
        return "exit code 2 and no message"
    if "Traceback (most recent" in done.err and not asked_for_traceback:
        return f"a traceback: {done.err[-1500:]}"
    obeyed = {each for each in done.out + done.err if not each.isprintable()} - {"\n", "\r", "\t"}
    if obeyed:
        return f"characters that a terminal obeys: {sorted(obeyed)}: {done.out[:200]!r} {done.err[:200]!r}"
    return "" if len(done.err) <= MOST_CHARACTERS else f"a message of {len(done.err)} characters"


def write_sound_folder(folder: Path) -> None:
    """A sound file of every kind."""
    sound_folder.write_texts_and_tables(folder)
    sound_folder.write_policies(folder)
    before = Path.cwd()
    os.chdir(folder)
    for line in sound_folder.MAKING:
        done = run_line(shlex.split(line))
        assert done.code == 0, f"{line}: {done.err}"
    os.chdir(before)
    sound_folder.write_store_files(folder)


def lay_out(sound: Path, line: str, place: Path) -> None:
    """An own folder for one case, with the sound files that a command names."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    names = [each.name for each in sound.iterdir() if each.name in line or f"{each.stem}.toml" in line]
    for name in names:
        if (sound / name).is_dir():
            shutil.copytree(sound / name, place / name)
        else:
            shutil.copyfile(sound / name, place / name)


def prepare_case(kind: Kind, number: int, sound: Path, place: Path) -> list[str]:
    """Lay out the folder of one case; the words of its command."""
    line = kind.commands[number % len(kind.commands)]
    lay_out(sound, line, place)
    words = shlex.split(line)
    if kind.file:
        damaged = damage_file(kind, number, sound, place)
        damaged.write_bytes(kind.damage(damaged.read_bytes(), number))
    else:
        words = mutate_words(words, random.Random(number))
    return words


def damage_file(kind: Kind, number: int, sound: Path, place: Path) -> Path:
    """The file of this kind that the case damages, in the folder of the case."""
    found = sorted(sound.glob(kind.file))
    copied = place / found[number % len(found)].relative_to(sound)
    copied.chmod(0o644)  # objects of git are read-only
    return copied


@dataclass
class Findings:
    """What one process found."""

    codes: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)


def run_kind(name: str, sound: Path, numbers: range, watch: Watch, place: Path, found: Findings) -> None:
    """The cases of one kind with these numbers."""
    started = time.process_time()
    for number in numbers:
        (sound.parent / "current.json").write_text(json.dumps({"kind": name, "number": number}))
        words = prepare_case(KINDS[name], number, sound, place)
        os.chdir(place)
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        signal.alarm(MOST_SECONDS_OF_WAITING)
        wrong = ""
        try:
            with watch.watching():
                done = run_line(words)
            found.codes[str(done.code)] += 1
            wrong = wrong_with(done, asked_for_traceback="--traceback" in words)
        except Hang:
            wrong = "a hang"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            os.chdir(sound)
        if (place / "CANARY").exists():
            wrong += " a program ran"
        if watch.seen:
            wrong += f" {watch.seen[:5]}"
            watch.seen.clear()
        if wrong:
            found.failures.append({"kind": name, "number": number, "words": words, "wrong": wrong})
    found.seconds[name] += round(time.process_time() - started, 2)


def _remember_commands() -> None:
    """Make each click command once: reading its signature and docstring again in every case takes longest."""
    make, made = LazyGroup.get_command, {}

    def get_command(self: LazyGroup, ctx: Any, name: str) -> Any:
        if (self.prefix, name) not in made:
            made[self.prefix, name] = make(self, ctx, name)
        return made[self.prefix, name]

    LazyGroup.get_command = get_command  # type: ignore[method-assign]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[*KINDS])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=100)
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    def stop(*_: object) -> None:
        raise Hang

    for each in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(each, stop)
    sound = options.folder.resolve()
    place = sound.parent / f"case-{options.first}-{os.getpid()}"
    # Matplotlib's list of fonts: in a home folder without .cache it would make one, which is not ours to judge.
    os.environ["MPLCONFIGDIR"] = str(sound.parent / "matplotlib")
    # A store named ~ is made there, and Python's own cache of modules is not what is looked for.
    os.environ["HOME"] = os.environ["MPLCONFIGDIR"]
    sys.dont_write_bytecode = True
    # It asks the program fc-list for fonts when it is first used, which would count as a program that was run.
    import matplotlib.font_manager  # noqa: F401

    _remember_commands()
    watch = Watch(place)
    found = Findings()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    known: set[str] = set()
    for kind in options.kinds:
        for line in dict.fromkeys(KINDS[kind].commands):
            if line in known:
                continue
            known.add(line)  # what a command imports and caches does not count
            lay_out(sound, line, place)
            os.chdir(place)
            run_line(shlex.split(line))
            os.chdir(sound)
        share = KINDS[kind].share
        first = round(options.first * share)  # so that two ranges of cases do not overlap in any kind
        numbers = range(first, first + max(1, round(options.cases * share)))
        run_kind(kind, sound, numbers, watch, place, found)
    shutil.rmtree(place, ignore_errors=True)
    json.dump(vars(found), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
