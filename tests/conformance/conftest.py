"""Both clusters, asked the same; the count of it at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.guarded import GuardedPair, guarded_pair
from tests.conformance.ledger import Ledger
from tests.conformance.pair import QUICK, Pair, standing_or_fresh
from tests.conformance.sasl import sasl_pair, write_users
from tests.conftest import TOLD

__all__ = ["QUICK", "Pair"]

LEDGER = Ledger()


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with standing_or_fresh(tmp_path_factory.mktemp("pair")) as both:
        yield both
        LEDGER.further = both.compared
        TOLD.append(f"conformance: {LEDGER.summary()}")


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedPair]:
    with guarded_pair(tmp_path_factory.mktemp("guarded")) as both:
        yield both


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    return LEDGER


@pytest.fixture(scope="package")
def sasl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with sasl_pair(tmp_path_factory.mktemp("sasl")) as both:
        both.both(write_users)
        yield both
