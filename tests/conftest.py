"""What tests of several rooms share."""

from __future__ import annotations

import fcntl
import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests import shared_fixtures
from tests.shared_fixtures import SHARING, group
from urteil.harness.dependencies import apt
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.containers.own_engine import running_engine

if TYPE_CHECKING:  # what takes a second to import is left to who asks for it
    from tests.conformance.ledger import Ledger
    from tests.conformance.pair import Pair

FIRST = (
    "tests/conformance/",
    "tests/clients/",
    "tests/harness/runtimes/containers/",
    "tests/urteil/test_containers_cli.py",
    "tests/harness/cluster/",
    "tests/urteil/",
    "tests/interop/",
    "tests/broker/test_",
    "tests/broker/metrics/",
    "tests/broker/net/",
    "tests/broker/security/",
    "tests/reports/",
)
"""What takes longest begins first: of several processes none ends alone with it."""

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
"""How fast a machine makes examples is nobody's fault."""

WORKER_LINES: list[str] = []
"""Lines to print at the end of the session, in whichever process they were found."""


class Scheduling(LoadFileScheduling):
    """A file at a time, and what shares something one after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid) or str(super()._split_scope(nodeid))


class ConstantsOnce:
    """Hypothesis parses every imported module of ours for constants, and stores what it found. The
    workers take turns, so that one of them parses and the others read."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self) -> Generator[None, Any, Any]:
        with Path(__file__).open() as turn:
            with suppress(OSError):  # of a file system without locks
                fcntl.flock(turn, fcntl.LOCK_EX)
            return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(shared_fixtures)
    config.pluginmanager.register(ConstantsOnce())
    _report_waits(config)


def _report_waits(config: pytest.Config) -> None:
    """A wait for another apt is reported on the terminal, whatever captures standard error."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        apt.TERMINAL = os.fdopen(os.dup(sys.stderr.fileno()), "w")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What collection makes lives until the end, so the garbage collector never searches it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Longest first. Within a group the files that use the same shared fixture follow each other,
    so that it ends early."""
    uses: dict[Path, int] = {}
    for item in items:
        use = shared_fixtures.first_use(item)
        uses[item.path] = min(uses.get(item.path, use), use)

    def turn(nodeid: str) -> int:
        turns = (n for n, begin in enumerate(FIRST) if nodeid.startswith(begin))
        return next(turns, len(FIRST))

    def place(item: pytest.Item) -> tuple[int, int, int]:
        name = group(item.nodeid)
        if name is None:
            return turn(item.nodeid), 0, 0
        begin = next(begin for begin, other in SHARING.items() if other == name)
        return turn(begin), uses[item.path], turn(item.nodeid)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["worker_lines"] = WORKER_LINES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    WORKER_LINES.extend(getattr(node, "workeroutput", {}).get("worker_lines", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in WORKER_LINES:
        terminalreporter.write_line(line)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nights", "how long the tests hunt")
    group.addoption("--kill-rounds", type=int, default=4, help="rounds of SIGKILL (4)")
    group.addoption("--kill-seed", type=int, help="seed of these rounds (drawn anew, and printed)")


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The container engine that runs, as it is; where none does, one of the lab's own until the
    last test of its group, with DOCKER_HOST set. Container tests never skip."""
    with running_engine(print) as running:
        yield running


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    from tests.conformance.ledger import Ledger

    return Ledger()


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory, ledger: Ledger) -> Iterator[Pair]:
    """Our cluster and Apache Kafka's, to be asked the same; the count of it at the end."""
    from tests.conformance.pair import standing_or_fresh

    with standing_or_fresh(tmp_path_factory.mktemp("pair")) as both:
        yield both
        ledger.further = both.compared
        if ledger.asked or both.compared:
            WORKER_LINES.append(f"conformance: {ledger.summary()}")
