"""A scenario and the facts of its run: `scenario.json` and `run.json`.

A scenario is workload x faults x cluster x guarantees and one seed. It holds everything that a
second run needs. What happened (versions, phases, problems of the lab) is `RunFacts`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from urteil.chaos.faults.base.fault import KRAFT, target_kind
from urteil.chaos.topology import EAST, WEST
from urteil.chaos.weighted_faults import RandomSchedule
from urteil.harness.bounds import Bounds
from urteil.harness.stopwatch import Spent

FIRST_IDS = {EAST: 1, WEST: 11}
"""The first broker id and ZooKeeper id of each cluster of a run, so that names do not collide."""
Place = Literal["east", "west"]
Quorum = Literal["static", "dynamic"]
STATIC: Quorum = "static"
DYNAMIC: Quorum = "dynamic"
"""A cluster of a run: the first, or only, one is `east`, the second `west`."""


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The number of nodes of each kind, and broker properties beyond the lab's defaults.

    Each broker has `log_dirs` log directories. `older` brokers begin with the release before the
    target's (see the fault `upgrade`). With `own_clocks` each broker and controller has a wall
    clock that faults can set (runtimes `process` and `ssh`). With `records_flushes` the lab records
    what each of them flushes, so that a power cut takes the rest, whatever the node believes
    (runtime `process`; elsewhere a cut goes by the broker's recovery points). With `users` brokers
    have ACLs and a further listener, where users authenticate by SCRAM (runtime `process` only;
    docs/guide/workloads.md). With `racks` each broker is in a rack of its own, and consumers of
    that rack read from it (KIP-392).

    Targets with ZooKeeper have `zookeepers` servers of it, others `controllers` nodes of KRaft's
    quorum; with 0 the brokers are the quorum. The voters of a `static` quorum stand in the property
    files, those of a `dynamic` one in its metadata log, and may change (KIP-853).
    """

    brokers: int = 3
    zookeepers: int = 1
    controllers: int = 0
    quorum: Quorum = STATIC
    config: dict[str, str] = {}
    log_dirs: int = 1
    older: bool = False
    own_clocks: bool = False
    records_flushes: bool = False
    users: bool = False
    racks: bool = False


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that the run creates before its load starts, in `cluster`. Only the application of a
    pipeline writes to a topic with `copies`."""

    name: str = "urteil"
    partitions: int = 3
    replication_factor: int = 3
    config: dict[str, str] = {}
    copies: bool = False
    cluster: Place = "east"


class WorkloadSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The clients of a run. `kind` names the workload (`harness/clients/workload_kinds.py`),
    `client` the library of the kinds of clients that it can play (`ClientKind.libraries`).

    `rate_records_per_s` is the sum over all producers. `acks` is 0, 1 or -1 (all). `options` are
    text; the kinds of clients declare them with types and bounds (`harness/clients/options.py`).
    """

    kind: str = "append"
    topics: tuple[TopicSpec, ...] = (TopicSpec(),)
    producers: int = 2
    consumers: int = 1
    rate_records_per_s: float = 300.0
    acks: int = -1
    idempotent: bool = True
    in_flight: int = 5
    value_bytes: int = 100
    keys: int = 50
    delivery_timeout_ms: int = 20_000
    request_timeout_ms: int = 3_000
    isolation: str = "read_uncommitted"
    group: str = "urteil-group"
    client: str = "kafka-python"
    options: dict[str, str] = {}


class FaultSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a schedule.

    It begins `at_s` seconds after the load began, or `at_s` after `after_acks` records were
    acknowledged, or at the first `after_event` (`election`, `controller`, `isr_shrink`,
    `isr_growth`, `decision`) from `at_s` on, `within_s` later at the latest; it is healed
    `duration_s` seconds after its begin. With `alone`, it waits until no other fault acts, and
    others wait for its healing.
    `target` is a selector by role (`leader`, `controller`, `minority` ...), a pair of them
    (`follower->leader`) or a node (`b1`). `options` are the fault's own (latency_ms, jitter_ms,
    direction ...) and `topic`, `partition`. `choice` is the seed of choices by role. A fault with a
    `choice` is settled: the run's seed no longer shifts its moment.
    """

    fault: str
    target: str = "random"
    at_s: float | None = None
    after_acks: int | None = None
    after_event: str | None = None
    within_s: float | None = None
    duration_s: float = 5.0
    alone: bool = False
    options: dict[str, str | float | bool] = {}
    choice: str = ""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One judged run. With a `second` cluster, faults and topics name the cluster that they mean.

    `suites` are the suites of `suites/` that play it. `guarantees` are the scenario's own: each
    must be judged, or the run is UNKNOWN; all other guarantees are checked as well. What settings
    and faults permit follows from them (harness/permits.py); `permits` adds what no setting says
    (`foreign_records`: other programs write to the topics too). `must_find` names permitted
    anomalies that the scenario exists to show (`lost_write`): its repeats must find them.
    `survives`: the settings promise progress during the faults (`no_progress`). `draw` adds faults
    drawn by the seed; at most `at_once` faults act at a time. With `bounds` the seed draws the rest
    of the scenario as well (harness/drawn_scenario.py). `coverage`: our brokers record which
    of their lines run. `engine` is the engine that `--engine auto` chooses
    (harness/verify/engines/choice.py). `hosts` is the inventory of
    the runtime ssh; with `client_hosts` the lab's clients run on these of its hosts.
    """

    name: str
    about: str = ""
    suites: tuple[str, ...] = ()
    cluster: ClusterSpec = ClusterSpec()
    second: ClusterSpec | None = None
    workload: WorkloadSpec = WorkloadSpec()
    faults: tuple[FaultSpec, ...] = ()
    draw: RandomSchedule | None = None
    bounds: Bounds | None = None
    at_once: int | None = None
    duration_s: float = 25.0
    guarantees: tuple[str, ...] = ()
    permits: tuple[str, ...] = ()
    must_find: tuple[str, ...] = ()
    survives: bool = False
    minimum_acks: int = 50
    recovery_deadline_s: float = 30.0
    final_read_deadline_s: float = 60.0
    seed: int = 1
    target: str = "urteil"
    runtime: str = "process"
    hosts: str = ""
    client_hosts: tuple[str, ...] = ()
    mutant: str | None = None
    coverage: bool = False
    engine: str = "auto"


MOST_PARTITIONS = 1_000_000
"""The most partitions of a topic. A larger number is a mistake, and judging it would not end."""

IMPORTED = "imported"
"""The runtime of a run whose history another tool recorded."""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the run by CLOCK_MONOTONIC: setup, before, during, after, final."""

    name: str
    begin_ns: int
    end_ns: int


class TopicFact(msgspec.Struct, frozen=True, kw_only=True):
    """A topic of the run as the cluster created it; `topic_id` is Kafka's base64 form."""

    name: str
    topic_id: str
    partitions: Annotated[int, msgspec.Meta(ge=0, le=MOST_PARTITIONS)]
    replication_factor: int
    config: dict[str, str] = {}
    copies: bool = False
    cluster: Place = "east"


class RunFacts(msgspec.Struct, kw_only=True):
    """What happened, beside the evidence. Any entry in `problems` makes the run UNKNOWN.

    `healed`: every fault was undone and every part of the lab lived, so an unhealthy cluster is at
    fault itself. `withheld` names tables of evidence that the target does not provide; guarantees
    that need them are not judged. `lacks` names capabilities that the brokers do not have
    (chaos/capabilities.py); guarantees that require them are not judged. `spent` has the seconds
    and the processor time of each phase.
    """

    run: str
    seed: int
    scenario: str
    target: str
    runtime: str
    boot_id: str
    command: str
    versions: dict[str, str] = {}
    seconds: dict[str, float] = {}
    spent: list[Spent] = []
    phases: list[Phase] = []
    topics: list[TopicFact] = []
    brokers: list[int] = []
    problems: list[str] = []
    healed: bool = True
    withheld: list[str] = []
    lacks: list[str] = []
    mutant: str | None = None
    mutant_ran: bool | None = None


def clusters(scenario: Scenario) -> dict[str, ClusterSpec]:
    """The clusters of a scenario by name."""
    first = {EAST: scenario.cluster}
    return first if scenario.second is None else {**first, WEST: scenario.second}


class NodeNames(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a cluster. `voters` are those of KRaft's quorum, with roles of their own or
    brokers."""

    brokers: list[str]
    zookeepers: list[str]
    voters: list[str]


def node_names(scenario: Scenario, cluster: str) -> NodeNames:
    """The nodes of a cluster of a scenario, by the plane of its target."""
    first = FIRST_IDS[cluster]
    size = scenario.second if cluster == WEST and scenario.second else scenario.cluster

    def names(prefix: str, count: int) -> list[str]:
        return [f"{prefix}{number}" for number in range(first, first + count)]

    brokers = names("b", size.brokers)
    if target_kind(scenario.target) != KRAFT:
        return NodeNames(brokers=brokers, zookeepers=names("zk", size.zookeepers), voters=[])
    voters = names("q", size.controllers) or brokers
    return NodeNames(brokers=brokers, zookeepers=[], voters=voters)


def with_duration(scenario: Scenario, duration_s: float) -> Scenario:
    """`scenario` with `duration_s` of load.

    A longer load repeats the schedule. A shorter one shrinks all moments and durations of its
    faults. Faults after acknowledgements stay. The number of drawn faults changes in proportion.
    """
    own_s = scenario.duration_s
    times = max(1, int(duration_s // own_s))
    scale = min(1.0, duration_s / own_s)
    faults = [
        fault
        if fault.at_s is None
        else msgspec.structs.replace(
            fault, at_s=turn * own_s + fault.at_s * scale, duration_s=fault.duration_s * scale
        )
        for turn in range(times)
        for fault in scenario.faults
        if turn == 0 or fault.at_s is not None
    ]
    drawn = scenario.draw
    if drawn is not None and drawn.count is not None:
        count = max(1, round(drawn.count * duration_s / own_s))
        drawn = msgspec.structs.replace(drawn, count=count)
    return msgspec.structs.replace(
        scenario, faults=tuple(faults), draw=drawn, duration_s=duration_s
    )


def load_scenario(run_dir: Path) -> Scenario:
    """The scenario of the run in `run_dir`."""
    return msgspec.json.decode((run_dir / "scenario.json").read_bytes(), type=Scenario)


def load_facts(run_dir: Path) -> RunFacts:
    """The facts of the run in `run_dir`."""
    return msgspec.json.decode((run_dir / "run.json").read_bytes(), type=RunFacts)


def save(path: Path, value: msgspec.Struct) -> None:
    """Write `value` as JSON, completely or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    part.replace(path)
