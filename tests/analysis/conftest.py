"""The paper-shaped study, read and analysed once."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def paper():
    import paper_shaped

    return paper_shaped.load()


@pytest.fixture(scope="session")
def paper_results(paper):
    from gapfloor.analysis import analyse

    return analyse(paper.episodes, cells=paper.cells)
