"""Replayed episodes as the page shows them: the same level under several rules, side by side.

`gapfloor replay` leaves `replays/<name>.npz` (frames) with a JSON file of the same name. Frames become one sprite sheet
per episode: a single image that a few lines of script play, pause and step through, which an animated image could
not. Long episodes are thinned; all clips of a level share one clock, so one sees a stuck policy stand still
while another has long finished.
"""

from __future__ import annotations

import base64
import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapfloor.npy_bytes import read_npy

#: Frames a clip keeps; longer episodes are thinned evenly.
MOST_FRAMES = 160
#: Frames of an episode that are unpacked; 240 frames of 800 x 600 pixels have less.
MOST_FRAME_BYTES = 512 << 20
_COLUMNS = 16
#: What reading a damaged file can raise; RuntimeError includes RecursionError and NotImplementedError.
_DAMAGED = (OSError, ValueError, RuntimeError)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """One replayed episode; `rule` is the reference's name for a reference."""

    game: str
    rule: str
    agent: str
    seed: str
    level_seed: int
    level_set: str
    episode_return: float
    length: int
    is_reference: bool
    path: Path


@dataclass(frozen=True, kw_only=True)
class Clip:
    """An episode ready for the page."""

    replay: Replay
    source: str
    """The sprite sheet as a data address."""
    frames: int
    columns: int
    height: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One level under several rules."""

    stride: int
    """Steps of the game a shown frame stands for."""
    start: int
    """The shown frame with which the scene opens: where its clips diverge."""
    clips: tuple[Clip, ...]


def read_replays(folder: Path) -> tuple[Replay, ...]:
    """The replays of a store, in the order of file names; files without frames are passed over."""
    found = []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            frames = path.with_suffix(".npz")
            length = int(facts["length"])
            if not frames.exists() or not 0 <= length < 2**31:
                continue
            reference = str(facts.get("reference") or "")
            found.append(
                Replay(
                    game=str(facts["game"]),
                    rule=reference or str(facts["rule"]),
                    agent=str(facts.get("agent") or ""),
                    seed="" if facts.get("seed") is None else str(facts["seed"]),
                    level_seed=int(facts["level_seed"]),
                    level_set=str(facts.get("level_set", "")),
                    episode_return=float(facts["episode_return"]),
                    length=length,
                    is_reference=bool(reference),
                    path=frames,
                )
            )
        except (*_DAMAGED, KeyError, TypeError, OverflowError, AttributeError):
            continue
    return tuple(found)


def build_scenes(replays: Sequence[Replay], *, rules: Sequence[str]) -> tuple[Scene, ...]:
    """One level per game: that seen under the most rules, among them that where returns differ most."""
    levels: dict[tuple[str, str, int], dict[str, Replay]] = {}
    for replay in replays:
        level = (replay.game, replay.level_set, replay.level_seed)
        levels.setdefault(level, {}).setdefault(replay.rule, replay)

    def rank(level: tuple[str, str, int]) -> tuple[float, float, tuple[str, str, int]]:
        returns = [replay.episode_return for replay in levels[level].values()]
        return -len(returns), min(returns) - max(returns), level

    chosen: dict[str, tuple[str, str, int]] = {}
    for level in sorted(levels, key=rank):
        chosen.setdefault(level[0], level)
    scenes = (_scene(levels[level].values(), rules) for level in sorted(chosen.values()))
    return tuple(scene for scene in scenes if scene.clips)


def _scene(replays: Iterable[Replay], rules: Sequence[str]) -> Scene:
    """The replays of one level, those of references last."""
    order = {rule: at for at, rule in enumerate(rules)}
    members = sorted(replays, key=lambda each: (each.is_reference, order.get(each.rule, 99), each.rule))
    stride = max(1, math.ceil(max(replay.length for replay in members) / MOST_FRAMES))
    shown = [
        (replay, stack[_shown_frames(len(stack), replay.length, stride)])
        for replay in members
        if len(stack := read_frames(replay.path))
    ]
    clips = tuple(_clip(replay, kept) for replay, kept in shown)
    return Scene(stride=stride, start=_start([kept for _, kept in shown]), clips=clips)


def _start(stacks: Sequence[npt.NDArray[np.uint8]]) -> int:
    """The first frame that differs by three quarters of the largest difference, while all clips last."""
    length = min(map(len, stacks), default=0)
    if length == 0 or len({stack.shape[1:] for stack in stacks}) > 1:
        return 0
    step = max(1, stacks[0].shape[1] // 64)  # 64 rows of a large picture are enough
    alike = [stack[:length, ::step, ::step].astype(np.int16) for stack in stacks]
    differences = np.sum([np.abs(stack - alike[0]).mean(axis=(1, 2, 3)) for stack in alike], axis=0)
    return int(np.argmax(differences >= 0.75 * differences.max()))


def read_frames(path: Path) -> npt.NDArray[np.uint8]:
    """The frames of a replay, [T, height, width, 3]; empty where the file is not one. Runs nothing from it."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("frames.npy") as file:
            # A short file can unpack to any number of bytes.
            content = file.read(MOST_FRAME_BYTES + 1)
        if len(content) > MOST_FRAME_BYTES:
            raise ValueError("too large")
        frames = read_npy(content)
        if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8:
            raise ValueError("not frames")
    except (*_DAMAGED, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return np.zeros((0, 1, 1, 3), dtype=np.uint8)
    return frames


def _clip(replay: Replay, kept: npt.NDArray[np.uint8]) -> Clip:
    from PIL import Image

    height, width = kept.shape[1:3]
    columns = min(_COLUMNS, len(kept))
    rows = math.ceil(len(kept) / columns)
    sheet = np.zeros((rows * height, columns * width, 3), dtype=np.uint8)
    for at, frame in enumerate(kept):
        top, left = at // columns * height, at % columns * width
        sheet[top : top + height, left : left + width] = frame
    buffer = io.BytesIO()
    Image.fromarray(sheet).save(buffer, "WEBP", quality=70, method=4)
    return Clip(
        replay=replay,
        source="data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"),
        frames=len(kept),
        columns=columns,
        height=height,
        width=width,
    )


def _shown_frames(n_frames: int, length: int, stride: int) -> npt.NDArray[np.int64]:
    """Which kept frame is shown at step 0, stride, 2 stride, ...; the last one, the outcome, always is.

    A long episode's frames were thinned evenly when it was replayed, so frame i is not step i.
    """
    steps = np.arange(0, max(1, length), stride)
    if steps[-1] != length - 1:
        steps = np.append(steps, length - 1)
    chosen: npt.NDArray[np.int64] = np.rint(steps / max(1, length - 1) * (n_frames - 1)).astype(np.int64)
    return np.clip(chosen, 0, n_frames - 1)
