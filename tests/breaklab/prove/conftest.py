from __future__ import annotations

import pytest

from breaklab.ranks.warm import WarmParent


@pytest.fixture(scope="session")
def warm():
    """One warm parent for all proofs here: the tiny lab preloads nothing."""
    with WarmParent("", ()) as parent:
        yield parent
