"""Both clusters, asked the same; the count of it at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.ledger import Ledger
from tests.conformance.pair import QUICK, Pair, standing_or_fresh

__all__ = ["QUICK", "Pair"]

LEDGER = Ledger()


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with standing_or_fresh(tmp_path_factory.mktemp("pair")) as both:
        yield both
        LEDGER.further = both.compared


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    return LEDGER


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if LEDGER.asked or LEDGER.further:
        terminalreporter.write_sep("-", "conformance")
        terminalreporter.write_line(LEDGER.summary())
