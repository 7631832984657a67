"""The most that clients with a quota may transfer: rows of the derived table `quota_limits`.

A quota holds at each broker. It is measured over eleven windows of a second, of which all but the
last count as full at the start (`ClientQuotaManager`, `Rate`). So a client may exceed it by eleven
seconds' worth in any interval, and by what was under way. The bytes of one partition are counted,
whose one leader no other broker replaced and during which no other fault acted, from five seconds
after the quota was set: by then every broker knows it.
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
from urteil.harness.verify.derived.impact import Stretch, acting_stretch, load_of
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import SECOND_NS

QUOTA = "quota"
"""The act. Apache Kafka held up a reader, which had read a lot right before it had a
quota, for a minute and longer, also when the quota was gone (KIP-219)."""
KINDS = {"producer_byte_rate": "written", "consumer_byte_rate": "read"}
HEARD_NS = 5 * SECOND_NS
WINDOWS_S = 11
UNDER_WAY_BYTES = 100_000
_AS_SENT = ("producer", "uncompressed")


def quota_rows(small: SmallEvidence, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """For each quota that a client of kafka-python's has (others name themselves otherwise), every
    stretch in which nothing disturbed it, and the `bytes` that one partition may have had of it in
    that; each record has `record_bytes` at least. None where records may have fewer."""
    if _is_packed(scenario):
        return []
    ours = {row["client"] for row in small.clients if row["library"] == "kafka-python"}
    named = {op["subject"] for op in small.ops if op["act"] == QUOTA}
    rows: list[Row] = []
    for subject, kind, rate, held in _quotas(small, load_of(facts).end_ns):
        clients = sorted(ours - named if subject == DEFAULT_CLIENT else ours & {subject})
        for client, calm in product(clients, _undisturbed_stretches(small, held)):
            seconds = (calm.end_ns - calm.begin_ns) / SECOND_NS + WINDOWS_S
            rows.append(
                {"n": len(rows), "client": client, "kind": kind, "rate": rate}
                | {"from_ns": calm.begin_ns, "to_ns": calm.end_ns}
                | {"record_bytes": scenario.workload.value_bytes}
                | {"bytes": int(rate * seconds) + UNDER_WAY_BYTES}
            )
    return rows


def _is_packed(scenario: Scenario) -> bool:
    load = scenario.workload
    if has_tombstones(load.kind):
        return True  # tombstones have no value
    kept = all(
        topic.config.get("compression.type", "producer") in _AS_SENT for topic in load.topics
    )
    return not kept or SendOptions.of(load).compression_type not in (None, "none")


def _quotas(small: SmallEvidence, end_ns: int) -> Iterator[tuple[str, str, float, Stretch]]:
    """Whose, its kind and rate, and when it held: from when everybody knew of it to when it was to
    be changed. What may or may not have been set is none."""
    acts = sorted((op for op in small.ops if op["act"] == QUOTA), key=lambda op: op["invoke_ns"])
    for n, op in enumerate(acts):
        if op["outcome"] != "ok" or op["complete_ns"] is None:
            continue
        later = (act["invoke_ns"] for act in acts[n + 1 :] if act["subject"] == op["subject"])
        held = Stretch(op["complete_ns"] + HEARD_NS, next(later, end_ns))
        for name, rate in json.loads(op["after"] or "{}").items():
            if name in KINDS:
                yield op["subject"], KINDS[name], float(rate), held


def _undisturbed_stretches(small: SmallEvidence, held: Stretch) -> Iterator[Stretch]:
    """Within it, from one disturbance to the next."""
    others = [
        acting_stretch(fault) for fault in small.faults if not has_only(fault, {Effect.SETS_QUOTAS})
    ]
    led = [span.begin_ns for spans in small.spans.values() for span in spans if span.begins_epoch]
    disturbed = sorted(
        [*others, *(Stretch(at_ns, at_ns) for at_ns in led)], key=lambda stretch: stretch.begin_ns
    )
    calm_ns = held.begin_ns
    for stretch in [*disturbed, Stretch(held.end_ns, held.end_ns)]:
        end_ns = min(stretch.begin_ns, held.end_ns)
        if end_ns > calm_ns:
            yield Stretch(calm_ns, end_ns)
        calm_ns = max(calm_ns, stretch.end_ns)
