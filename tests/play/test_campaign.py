"""A campaign on the real engine: what is wanted, what is missing, and one scan of the store."""

from gapfloor.api.checkpoints import read_sample
from gapfloor.play.campaign import plan_campaign
from gapfloor.play.protocol import make_protocol
from gapfloor.play.workers import CellWorkers
from gapfloor.records.store import Store

SMALL = {"design": "census", "train": "0:3", "test": "100:102"}


class CountingStore(Store):
    """Counts how often all cells are listed."""

    scans = 0

    def cells(self):
        self.scans += 1
        return super().cells()


def plan(store):
    protocol = make_protocol(["bigfish"], **SMALL)
    return plan_campaign(protocol, store, references=("uniform", "constant:0", "best-constant"))


def test_the_store_is_scanned_once_although_the_best_constant_is_chosen_by_playing(tmp_path):
    store = CountingStore(tmp_path)
    campaign = plan(store)
    assert len(campaign.missing) == 2 + 2 + 14
    campaign.play(CellWorkers(1))
    assert store.scans == 1
    assert campaign.missing == ()
    names = [cell.run.reference for cell in campaign.reference_cells]
    assert names == ["uniform", "uniform", "constant:0", "constant:0", "best-constant", "best-constant"]


def test_a_second_campaign_misses_nothing_and_a_deleted_cell_is_missed(tmp_path):
    plan(Store(tmp_path)).play(CellWorkers(1))
    again = plan(Store(tmp_path))
    assert again.missing == ()
    floor = again.games[0].floor
    (tmp_path / "cells" / f"{floor[1].file_name}.json").unlink()
    assert plan(Store(tmp_path)).missing == (floor[1],)


def test_a_sample_holds_the_episodes_of_one_level_set(tmp_path):
    campaign = plan(Store(tmp_path))
    campaign.play(CellWorkers(1))
    sample = read_sample(campaign.store, campaign.games[0].floor, level_set="test")
    assert sample.levels.tolist() == [100, 101]
    assert 0 < sample.top_action_share < 0.5
