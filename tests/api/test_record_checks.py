"""A cell's record computed again, with everything that its observer measured."""

import gapfloor
from gapfloor.api.verify import play_record, record_differences
from gapfloor.calibration.probe import ProbeSettings
from gapfloor.play.replay import spec_of
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store

SMALL = {"episodes": 4, "slots": 2, "draws": (0,), "train": "0:20", "test": "100:120", "workers": 1}


def test_a_cell_with_a_probe_gives_its_record_again(tmp_path):
    policy = "small_policies:linear"
    gapfloor.evaluate(policy, game="starpilot", rules="sampled", probe=8, store=tmp_path, **SMALL)
    cells = [cell for cell in Store(tmp_path).cells() if not cell.is_reference]
    for cell in cells:
        record = cell.manifest.record
        assert record["probe_states"] == 8
        probe = ProbeSettings(states=8, classes=_classes(tmp_path))
        play, again = play_record(spec_of(cell), PolicySource(policy), probe=probe)
        assert list(record_differences(record, again)) == []
        assert len(play.finished()) == 4


def _classes(store):
    from gapfloor.calibration.classes import load_classes

    spec = spec_of(Store(store).cells()[0])
    return load_classes(store, spec.engine).labels


def test_what_differs_is_named_with_both_values():
    found = list(record_differences({"entropy_raw": 2.5, "k": 3, "n": 1}, {"entropy_raw": 2.25, "n": 1}))
    assert found == [
        "it records entropy_raw 2.5, but playing it again gave 2.25",
        "it records k 3, but playing it again gave None",
    ]
