"""The cost of each fault: how long acknowledgements stopped and the cluster was not whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from urteil.chaos.effects import Effect
from urteil.chaos.topology import EAST
from urteil.harness.scenario import RunFacts, Scenario, node_names
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, has_only
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.evidence import Row, links_of, nodes_of, targets_of
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS
from urteil.harness.verify.result import FaultResult

_MS_NS = 1_000_000
BROKER = re.compile(r"b\d+")
_CLIENT_SLACK_NS = SECOND_NS
_SHORTEST_TRIAL_NS = 2 * SECOND_NS


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `begin_ns` to `end_ns`."""

    begin_ns: int
    end_ns: int

    def meets(self, other: Stretch) -> bool:
        return self.begin_ns < other.end_ns and other.begin_ns < self.end_ns


def acting_stretch(fault: Row) -> Stretch:
    """The time in which a fault could act, until its healing was done."""
    return Stretch(fault["begin_ns"], fault["healed_ns"] or fault["end_ns"] or FOREVER_NS)


def windows(derived: Derived) -> list[Row]:
    """Rows of the table `windows`: when each fault could act, and the broker that was
    `away` where that is all that it did."""
    return [
        {"n": n, "begin_ns": acting_stretch(fault).begin_ns, "end_ns": acting_stretch(fault).end_ns}
        | {"ended_broker": _ended_broker(fault)}
        for n, fault in enumerate(derived.faults)
    ]


def _ended_broker(fault: Row) -> int | None:
    gone = targets_of(fault) if has_only(fault, ENDS_NODES) else ()
    return int(gone[0].removeprefix("b")) if len(gone) == 1 and BROKER.fullmatch(gone[0]) else None


def _unhealthy_versions(derived: Derived) -> list[Row]:
    """Versions of states in which a partition of the run had no leader or not its full ISR."""
    ours = {part["p"]: part["replication"] for part in derived.partitions if part["in_run"]}
    return [
        span
        for span in derived.tables.get("state_spans", [])
        if span["p"] in ours and (span["leader"] < 0 or span["isr_size"] < ours[span["p"]])
    ]


def unhealthy(derived: Derived) -> list[Stretch]:
    """When some partition of the run had no leader or not its full ISR, merged and in order."""
    bad = sorted(
        (Stretch(span["begin_ns"], span["end_ns"]) for span in _unhealthy_versions(derived)),
        key=lambda stretch: stretch.begin_ns,
    )
    merged: list[Stretch] = []
    for stretch in bad:
        if merged and stretch.begin_ns <= merged[-1].end_ns:
            merged[-1] = Stretch(merged[-1].begin_ns, max(merged[-1].end_ns, stretch.end_ns))
        else:
            merged.append(stretch)
    return merged


def healthy_again_ns(bad: Sequence[Stretch], since_ns: int) -> int | None:
    """The first moment from `since_ns` on with the cluster whole; None when it never was."""
    for stretch in bad:
        if stretch.begin_ns <= since_ns < stretch.end_ns:
            return None if stretch.end_ns >= FOREVER_NS else stretch.end_ns
    return since_ns


def recoveries(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """Rows of the table `recoveries`, one a healed fault, also one of which nobody knows
    that it acted: whatever it did is over.

    A fault during whose recovery another one began is measured, not judged; nor is one that the run
    did not watch until the deadline.
    """
    watched_ns = max((phase.end_ns for phase in facts.phases), default=0)
    bad = unhealthy(derived)
    known = bool(derived.tables.get("state_spans"))
    healings = []
    for n, fault in enumerate(derived.faults):
        healed_ns = fault["healed_ns"]
        if healed_ns is None or not known:
            continue
        in_sync_ns = healthy_again_ns(bad, healed_ns)
        until = in_sync_ns or healed_ns + int(scenario.recovery_deadline_s * SECOND_NS)
        is_known = in_sync_ns is not None or until <= watched_ns
        alone = not any(
            acting_stretch(other).meets(Stretch(healed_ns, max(until, healed_ns + 1)))
            for m, other in enumerate(derived.faults)
            if m != n
        )
        healings.append(
            {
                "n": n,
                "fault": fault["fault"],
                "targets": ",".join(targets_of(fault)),
                "p": _last_p(derived, healed_ns, in_sync_ns or FOREVER_NS),
                "healed_ns": healed_ns,
                "recovery_s": None if in_sync_ns is None else (in_sync_ns - healed_ns) / SECOND_NS,
                "deadline_s": scenario.recovery_deadline_s,
                "judged": int(alone and is_known),
            }
        )
    return healings


def _last_p(derived: Derived, healed_ns: int, in_sync_ns: int) -> int | None:
    """The partition that was whole last."""
    late = [
        (min(span["end_ns"], in_sync_ns), -span["p"])
        for span in _unhealthy_versions(derived)
        if span["end_ns"] > healed_ns and span["begin_ns"] < in_sync_ns
    ]
    return -max(late)[1] if late else None


def trials(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """Rows of `progress_in_faults`: a fault and a partition that must go on through it."""
    if not scenario.survives:
        return []
    bad = unhealthy(derived)
    load = load_of(facts)
    trials = []
    for n, fault in enumerate(derived.faults):
        window = acting_stretch(fault)
        others = [acting_stretch(other) for m, other in enumerate(derived.faults) if m != n]
        whole = not any(s.begin_ns < window.begin_ns < s.end_ns for s in bad)
        if not fault["acted"] or not whole or any(window.meets(other) for other in others):
            continue
        if not _minority(fault, scenario):
            continue
        for part in derived.partitions:
            if not part["in_run"] or part["gone"] or part["replication"] < 2:
                continue
            from_ns = window.begin_ns + grace_ns(scenario)
            to_ns = min(fault["end_ns"] or window.end_ns, load.end_ns)
            if to_ns - from_ns >= _SHORTEST_TRIAL_NS:
                trials.append(
                    {"n": n, "p": part["p"], "fault": fault["fault"], "from_ns": from_ns}
                    | {"targets": ",".join(targets_of(fault)), "to_ns": to_ns}
                    | {"begin_ns": window.begin_ns}
                )
    return trials


def load_of(facts: RunFacts) -> Stretch:
    """The time of the load; empty if the lab died before it recorded its phases."""
    loads = [phase for phase in facts.phases if phase.name in ("before", "during", "after")]
    return Stretch(
        min((phase.begin_ns for phase in loads), default=0),
        max((phase.end_ns for phase in loads), default=0),
    )


def grace_ns(scenario: Scenario) -> int:
    """How long after a fault's begin leadership may still be moving, and clients be trying."""

    def read(name: str) -> int:
        return int(float(setting(None, scenario, name)))

    moved_ms = read("zookeeper.session.timeout.ms") + 1.5 * read("replica.lag.time.max.ms")
    gave_up_ms = scenario.workload.request_timeout_ms
    return int(max(moved_ms, gave_up_ms) * _MS_NS) + _CLIENT_SLACK_NS


def _minority(fault: Row, scenario: Scenario) -> bool:
    """Whether a fault removes a minority completely: a crash, or all links of its nodes cut. A
    broker reports a failed log directory to the controller, or ends itself (KIP-112).

    Brokers whose sessions ended take part again at once, however many they are. Where one broker
    does not reach another, and is reached by it, its replicas leave the ISR of what that one leads.
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
    """Fewer than half of the brokers, and of the metadata nodes, if there are any."""
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
    beats = sorted((row["first_ns"], row["last_ns"]) for row in ticks)
    results = []
    for n, fault in enumerate(derived.faults):
        recovery = by_fault.get(n)
        recovery_s = recovery["recovery_s"] if recovery else None
        end_ns = acting_stretch(fault).end_ns + int((recovery_s or 0.0) * SECOND_NS)
        results.append(
            FaultResult(
                fault=fault["fault"],
                targets=targets_of(fault),
                begin_ns=fault["begin_ns"],
                end_ns=fault["end_ns"] or acting_stretch(fault).end_ns,
                healed_ns=fault["healed_ns"],
                proof=fault["proof"] or "",
                acted=bool(fault["acted"]),
                unavailable_s=longest_gap_s(beats, Stretch(fault["begin_ns"], end_ns)),
                recovery_s=recovery_s,
            )
        )
    return results


def longest_gap_s(beats: Sequence[tuple[int, int]], window: Stretch) -> float | None:
    """The longest time without an acknowledgement that overlaps `window`; None without any at all.

    `beats` are (first, last) acknowledgement of each tick in order, of all partitions together. A
    gap that is still open at the last acknowledgement is not counted: the load ended there.
    """
    longest = None
    reached: int | None = None
    for first_ns, last_ns in beats:
        if reached is not None and Stretch(reached, max(first_ns, reached + 1)).meets(window):
            longest = max(longest or 0.0, (first_ns - reached) / SECOND_NS)
        reached = last_ns if reached is None else max(reached, last_ns)
    return longest
