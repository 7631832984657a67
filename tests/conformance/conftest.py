"""Clusters with users, asked the same on both sides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.guarded import GuardedPair, guarded_pair
from tests.conformance.pair import QUICK, Pair
from tests.conformance.sasl import sasl_pair, write_users

__all__ = ["QUICK", "Pair"]


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedPair]:
    with guarded_pair(tmp_path_factory.mktemp("guarded")) as both:
        yield both


@pytest.fixture(scope="package")
def sasl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with sasl_pair(tmp_path_factory.mktemp("sasl")) as both:
        both.run_on_both(write_users)
        yield both
