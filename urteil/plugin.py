"""The pytest plugin: clusters, faults and verdicts as fixtures.

It loads in every pytest of its environment, so nothing heavy is imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.nodes import Node

    from urteil.chaos.manual_faults import ManualFaults
    from urteil.lab import ClusterHandle, History, Lab

SHARED_LABS = ("_urteil_module_lab", "_urteil_session_lab")
"""Fixtures of shared labs, the nearest first."""
LAB: pytest.StashKey[Lab] = pytest.StashKey()


def _setting(text: str) -> tuple[str, str]:
    """`KEY=VALUE` in two; argparse reports the ValueError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"{text!r} is not KEY=VALUE")
    return name, value


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("urteil", "chaos on clusters that speak the Kafka protocol")
    group.addoption("--urteil-cluster", metavar="NAME", help="use the standing cluster NAME")
    group.addoption(
        "--urteil-target",
        default="urteil",
        help="urteil (default), kafka[:VERSION] or mix:KIND,KIND,...",
    )
    group.addoption(
        "--urteil-runtime", choices=["process", "docker", "ssh"], help="where nodes run (process)"
    )
    group.addoption(
        "--urteil-hosts", metavar="FILE", help="with --urteil-runtime ssh: the inventory of hosts"
    )
    group.addoption(
        "--urteil-brokers", type=int, help="brokers of a cluster (3, or as many as the mix)"
    )
    group.addoption("--urteil-zookeepers", type=int, default=1, help="ZooKeeper servers (1)")
    group.addoption(
        "--urteil-controllers", type=int, choices=(0, 1, 3, 5), default=0,
        help="KRaft controllers with nodes of their own (0: the brokers are the controllers)",
    )  # fmt: skip
    group.addoption(
        "--urteil-quorum", choices=("static", "dynamic"), default="static",
        help="whether the voters of KRaft's quorum may change",
    )  # fmt: skip
    group.addoption(
        "--urteil-config",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a setting of the brokers; repeatable",
    )
    group.addoption("--urteil-seed", type=int, default=1, help="seed of every random choice (1)")
    group.addoption("--urteil-out", default="runs", help="folder of the runs (runs)")
    group.addoption(
        "--urteil-engine",
        choices=["auto", "duckdb", "spark"],
        default="auto",
        help="engine of verdicts (auto)",
    )
    group.addoption(
        "--urteil-keep",
        action="store_true",
        help="leave the cluster of a failed test standing: urteil cluster status",
    )
    parser.addini(
        "urteil_short_names",
        "also offer the fixtures as cluster, nemesis and history",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "urteil(brokers, zookeepers, controllers, quorum, target, runtime, config, topics, seed): "
        "the cluster of a test, class or module (docs/guide/plugin.md)",
    )
    if config.getoption("--urteil-hosts") and config.getoption("--urteil-runtime") != "ssh":
        raise pytest.UsageError("--urteil-hosts names the hosts of --urteil-runtime ssh: add it")
    if config.getini("urteil_short_names"):
        config.pluginmanager.register(_ShortNames(), "urteil-short-names")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the run and the last lines of the brokers' logs to a failed test's report."""
    report = yield
    if report.failed and (lab := _nearest_lab(item)) is not None:
        lab.mark_failed()
        report.sections.append(("urteil", lab.failure()))
    return report


def _nearest_lab(item: pytest.Item) -> Lab | None:
    """The nearest lab that a test uses, or None."""
    names = getattr(item, "fixturenames", ())
    nodes = {
        "urteil_lab": item,
        "_urteil_module_lab": item.getparent(pytest.Module),
        "_urteil_session_lab": item.session,
    }
    used = (node.stash.get(LAB, None) for name, node in nodes.items() if node and name in names)
    return next(filter(None, used), None)


@pytest.fixture
def urteil_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The lab that the three fixtures of one test share: run folder, cluster, seed."""
    names = (name for name in SHARED_LABS if name in request.fixturenames)
    shared = next(map(request.getfixturevalue, names), None)
    module = request.node.getparent(pytest.Module)
    above = module.listchain() if shared and module else ()  # markers of the shared one
    yield from _open(request, request.node.name, _marks(request.node, above=above), shared)


@pytest.fixture(scope="session")
def urteil_session_settings() -> dict[str, Any]:
    """Keywords of `@pytest.mark.urteil` for the session's cluster; override this fixture."""
    return {}


@pytest.fixture(scope="session")
def _urteil_session_lab(
    request: pytest.FixtureRequest, urteil_session_settings: dict[str, Any]
) -> Iterator[Lab]:
    yield from _open(request, "session", [urteil_session_settings])


@pytest.fixture(scope="module")
def _urteil_module_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    yield from _open(request, request.node.name, _marks(request.node))


@pytest.fixture(scope="session")
def urteil_session_cluster(_urteil_session_lab: Lab) -> ClusterHandle:
    """One running cluster for all tests of the session that use it."""
    return _urteil_session_lab.cluster()


@pytest.fixture(scope="module")
def urteil_module_cluster(_urteil_module_lab: Lab) -> ClusterHandle:
    """One running cluster for all tests of a module that use it."""
    return _urteil_module_lab.cluster()


def _marks(node: Node, *, above: Sequence[Node] = ()) -> list[dict[str, Any]]:
    """The keywords of the markers of a test or a module, the nearest last.

    Markers of the nodes `above` are left out.
    """
    marks = list(node.iter_markers_with_node("urteil"))[::-1]
    if values := [value for _, mark in marks for value in mark.args]:
        raise pytest.UsageError(
            f"@pytest.mark.urteil({values[0]!r}): it accepts keywords only, as in "
            "@pytest.mark.urteil(brokers=3)"
        )
    return [dict(mark.kwargs) for owner, mark in marks if owner not in above]


def _open(
    request: pytest.FixtureRequest,
    name: str,
    marks: list[dict[str, Any]],
    shared: Lab | None = None,
) -> Iterator[Lab]:
    """A lab for the scope of `request`, which ends with it or is kept after a failure."""
    from urteil.lab import Lab
    from urteil.lab_options import Options, with_markers

    option = request.config.getoption
    options = Options(
        standing=option("--urteil-cluster"),
        target=option("--urteil-target"),
        runtime=option("--urteil-runtime") or "process",
        hosts=option("--urteil-hosts") or "",
        brokers=option("--urteil-brokers"),
        zookeepers=option("--urteil-zookeepers"),
        controllers=option("--urteil-controllers"),
        quorum=option("--urteil-quorum"),
        config=dict(option("--urteil-config")),
        seed=option("--urteil-seed"),
        out=option("--urteil-out"),
        engine=option("--urteil-engine"),
        keep=option("--urteil-keep"),
    )
    running_cluster = f"the cluster {options.standing}" if options.standing else ""
    if shared:
        running_cluster = f"the cluster of {shared.name}"
    lab = Lab(name, with_markers(options, marks, running_cluster), shared)
    request.node.stash[LAB] = lab
    try:
        yield lab
    finally:
        try:
            if lab.has_failed and lab.options.keep:
                lab.keep()
        finally:
            lab.close()


@pytest.fixture
def urteil_cluster(urteil_lab: Lab) -> ClusterHandle:
    """A running cluster of this test's own, or the standing one of `--urteil-cluster`."""
    return urteil_lab.cluster()


@pytest.fixture
def urteil_nemesis(urteil_lab: Lab) -> ManualFaults:
    """Injects faults around a block: `with urteil_nemesis.fault("crash", "leader", topic="t"):`."""
    return urteil_lab.nemesis()


@pytest.fixture
def urteil_history(urteil_lab: Lab) -> History:
    """Runs the lab's own clients during the test, and judges their records."""
    return urteil_lab.history()


class _ShortNames:
    """The fixtures under short names, enabled by the option `urteil_short_names`."""

    @pytest.fixture
    def cluster(self, urteil_cluster: ClusterHandle) -> ClusterHandle:
        return urteil_cluster

    @pytest.fixture
    def nemesis(self, urteil_nemesis: ManualFaults) -> ManualFaults:
        return urteil_nemesis

    @pytest.fixture
    def history(self, urteil_history: History) -> History:
        return urteil_history
