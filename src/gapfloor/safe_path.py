"""Child processes that import nothing from the current folder.

`python -m` and `python -c` put the current folder first on the path, so a file there that is named like one of Python's
own modules would run in every worker. The user's own modules are found without that: a worker gets the path of the
process that started it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

SAFE_PATH = {"PYTHONSAFEPATH": "1"}


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Children that start within the `with` do not have the current folder on their path."""
    before = {name: os.environ.get(name) for name in SAFE_PATH}
    os.environ.update(SAFE_PATH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
