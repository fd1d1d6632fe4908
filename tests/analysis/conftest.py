"""The paper-shaped study, read and analysed once."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def paper():
    import paper_shaped

    return paper_shaped.load()


@pytest.fixture(scope="session")
def paper_results(paper):
    from gapfloor.analysis.apply import analyse
    from gapfloor.plan.model import Plan

    return analyse(paper.episodes, Plan.paper(), cells=paper.cells)
