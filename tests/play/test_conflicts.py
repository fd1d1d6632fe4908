"""What a store refuses to hold: one content under two names, and one name for two contents."""

import pytest

import small_stores
from gapfloor.errors import StoreError
from gapfloor.play.campaign import refuse_other_name
from gapfloor.records.run_identity import RunIdentity

pytestmark = pytest.mark.fast

RUN = RunIdentity.from_labels(small_stores.LABELS)


def test_copies_of_one_checkpoint_are_one_run(empty_store):
    small_stores.write_cell(empty_store)
    copy = RunIdentity.from_labels({**small_stores.LABELS, "seed": 2})
    with pytest.raises(StoreError, match="copies of one checkpoint are one run"):
        refuse_other_name(empty_store.cells(), policy="abc", run=copy)
    refuse_other_name(empty_store.cells(), policy="abc", run=RUN)


def test_one_name_for_two_policies_is_refused(empty_store):
    small_stores.write_cell(empty_store)
    with pytest.raises(StoreError, match="already holds another policy"):
        refuse_other_name(empty_store.cells(), policy="xyz", run=RUN)
