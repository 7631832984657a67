"""What tests of several rooms share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from urteil.harness.containers.engine import Engine
from urteil.harness.containers.own_engine import running_engine

ROOMS = ("conformance",)
"""Folders whose files share a cluster."""


TOLD: list[str] = []
"""Lines to print at the end of the session, in whichever process they were found."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run two at a time, those that share something run in one process: a file, a
    room with a cluster of its own, all that need the container engine."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    if "engine" in getattr(item, "fixturenames", ()):
        return "containers"
    room = item.path.parent.name
    return room if room in ROOMS else str(item.path)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["told"] = TOLD


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    TOLD.extend(getattr(node, "workeroutput", {}).get("told", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in TOLD:
        terminalreporter.write_line(line)


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
