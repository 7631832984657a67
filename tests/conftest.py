"""What tests of several rooms share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from urteil.harness.containers.engine import Engine
from urteil.harness.containers.own_engine import running_engine


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nights", "how long the tests hunt")
    group.addoption("--kill-rounds", type=int, default=30, help="rounds of SIGKILL (30)")
    group.addoption("--kill-seed", type=int, help="seed of these rounds (drawn anew, and printed)")


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The container engine that runs, as it is; where none does, one of the lab's own until the
    session ends, with DOCKER_HOST set. Container tests never skip."""
    with running_engine(print) as found:
        yield found
