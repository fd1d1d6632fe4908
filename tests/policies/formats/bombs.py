"""Files that would run code if they were unpickled."""

from __future__ import annotations

import base64
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = str(marker)

    def __reduce__(self) -> Any:
        return open, (self._marker, "w")


def rewrite(source: Path, target: Path, **members: bytes) -> Path:
    """The zip with some of its members replaced."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, members.get(name.replace(".", "_"), old.read(name)))
    return target


def bomb_in_every_pickle(source: Path, marker: Path) -> bytes:
    with zipfile.ZipFile(source) as archive:
        data = json.loads(archive.read("data"))
    for value in data.values():
        if isinstance(value, dict) and ":serialized:" in value:
            value[":serialized:"] = base64.b64encode(pickle.dumps(Bomb(marker))).decode()
    return json.dumps(data).encode()
