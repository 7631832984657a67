"""The limit on the bytes that a client with a quota may transfer: rows of the derived table
`quota_limits`.

Each broker enforces a quota separately. It measures rates over eleven windows of a second, of which
all but the last count as complete at the start (`ClientQuotaManager`, `Rate`). So a client may
exceed its quota by the bytes of eleven seconds in any interval, and by requests in flight. The
bytes of one partition are counted, while its leader stayed and no other fault acted, from five
seconds after the quota was set: by then it has reached every broker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

from urteil.chaos.effects import Effect
from urteil.harness.clients.options import SendOptions
from urteil.harness.clients.workload_kinds import has_tombstones
from urteil.harness.evidence.acts import DEFAULT_CLIENT
from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.verify.derived.fault_effects import has_only
from urteil.harness.verify.derived.impact import acting_interval, load_of
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import SECOND_NS

QUOTA = "quota"
"""The act. Apache Kafka throttled a reader that had read a lot just before its quota was set for a
minute and longer, even after the quota was removed (KIP-219)."""
KINDS = {"producer_byte_rate": "written", "consumer_byte_rate": "read"}
PROPAGATED_NS = 5 * SECOND_NS
"""The time after which a quota has reached every broker."""
WINDOWS_S = 11
UNDER_WAY_BYTES = 100_000
_AS_SENT = ("producer", "uncompressed")


def quota_rows(small: SmallEvidence, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """One row for each quota of a client of kafka-python (other libraries use other client ids) and
    interval in which no disturbance occurred. `bytes` is the limit for one partition in that
    interval, `record_bytes` the smallest size of a record. Empty where records may be smaller."""
    if _may_be_smaller(scenario):
        return []
    own_clients = {row["client"] for row in small.clients if row["library"] == "kafka-python"}
    named = {op["subject"] for op in small.ops if op["act"] == QUOTA}
    rows: list[Row] = []
    for subject, kind, rate, held in _quotas(small, load_of(facts).end_ns):
        clients = sorted(
            own_clients - named if subject == DEFAULT_CLIENT else own_clients & {subject}
        )
        for client, interval in product(clients, _undisturbed_intervals(small, held)):
            seconds = (interval.end_ns - interval.begin_ns) / SECOND_NS + WINDOWS_S
            rows.append(
                {"n": len(rows), "client": client, "kind": kind, "rate": rate}
                | {"from_ns": interval.begin_ns, "to_ns": interval.end_ns}
                | {"record_bytes": scenario.workload.value_bytes}
                | {"bytes": int(rate * seconds) + UNDER_WAY_BYTES}
            )
    return rows


def _may_be_smaller(scenario: Scenario) -> bool:
    """Whether records may take fewer bytes than their values: tombstones and compression."""
    load = scenario.workload
    if has_tombstones(load.kind):
        return True  # tombstones have no value
    kept = all(
        topic.config.get("compression.type", "producer") in _AS_SENT for topic in load.topics
    )
    return not kept or SendOptions.of(load).compression_type not in (None, "none")


def _quotas(small: SmallEvidence, end_ns: int) -> Iterator[tuple[str, str, float, Interval]]:
    """Client id, kind, rate and validity of each quota: from when it has reached every broker to
    when it was changed. Changes of unknown outcome are left out."""
    acts = sorted((op for op in small.ops if op["act"] == QUOTA), key=lambda op: op["invoke_ns"])
    for n, op in enumerate(acts):
        if op["outcome"] != "ok" or op["complete_ns"] is None:
            continue
        later = (act["invoke_ns"] for act in acts[n + 1 :] if act["subject"] == op["subject"])
        held = Interval(op["complete_ns"] + PROPAGATED_NS, next(later, end_ns))
        for name, rate in json.loads(op["after"] or "{}").items():
            if name in KINDS:
                yield op["subject"], KINDS[name], float(rate), held


def _undisturbed_intervals(small: SmallEvidence, held: Interval) -> Iterator[Interval]:
    """The parts of an interval between two disturbances."""
    others = [
        acting_interval(fault)
        for fault in small.faults
        if not has_only(fault, {Effect.SETS_QUOTAS})
    ]
    led = [span.begin_ns for spans in small.spans.values() for span in spans if span.begins_epoch]
    disturbed = sorted(
        [*others, *(Interval(at_ns, at_ns) for at_ns in led)],
        key=lambda interval: interval.begin_ns,
    )
    since_ns = held.begin_ns
    for interval in [*disturbed, Interval(held.end_ns, held.end_ns)]:
        end_ns = min(interval.begin_ns, held.end_ns)
        if end_ns > since_ns:
            yield Interval(since_ns, end_ns)
        since_ns = max(since_ns, interval.end_ns)
