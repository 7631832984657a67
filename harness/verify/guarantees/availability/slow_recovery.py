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
        "late": (
            "after healing, a partition had no leader or no complete ISR for longer than the "
            "scenario's deadline"
        ),
        "not moved": (
            "replicas are not where a reassignment, or its cancellation, puts them, 30 s after "
            "all of them were in sync, or after the scenario's deadline if one is not"
        ),
        "not deleted": "a deleted topic exists 30 s after nothing prevented its deletion any more",
        "not done": "an accepted request of an administrator shows no effect for 30 s",
        "not elected": (
            "by ZooKeeper's states the preferred leader never led from 2 s before the request "
            "until 2 s after its successful answer"
        ),
        "not given back": (
            "with `auto.leader.rebalance.enable` a preferred leader in sync did not lead for "
            "`leader.imbalance.check.interval.seconds` and 10 s, though that exceeds "
            "`leader.imbalance.per.broker.percentage`"
        ),
        "not handed over": (
            "a broker that shut down cleanly still led a partition that others in sync could have "
            "led"
        ),
        "fell out": (
            "replicas that had been in sync were not at the end, for longer than the scenario's "
            "deadline, though every broker ran and no fault acted"
        ),
        "leaderless": (
            "a partition had no leader for 15 s, though one replica lived so long under one "
            "controller and was in sync, or unclean elections were allowed. Only crashes and "
            "shutdowns of others acted meanwhile"
        ),
        "kept in sync": (
            "a leader had left, by ZooKeeper's order, and another was elected; the ISR still had "
            "the first one until the new leader removed it"
        ),
    },
    not_counted=(
        "Recoveries during which another fault began, and runs that ended before the deadline.",
        "`not given back` while replicas are being moved, and for topics that are being deleted.",
        "`not handed over` where another fault acts, or where another broker or a controller came "
        "or went in the 5 s before.",
        "`fell out` while replicas are being moved.",
        "Administration where a broker is away at the end, a disk was damaged, a fault was not "
        "healed, or a reassignment was not acknowledged. It waits from the last coming or going "
        "of a broker or controller on.",
    ),
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
