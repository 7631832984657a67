"""After healing, each partition has a leader and its complete ISR before the deadline.

Requested administration completes as well once nothing prevents it: replicas are where a
reassignment puts them, and deleted topics are gone.

`not elected`: a preferred leader never led, although the request was answered as successful.
`not given back`: automatic rebalancing did not return leadership to the preferred leader. `not
handed over`: a broker that shut down cleanly still led a partition, although other replicas were
in sync. `fell out`: replicas left the ISR and stayed outside, although all brokers were running
and no fault acted. `leaderless`: a partition had no leader although a member of its ISR was
running, or any replica where unclean election is enabled. `kept in sync`: a former leader that
stopped was still in the ISR after another had been elected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "not elected":
        return (
            f"An administrator asked {row['asked']}, and the election was acknowledged, but "
            f"{row['stands']}."
        )
    if row["sub_kind"] in ("not handed over", "kept in sync"):
        return f"{row['asked']}, but {row['stands']}."
    if row["sub_kind"] == "leaderless":
        return f"{row['asked']}, but {row['stands']}, for {float(row['recovery_s']):.0f} s."
    if row["sub_kind"] == "fell out":
        return f"{row['asked']}, then {row['stands']}, for {float(row['recovery_s']):.0f} s."
    if row["asked"] is not None:
        long = f"{float(row['recovery_s']):.0f} s after nothing prevented it any more"
        if row["sub_kind"] == "not done":
            long = f"{float(row['recovery_s']):.0f} s later, although nothing prevented it"
        who = "" if row["sub_kind"] == "not given back" else "An administrator asked "
        return f"{who}{row['asked']}, but {row['stands']}, {long}."
    took = row["recovery_s"]
    delay = (
        "was not healthy again" if took is None else f"took {float(took):.1f} s to be healthy again"
    )
    return (
        f"After {row['fault']} on {row['targets']} was healed, the cluster {delay}, the last of it "
        f"{row['topic']}-{row['partition']}."
    )


GUARANTEE = Guarantee(
    name="slow_recovery",
    rank=30,
    about="the cluster was not healthy, or requested administration incomplete, at a deadline",
    promise="A replica that left the in-sync set catches up and joins it again; a reassignment "
    "continues across controllers until its target replicas are in place, and a topic "
    "marked for deletion is deleted; a preferred leader is elected before the request for "
    "it is answered, and leads again automatically where auto.leader.rebalance.enable is "
    "on; a broker that is stopped gracefully hands its partitions to other replicas "
    "first; a partition without leader gets one as soon as a member of its in-sync set is "
    "back, or unclean elections are enabled; brokers without a session are not in sync.",
    source="Kafka documentation, 4.7 Replication; 6.1 Basic Kafka Operations: Graceful shutdown, "
    "Balancing leadership; KIP-455; KIP-460; unclean.leader.election.enable; the deadline is the "
    "scenario's",
    sub_kinds={
        "late": "a partition had no leader or no complete ISR at the deadline",
        "not moved": "a reassignment was not complete",
        "not deleted": "a deleted topic still existed",
        "not done": "an accepted administrative request had no effect",
        "not elected": "a preferred leader never led, although its election was acknowledged",
        "not given back": "automatic rebalancing did not return leadership to the preferred leader",
        "not handed over": "a broker that shut down cleanly still led a partition",
        "fell out": "replicas stayed outside the ISR without a fault",
        "leaderless": "a partition had no leader although an eligible replica was running",
        "kept in sync": "a former leader that stopped was still in the ISR of its successor",
    },
    opportunities="SELECT SUM(o.n) AS n FROM (SELECT COUNT(*) AS n FROM recoveries r "
    "WHERE r.judged = 1 UNION ALL SELECT COUNT(*) FROM chores c) o",
    violations="""
SELECT 'late' AS sub_kind, r.p, CAST(NULL AS BIGINT) AS off,
  r.healed_ns AS at_ns, r.healed_ns AS until_ns, r.fault, r.targets, r.recovery_s, r.deadline_s,
  CAST(NULL AS STRING) AS asked, CAST(NULL AS STRING) AS stands
FROM recoveries r WHERE r.judged = 1 AND COALESCE(r.recovery_s, 1000000.0) > r.deadline_s
UNION ALL
SELECT c.kind, c.p, NULL, c.from_ns, c.to_ns, NULL, NULL,
  (c.to_ns - c.from_ns) / 1000000000.0, c.limit_s, c.asked, c.stands
FROM chores c WHERE c.late = 1""",
    explain=_explain,
    tie="j.fault, j.targets, j.asked",
    compares_times=True,
    host_load_excuses=True,
    needs=("states",),
    reads=("recoveries", "chores"),
    rests_on=("faults", "states"),
)
