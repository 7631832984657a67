"""Intervals in which nothing delays a client: rows of the tables `prompt_reads` and `prompt_sends`.

A reader has no group: it polls again at once, while a member commits between two polls. It reads
records outside transactions as soon as they are committed. Its broker may delay a fetch for
`FETCH_MAX_WAIT_MS` only while there is no record. A producer receives its response as soon as every
in-sync replica has its records.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from urteil.chaos.effects import Effect
from urteil.harness.clients.options import FETCH_MAX_WAIT_MS
from urteil.harness.host_load import METRIC
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.fault_effects import has_any
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval, undisturbed_between
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.derived.undisturbed_intervals import end_of_load_ns
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import SECOND_NS

SETTLES_NS = 5 * SECOND_NS
"""The time after a disturbance in which clients may still renew connections and metadata."""
MIN_POLLS = 50
MIN_TICKS = 30
"""The smallest number of 100 ms ticks with acknowledgements."""
LATE_SEND_NS = SECOND_NS // 2
_LATE = 0.5
"""The part of `FETCH_MAX_WAIT_MS` after which a fetch counts as answered by its timeout."""
_BUSY = 8.0
"""Runnable tasks per processor above which polls of a healthy cluster may be late."""


def prompt_read_rows(
    run_dir: Path, derived: Derived, scenario: Scenario, facts: RunFacts, clients: Sequence[Row]
) -> list[Row]:
    """One row for each reader without a group, partition and interval. Empty where replicas near
    the reader serve its fetches: they receive records later than the leader acknowledges them."""
    if scenario.cluster.racks:
        return []
    readers = [
        row
        for row in clients
        if row["kind"] == "consumer" and row["isolation"] == "read_uncommitted"
    ]
    late_ns = int(FETCH_MAX_WAIT_MS * 1_000_000 * _LATE)
    return [
        row | {"late_ns": late_ns, "min_count": MIN_POLLS}
        for row in _prompt_rows(run_dir, derived, facts, readers)
    ]


def prompt_send_rows(
    run_dir: Path, derived: Derived, facts: RunFacts, clients: Sequence[Row]
) -> list[Row]:
    """One row for each producer without transactions, partition and interval."""
    producers = [
        row for row in clients if row["kind"] == "producer" and row["transactional_id"] is None
    ]
    return [
        row | {"late_ns": LATE_SEND_NS, "min_count": MIN_TICKS}
        for row in _prompt_rows(run_dir, derived, facts, producers)
    ]


def _prompt_rows(
    run_dir: Path, derived: Derived, facts: RunFacts, clients: Sequence[Row]
) -> Iterator[Row]:
    """Client, partition of the run, and interval in which no fault acted, every replica of the
    partition was in sync, and the host was not busy. Empty where a quota may delay the client."""
    if facts.runtime == IMPORTED:
        return
    if any(has_any(fault, {Effect.SETS_QUOTAS}) for fault in derived.faults):
        return
    busy = list(_busy_seconds(run_dir))
    limited = {row["client"] for row in derived.tables["quota_limits"]}
    for part, client in itertools.product(derived.partitions, clients):
        if part["gone"] or not part["in_run"] or client["client"] in limited:
            continue
        for interval in _intervals(derived, busy, part, client, end_of_load_ns(facts)):
            yield {
                "client": client["client"], "session": client["session"], "p": part["p"],
                "from_ns": interval.begin_ns, "to_ns": interval.end_ns,
            }  # fmt: skip


def _busy_seconds(run_dir: Path) -> Iterator[Interval]:
    """The seconds in which the host had many runnable tasks, with the seconds next to them."""
    for row in evidence.samples(run_dir, (METRIC,)):
        if None not in (row["at_ns"], row["value"]) and row["value"] > _BUSY:
            yield Interval(row["at_ns"] - 2 * SECOND_NS, row["at_ns"] + SECOND_NS)


def _intervals(
    derived: Derived, busy: Sequence[Interval], part: Row, client: Row, load_ns: int
) -> Iterator[Interval]:
    """The undisturbed intervals of a client's life, each from SETTLES_NS after the last disturbance
    on."""
    begin_ns, end_ns = client["begin_ns"], client["end_ns"] or load_ns
    if begin_ns is None:
        return
    unhealthy = (
        Interval(span["begin_ns"], span["end_ns"])
        for span in derived.tables.get("state_spans", [])
        if span["p"] == part["p"] and (span["leader"] < 0 or span["isr_size"] < part["replication"])
    )
    disturbances = [*map(acting_interval, derived.faults), *unhealthy]
    for interval in undisturbed_between(disturbances, begin_ns, min(end_ns, load_ns)):
        if interval.end_ns - interval.begin_ns > SETTLES_NS:
            yield from undisturbed_between(busy, interval.begin_ns + SETTLES_NS, interval.end_ns)
