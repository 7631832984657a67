"""Both clusters, for all clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.pair import Pair, standing_or_fresh


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with standing_or_fresh(tmp_path_factory.mktemp("clients")) as both:
        yield both
