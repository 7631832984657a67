"""Progress that is due after the last fault was healed, and while no fault acts: rows of the tables
`progress_after_faults`, `progress_without_faults` and `transaction_progress`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from urteil.chaos.effects import Effect
from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.fault_effects import has_any
from urteil.harness.verify.derived.impact import (
    acting_interval,
    healthy_again_ns,
    load_of,
    unhealthy,
)
from urteil.harness.verify.derived.intervals import Interval, undisturbed_between
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.derived.undisturbed_intervals import end_of_load_ns
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS

_FRESH_METADATA_NS = 3 * SECOND_NS
_MS_NS = 1_000_000
SLACK_NS = 5 * SECOND_NS


def resumed_progress_rows(
    derived: Derived, scenario: Scenario, clients: Sequence[Row]
) -> list[Row]:
    """One row for each partition. At `in_sync_ns` the last fault was healed and every replica was
    in sync. From `from_ns` on clients must have found the leaders. At `to_ns`, which may be
    earlier, the first of the plain producers of that time ended, or a replica left the ISR."""
    if not derived.faults or not derived.tables.get("state_spans"):
        return []
    if _has_quota(derived):
        return []
    last = max(derived.faults, key=lambda fault: acting_interval(fault).end_ns)
    bad = unhealthy(derived)
    healed_ns = acting_interval(last).end_ns
    in_sync_ns = None if healed_ns >= FOREVER_NS else healthy_again_ns(bad, healed_ns)
    ends = [
        row["end_ns"]
        for row in clients
        if row["kind"] == "producer" and row["transactional_id"] is None and row["end_ns"]
        if in_sync_ns is not None and (row["begin_ns"] or 0) < in_sync_ns < row["end_ns"]
    ]
    if in_sync_ns is None or not ends:
        return []
    to_ns = min(
        [*ends, *(interval.begin_ns for interval in bad if interval.begin_ns >= in_sync_ns)]
    )
    from_ns = in_sync_ns + _failover_ns(scenario)
    return [
        {"p": part["p"], "fault": last["fault"], "targets": ",".join(targets_of(last))}
        | {"in_sync_ns": in_sync_ns, "from_ns": from_ns, "to_ns": to_ns}
        for part in derived.partitions
        if part["in_run"] and not part["gone"]
    ]


def undisturbed_progress_rows(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """One row for each partition and interval of the load in which nothing hinders producers."""
    return [
        {"p": part["p"], "from_ns": healthy_interval.begin_ns, "to_ns": healthy_interval.end_ns}
        | {"bound_ns": _bound_ns(scenario)}
        for healthy_interval in _healthy_intervals(derived, scenario, facts)
        for part in derived.partitions
        if part["in_run"] and not part["gone"]
    ]


def transaction_progress_rows(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """The outcomes of transactions at the end of each such interval, for each group whose offsets
    they commit, and for those without a group. `succeeded` counts those that ended as their client
    requested, `failed` the others, and `clients` the clients of the failed ones. Fenced producers
    are left out."""
    intervals = []
    for healthy_interval in _healthy_intervals(derived, scenario, facts):
        since_ns = healthy_interval.end_ns - _bound_ns(scenario)
        by_group: dict[str | None, list[Row]] = defaultdict(list)
        for row in derived.tables["txn_p"]:
            lately = (
                row["end_ns"] is not None and since_ns < row["end_ns"] <= healthy_interval.end_ns
            )
            if lately and row["outcome"] != "fenced":
                by_group[row["grp"]].append(row)
        for grp, rows in by_group.items():
            failed = [row for row in rows if not row["as_requested"]]
            intervals.append(
                {
                    "grp": grp,
                    "from_ns": since_ns,
                    "to_ns": healthy_interval.end_ns,
                    "failed": len(failed),
                }
                | {"succeeded": len(rows) - len(failed)}
                | {"clients": len({row["client"] for row in failed})}
            )
    return intervals


def _healthy_intervals(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Interval]:
    """Intervals of the load in which no fault acts and every replica is in sync, if they are long
    enough to judge."""
    if _has_quota(derived) or not derived.tables.get("state_spans"):
        return []
    busy = [*map(acting_interval, derived.faults), *unhealthy(derived)]
    intervals = undisturbed_between(busy, load_of(facts).begin_ns, end_of_load_ns(facts))
    return [
        interval
        for interval in intervals
        if interval.end_ns - interval.begin_ns >= _bound_ns(scenario)
    ]


def _has_quota(derived: Derived) -> bool:
    """Whether a fault set a quota, which may delay clients even after the fault."""
    return any(has_any(fault, {Effect.SETS_QUOTAS}) for fault in derived.faults)


def _bound_ns(scenario: Scenario) -> int:
    return _failover_ns(scenario) + SLACK_NS


def _failover_ns(scenario: Scenario) -> int:
    """The time until a client has given up a lost request and found the new leader."""
    session_ms = int(float(setting(None, scenario, "zookeeper.session.timeout.ms")))
    return (session_ms + scenario.workload.request_timeout_ms) * _MS_NS + _FRESH_METADATA_NS
