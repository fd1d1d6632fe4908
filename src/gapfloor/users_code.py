"""The user's own code by name, `package.module:name`: imported only because the user named it.

An error in the user's code is the user's to correct, so it is reported with the file, line and text where it happened.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from gapfloor.errors import GapfloorError, nearest_names

#: Folders whose code is not the user's: this package, Python's own library, and everything that was installed.
_OURS = str(Path(__file__).resolve().parent) + os.sep
_PYTHON = tuple(str(Path(sysconfig.get_path(name)).resolve()) + os.sep for name in ("stdlib", "platstdlib"))
#: Extension modules name their sources by the paths where they were built, e.g. pyarrow/error.pxi.
_COMPILED = (".pyx", ".pxi", ".pxd")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class _CurrentFolder:
    """Finds modules in one folder, after everything that is installed.

    An entry of `sys.path` would do that too, but libraries look there for packages that announce themselves (torch
    imports every "torch.backends" of a .dist-info folder), which the user has not named.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """The module of this name in the folder; parts of a package are found by the package."""
        return PathFinder.find_spec(name, [self.folder]) if path is None else None


def find_modules_here() -> None:
    """Let modules be found in the folder where the command is typed: the user's own module imports others there.

    The folder comes last, so that no file in it takes the place of an installed module.
    """
    here = os.getcwd()
    known = {finder.folder for finder in sys.meta_path if isinstance(finder, _CurrentFolder)}
    if not {"", here} & {*sys.path, *known}:
        sys.meta_path.append(_CurrentFolder(here))


def _load_from_here(name: str) -> None:
    """Load the package or module that the user named from the current folder, if it lies there."""
    found = None if name in sys.modules else PathFinder.find_spec(name, [str(Path.cwd())])
    if found is None or found.loader is None:
        return
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise


def import_from_here(module_name: str, *, named: str, error: type[GapfloorError]) -> ModuleType:
    """The module, also from the folder where the command is typed; `named` says what named it."""
    find_modules_here()
    try:
        with clean_arguments(module_name):
            _load_from_here(module_name.partition(".")[0])
            return importlib.import_module(module_name)
    except SystemExit as failure:
        raise error(
            f"The module of {named} ended the program while it was imported (exit code {failure.code}): put what "
            "it does at the end under if __name__ == '__main__'."
        ) from failure
    except Exception as failure:
        raise error(f"The module of {named} does not import: {in_users_words(failure)}") from failure


@contextlib.contextmanager
def clean_arguments(program: str) -> Iterator[None]:
    """Hide this command's arguments, so that a module that parses the command line when imported sees none."""
    before = sys.argv
    sys.argv = [program]
    try:
        yield
    finally:
        sys.argv = before


def named_callable(name: str, *, what: str, error: type[GapfloorError], kind: str = "") -> Any:
    """What `package.module:name` means, as the factory or class of a `what`."""
    module_name, _, attribute = name.partition(":")
    module = import_from_here(module_name, named=f"the {what} {name}", error=error)
    found = getattr(module, attribute, None)
    if not callable(found):
        raise error(f"{module_name} has no {kind}'{attribute}': {_nearest(module, attribute)}")
    return found


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function or class by name; none where Python cannot tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def required_parameters(function: Any) -> list[str]:
    """The names of the arguments without which a function or class cannot be called."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = parameters_of(function).values()
    return [each.name for each in parameters if each.default is each.empty and each.kind not in several]


def in_users_words(error: BaseException) -> str:
    """An error of the user's code as one sentence: its class and text, and the user's own line where it happened.

    The whole traceback is kept as the cause of the error that is raised, for `--traceback`.
    """
    words = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if isinstance(error, SyntaxError):  # its line is that of the text, which no frame has reached
        return f"{words} at {error.filename}:{error.lineno}"
    frame = users_frame(error)
    if frame is None:
        return words
    text = f" in `{frame.line}`" if frame.line else ""
    return f"{words} (at {frame.filename}:{frame.lineno}{text})"


def full_traceback(error: BaseException) -> str:
    """The traceback of an error with everything that led to it, for a user who asks with `--traceback`."""
    return "".join(traceback.format_exception(error))


def users_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The last line of the user's own code that led to the error, or to what caused it; None if there is none."""
    seen: set[int] = set()
    each: BaseException | None = error
    found = None
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        frames = [frame for frame, is_users in _frames(each) if is_users]
        found = frames[-1] if frames else getattr(each, "users_frame", None) or found
        each = each.__cause__
    return found


def is_in_users_code(error: BaseException) -> bool:
    """Whether the error came from the user's code, or from a library that the user's code called."""
    for frame, is_users in reversed(_frames(error)):
        if is_users:
            return True
        if os.path.realpath(frame.filename).startswith(_OURS):
            return False
    return False


def _frames(error: BaseException) -> list[tuple[traceback.FrameSummary, bool]]:
    """The lines that led to an error, each with whether it is the user's."""
    walked = traceback.walk_tb(error.__traceback__)
    # Code that dataclasses generate for our classes has no file; its module is ours.
    ours = [str(frame.f_globals.get("__name__")).startswith("gapfloor.") for frame, _ in walked]
    lines = traceback.extract_tb(error.__traceback__)
    return [
        (line, not is_ours and _is_users(line.filename)) for line, is_ours in zip(lines, ours, strict=True)
    ]


def _is_users(file: str) -> bool:
    if file.startswith("<") and not file.startswith(("<stdin>", "<ipython", "<string>")):
        return False
    if file.endswith(_COMPILED):
        return False
    path = os.path.realpath(file)
    return not (path.startswith((_OURS, *_PYTHON)) or any(part in path for part in _INSTALLED))


def _nearest(module: ModuleType, wanted: str) -> str:
    names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    return nearest_names(wanted, names) if names else "it has nothing of this kind."
