"""When cells were written is noted in `log/`, apart from the results."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gapfloor.records.store import note_cell_time, times_of_cells

pytestmark = pytest.mark.fast


def test_the_first_time_of_each_cell_is_kept(tmp_path):
    for hour in (9, 7, 8):
        note_cell_time(tmp_path, "a", now=datetime(2026, 1, 1, hour, tzinfo=UTC))
    note_cell_time(tmp_path, "b", now=datetime(2026, 1, 1, 6, tzinfo=UTC))
    assert times_of_cells(tmp_path) == {"a": "2026-01-01T07:00:00Z", "b": "2026-01-01T06:00:00Z"}


def test_half_a_line_is_passed_over(tmp_path):
    note_cell_time(tmp_path, "a", now=datetime(2026, 1, 1, tzinfo=UTC))
    (notes,) = (tmp_path / "log" / "cells").iterdir()
    notes.write_text('{"cell": "b"\n[]\n' + notes.read_text() + '{"ce')
    assert list(times_of_cells(tmp_path)) == ["a"]


def test_a_store_without_notes_has_no_times(tmp_path):
    assert times_of_cells(tmp_path) == {}
