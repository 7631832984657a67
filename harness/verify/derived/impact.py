"""The cost of each fault: how long acknowledgements stopped and the cluster was not healthy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from urteil.chaos.effects import Effect
from urteil.chaos.topology import EAST
from urteil.harness.scenario import RunFacts, Scenario, node_names
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, has_only
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.evidence import Row, links_of, nodes_of, targets_of
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS
from urteil.harness.verify.result import FaultResult

_MS_NS = 1_000_000
BROKER = re.compile(r"b\d+")
_CLIENT_SLACK_NS = SECOND_NS
_SHORTEST_NS = 2 * SECOND_NS


def acting_interval(fault: Row) -> Interval:
    """The time in which a fault could act, until it was healed."""
    return Interval(fault["begin_ns"], fault["healed_ns"] or fault["end_ns"] or FOREVER_NS)


def windows(derived: Derived) -> list[Row]:
    """Rows of the table `windows`: when each fault could act. `ended_broker` is set for a fault
    whose only effect was to end that broker."""
    return [
        {
            "n": n,
            "begin_ns": acting_interval(fault).begin_ns,
            "end_ns": acting_interval(fault).end_ns,
        }
        | {"ended_broker": _ended_broker(fault)}
        for n, fault in enumerate(derived.faults)
    ]


def _ended_broker(fault: Row) -> int | None:
    targets = targets_of(fault) if has_only(fault, ENDS_NODES) else ()
    return (
        int(targets[0].removeprefix("b"))
        if len(targets) == 1 and BROKER.fullmatch(targets[0])
        else None
    )


def _unhealthy_versions(derived: Derived, topics: Collection[str] = ()) -> list[Row]:
    """Versions of states in which a partition of the run, or of these topics, had no leader or an
    incomplete ISR."""
    replication_of = {
        part["p"]: part["replication"]
        for part in derived.partitions
        if part["in_run"] or part["topic"] in topics
    }
    return [
        span
        for span in derived.tables.get("state_spans", [])
        if span["p"] in replication_of
        and (span["leader"] < 0 or span["isr_size"] < replication_of[span["p"]])
    ]


def unhealthy(derived: Derived, topics: Collection[str] = ()) -> list[Interval]:
    """The times in which a partition of the run, or of these topics, had no leader or an incomplete
    ISR, merged and in order."""
    spans = _unhealthy_versions(derived, topics)
    bad = sorted(
        (Interval(span["begin_ns"], span["end_ns"]) for span in spans),
        key=lambda interval: interval.begin_ns,
    )
    merged: list[Interval] = []
    for interval in bad:
        if merged and interval.begin_ns <= merged[-1].end_ns:
            merged[-1] = Interval(merged[-1].begin_ns, max(merged[-1].end_ns, interval.end_ns))
        else:
            merged.append(interval)
    return merged


def healthy_again_ns(bad: Sequence[Interval], since_ns: int) -> int | None:
    """The first moment from `since_ns` on at which the cluster is healthy; None if there is
    none."""
    for interval in bad:
        if interval.begin_ns <= since_ns < interval.end_ns:
            return None if interval.end_ns >= FOREVER_NS else interval.end_ns
    return since_ns


def recoveries(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """Rows of the table `recoveries`, one for each healed fault, including faults without a proof
    that they acted. A topic that a fault created has to be healthy, too.

    A fault is measured and not judged if another fault began during its recovery, or if the run
    ended before the deadline.
    """
    watched_ns = max((phase.end_ns for phase in facts.phases), default=0)
    known = bool(derived.tables.get("state_spans"))
    healings = []
    for n, fault in enumerate(derived.faults):
        healed_ns = fault["healed_ns"]
        if healed_ns is None or not known:
            continue
        targets = targets_of(fault)
        in_sync_ns = healthy_again_ns(unhealthy(derived, targets), healed_ns)
        until = in_sync_ns or healed_ns + int(scenario.recovery_deadline_s * SECOND_NS)
        is_known = in_sync_ns is not None or until <= watched_ns
        alone = not any(
            acting_interval(other).meets(Interval(healed_ns, max(until, healed_ns + 1)))
            for m, other in enumerate(derived.faults)
            if m != n
        )
        healings.append(
            {
                "n": n,
                "fault": fault["fault"],
                "targets": ",".join(targets),
                "p": _last_p(derived, targets, Interval(healed_ns, in_sync_ns or FOREVER_NS)),
                "healed_ns": healed_ns,
                "recovery_s": None if in_sync_ns is None else (in_sync_ns - healed_ns) / SECOND_NS,
                "deadline_s": scenario.recovery_deadline_s,
                "judged": int(alone and is_known),
            }
        )
    return healings


def _last_p(derived: Derived, topics: Collection[str], recovery: Interval) -> int | None:
    """The partition that recovered last."""
    late = [
        (min(span["end_ns"], recovery.end_ns), -span["p"])
        for span in _unhealthy_versions(derived, topics)
        if recovery.meets(Interval(span["begin_ns"], span["end_ns"]))
    ]
    return -max(late)[1] if late else None


def progress_rows(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """Rows of `progress_in_faults`: a fault, and a partition that must make progress during it."""
    if not scenario.survives:
        return []
    bad = unhealthy(derived)
    load = load_of(facts)
    progress_rows = []
    for n, fault in enumerate(derived.faults):
        window = acting_interval(fault)
        others = [acting_interval(other) for m, other in enumerate(derived.faults) if m != n]
        is_healthy = not any(s.begin_ns < window.begin_ns < s.end_ns for s in bad)
        if not fault["acted"] or not is_healthy or any(window.meets(other) for other in others):
            continue
        if not _removes_minority(fault, scenario):
            continue
        for part in derived.partitions:
            if not part["in_run"] or part["gone"] or part["replication"] < 2:
                continue
            from_ns = window.begin_ns + grace_ns(scenario)
            to_ns = min(fault["end_ns"] or window.end_ns, load.end_ns)
            if to_ns - from_ns >= _SHORTEST_NS:
                progress_rows.append(
                    {"n": n, "p": part["p"], "fault": fault["fault"], "from_ns": from_ns}
                    | {"targets": ",".join(targets_of(fault)), "to_ns": to_ns}
                    | {"begin_ns": window.begin_ns}
                )
    return progress_rows


def load_of(facts: RunFacts) -> Interval:
    """The time of the load; empty if the lab died before it recorded its phases."""
    loads = [phase for phase in facts.phases if phase.name in ("before", "during", "after")]
    return Interval(
        min((phase.begin_ns for phase in loads), default=0),
        max((phase.end_ns for phase in loads), default=0),
    )


def grace_ns(scenario: Scenario) -> int:
    """The time after a fault's begin in which leaders may still be elected, and clients may still
    retry."""

    def read(name: str) -> int:
        return int(float(setting(None, scenario, name)))

    moved_ms = read("zookeeper.session.timeout.ms") + 1.5 * read("replica.lag.time.max.ms")
    gave_up_ms = scenario.workload.request_timeout_ms
    return int(max(moved_ms, gave_up_ms) * _MS_NS) + _CLIENT_SLACK_NS


def _removes_minority(fault: Row, scenario: Scenario) -> bool:
    """Whether a fault removes a minority completely: a crash, or all links of its nodes cut. A
    broker reports a failed log directory to the controller, or ends itself (KIP-112).

    Brokers whose sessions ended register again at once, so their number does not matter. Where one
    broker cannot reach another, and the other can reach it, its replicas leave the ISRs of the
    partitions that the other one leads.
    """
    if has_only(fault, {Effect.ENDS_SESSIONS}):
        return True
    if has_only(fault, ENDS_NODES | {Effect.REMOVES_DISKS}):
        return _is_minority(targets_of(fault), scenario)
    if not has_only(fault, {Effect.CUTS_LINKS}):
        return False
    cut, met = links_of(fault), nodes_of(fault)
    if len(cut) == 1:
        return all(BROKER.fullmatch(end) for end in met)
    inside = set.intersection(*map(set, cut)) if cut else set()
    names = node_names(scenario, EAST)
    nodes = {*names.brokers, *names.zookeepers, *names.voters}
    return bool(inside) and _is_minority(sorted(inside), scenario) and nodes <= met


def _is_minority(nodes: Iterable[str], scenario: Scenario) -> bool:
    """Whether these are fewer than half of the brokers, and of the metadata nodes, if there are
    any."""
    names, chosen = node_names(scenario, EAST), set(nodes)
    metadata_nodes = {*names.zookeepers, *names.voters} - {*names.brokers}
    chosen_brokers = chosen - metadata_nodes
    return (
        bool(chosen)
        and 2 * len(chosen_brokers) < scenario.cluster.brokers
        and (not metadata_nodes or 2 * len(chosen - chosen_brokers) < len(metadata_nodes))
    )


def fault_results(
    derived: Derived, recovered: Sequence[Row], ticks: Sequence[Row]
) -> list[FaultResult]:
    """Every fault with its longest gap between acknowledgements, from its begin to recovery."""
    by_fault = {row["n"]: row for row in recovered}
    tick_times = sorted((row["first_ns"], row["last_ns"]) for row in ticks)
    results = []
    for n, fault in enumerate(derived.faults):
        recovery = by_fault.get(n)
        recovery_s = recovery["recovery_s"] if recovery else None
        end_ns = acting_interval(fault).end_ns + int((recovery_s or 0.0) * SECOND_NS)
        results.append(
            FaultResult(
                fault=fault["fault"],
                targets=targets_of(fault),
                begin_ns=fault["begin_ns"],
                end_ns=fault["end_ns"] or acting_interval(fault).end_ns,
                healed_ns=fault["healed_ns"],
                proof=fault["proof"] or "",
                acted=bool(fault["acted"]),
                unavailable_s=longest_gap_s(tick_times, Interval(fault["begin_ns"], end_ns)),
                recovery_s=recovery_s,
            )
        )
    return results


def longest_gap_s(ticks: Sequence[tuple[int, int]], window: Interval) -> float | None:
    """The longest time without an acknowledgement that overlaps `window`; None without any
    acknowledgement.

    `ticks` are the first and last acknowledgement of each tick in order, of all partitions
    together. A gap that is still open at the last acknowledgement is not counted: the load ended
    there.
    """
    longest = None
    reached: int | None = None
    for first_ns, last_ns in ticks:
        if reached is not None and Interval(reached, max(first_ns, reached + 1)).meets(window):
            longest = max(longest or 0.0, (first_ns - reached) / SECOND_NS)
        reached = last_ns if reached is None else max(reached, last_ns)
    return longest
