"""Frames of a store that somebody sent: damaged ones and bombs are passed over."""

import io
import json
import zipfile

import numpy as np
import pytest

from gapfloor.report import replays
from gapfloor.report.replays import read_frames, read_replays

pytestmark = pytest.mark.fast


def npz(path, content, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("frames.npy", content)
    return path


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_frames_are_read_back(tmp_path):
    frames = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    assert np.array_equal(read_frames(npz(tmp_path / "a.npz", npy(frames))), frames)


def test_an_array_that_claims_more_than_it_holds_takes_no_memory(tmp_path):
    header = io.BytesIO()
    claim = {"descr": "|u1", "fortran_order": False, "shape": (9_000_000_000, 64, 64, 3)}
    np.lib.format.write_array_header_1_0(header, claim)
    assert len(read_frames(npz(tmp_path / "a.npz", header.getvalue() + bytes(100)))) == 0


def test_a_header_that_is_not_closed_is_passed_over(tmp_path):
    cut = npy(np.zeros((1, 2, 2, 3), np.uint8)).replace(b"(1, 2, 2, 3)", b"(1, 2, 2, 3,")
    assert len(read_frames(npz(tmp_path / "a.npz", cut))) == 0


def test_a_small_archive_that_unpacks_to_a_large_one_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(replays, "MOST_FRAME_BYTES", 100_000)
    bomb = npz(tmp_path / "a.npz", npy(np.zeros((20, 64, 64, 3), np.uint8)))
    assert bomb.stat().st_size < 2000
    assert len(read_frames(bomb)) == 0


@pytest.mark.parametrize(
    "content", [b"", b"x" * 100, b"\x93NUMPY\x09\x09", npy(np.array([{}], dtype=object))]
)
def test_what_is_not_an_array_is_passed_over(tmp_path, content):
    assert len(read_frames(npz(tmp_path / "a.npz", content))) == 0


@pytest.mark.parametrize("value", [float("inf"), None, [], "x", {}])
def test_a_replay_with_odd_facts_is_passed_over(tmp_path, value):
    facts = {"game": "a", "rule": "sampled", "level_seed": 1, "episode_return": 1.0, "length": 3}
    npz(tmp_path / "a.npz", npy(np.zeros((1, 4, 4, 3), np.uint8)))
    for name in ("level_seed", "length"):
        (tmp_path / "a.json").write_text(json.dumps({**facts, name: value}))
        assert read_replays(tmp_path) == ()
    (tmp_path / "a.json").write_text(json.dumps(value))
    assert read_replays(tmp_path) == ()
