"""What must be acknowledged again once every fault is healed, and then while none acts: rows of
the tables `progress_after_faults`, `progress_without_faults` and `transaction_progress`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from urteil.chaos.effects import Effect
from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.fault_effects import has_any
from urteil.harness.verify.derived.impact import (
    Stretch,
    acting_stretch,
    healthy_again_ns,
    load_of,
    unhealthy,
)
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.derived.undisturbed_intervals import end_of_load_ns, undisturbed_between
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS

_FRESH_METADATA_NS = 3 * SECOND_NS
_MS_NS = 1_000_000
SLACK_NS = 5 * SECOND_NS


def resumption_rows(derived: Derived, scenario: Scenario, clients: Sequence[Row]) -> list[Row]:
    """A partition each, from `in_sync_ns`, when the last fault was healed and every replica was in
    sync, over `from_ns`, when clients must have noticed, to `to_ns`, when the first of the plain
    producers of that time ended or a replica left again; that may be sooner."""
    if not derived.faults or not derived.tables.get("state_spans"):
        return []
    if _has_quota(derived):
        return []
    last = max(derived.faults, key=lambda fault: acting_stretch(fault).end_ns)
    bad = unhealthy(derived)
    healed_ns = acting_stretch(last).end_ns
    in_sync_ns = None if healed_ns >= FOREVER_NS else healthy_again_ns(bad, healed_ns)
    ends = [
        row["end_ns"]
        for row in clients
        if row["kind"] == "producer" and row["transactional_id"] is None and row["end_ns"]
        if in_sync_ns is not None and (row["begin_ns"] or 0) < in_sync_ns < row["end_ns"]
    ]
    if in_sync_ns is None or not ends:
        return []
    to_ns = min([*ends, *(stretch.begin_ns for stretch in bad if stretch.begin_ns >= in_sync_ns)])
    from_ns = in_sync_ns + _noticed_ns(scenario)
    return [
        {"p": part["p"], "fault": last["fault"], "targets": ",".join(targets_of(last))}
        | {"in_sync_ns": in_sync_ns, "from_ns": from_ns, "to_ns": to_ns}
        for part in derived.partitions
        if part["in_run"] and not part["gone"]
    ]


def quiet_rows(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """Where nothing is in the way of producers: a partition and a stretch of the load each."""
    return [
        {"p": part["p"], "from_ns": healthy_stretch.begin_ns, "to_ns": healthy_stretch.end_ns}
        | {"bound_ns": _bound_ns(scenario)}
        for healthy_stretch in _healthy_stretches(derived, scenario, facts)
        for part in derived.partitions
        if part["in_run"] and not part["gone"]
    ]


def standstill_rows(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """What became of transactions in the end of each such stretch, of those that move one group's
    positions and of those that move none: how many `ended` as their client asked, and how many
    others were `tried`, by how many `clients`. Who was shut out says nothing."""
    intervals = []
    for healthy_stretch in _healthy_stretches(derived, scenario, facts):
        since_ns = healthy_stretch.end_ns - _bound_ns(scenario)
        by_group: dict[str | None, list[Row]] = defaultdict(list)
        for row in derived.tables["txn_p"]:
            lately = (
                row["end_ns"] is not None and since_ns < row["end_ns"] <= healthy_stretch.end_ns
            )
            if lately and row["outcome"] != "fenced":
                by_group[row["grp"]].append(row)
        for grp, rows in by_group.items():
            failed = [row for row in rows if not row["as_requested"]]
            intervals.append(
                {
                    "grp": grp,
                    "from_ns": since_ns,
                    "to_ns": healthy_stretch.end_ns,
                    "failed": len(failed),
                }
                | {"succeeded": len(rows) - len(failed)}
                | {"clients": len({row["client"] for row in failed})}
            )
    return intervals


def _healthy_stretches(derived: Derived, scenario: Scenario, facts: RunFacts) -> list[Stretch]:
    """Stretches of the load in which no fault acts and every replica is in sync, if they are long
    enough for a statement."""
    if _has_quota(derived) or not derived.tables.get("state_spans"):
        return []
    busy = [*map(acting_stretch, derived.faults), *unhealthy(derived)]
    stretches = undisturbed_between(busy, load_of(facts).begin_ns, end_of_load_ns(facts))
    return [
        stretch for stretch in stretches if stretch.end_ns - stretch.begin_ns >= _bound_ns(scenario)
    ]


def _has_quota(derived: Derived) -> bool:
    """Whether a fault set a quota, which may delay clients after its end, too."""
    return any(has_any(fault, {Effect.SETS_QUOTAS}) for fault in derived.faults)


def _bound_ns(scenario: Scenario) -> int:
    return _noticed_ns(scenario) + SLACK_NS


def _noticed_ns(scenario: Scenario) -> int:
    """A request that the last fault swallowed is given up, and its leader looked up anew."""
    session_ms = int(float(setting(None, scenario, "zookeeper.session.timeout.ms")))
    return (session_ms + scenario.workload.request_timeout_ms) * _MS_NS + _FRESH_METADATA_NS
