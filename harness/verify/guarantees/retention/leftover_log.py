"""The log of a deleted topic or of a moved replica leaves its broker's disk.

A broker may hold the log of a moved replica for 15 s, and a directory that is marked for deletion
for `file.delete.delay.ms` and 15 s (`derived/leftovers.py`). Not judged if disks or clocks failed,
or a broker or controller started or stopped since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion

_SENTENCES = {
    "deleted": "Broker {broker} has a log of {topic}-{partition}, a topic that was deleted "
    "{late_s} s before.",
    "moved": "Broker {broker} still has the log of {name}, {late_s} s after it left the "
    "replicas and no fault acted.",
    "set aside": "Broker {broker} marked {name} for deletion {late_s} s before the broker ended "
    "and still had it then; {limit_s} s are enough.",
}


def _explain(row: Mapping[str, Any]) -> str:
    return _SENTENCES[row["kind"]].format(**row)


GUARANTEE = Guarantee(
    name="leftover_log",
    rank=50,
    split_from="kept_too_long",
    about="a broker kept the log of a deleted topic or of a moved replica",
    promise="A replica that is moved away, or whose topic is deleted, leaves its broker's disk.",
    source="Kafka documentation, 6.1 Basic Kafka Operations; file.delete.delay.ms; KIP-455",
    sub_kinds={
        "on disk": (
            "a broker has a log of a deleted topic, or 15 s later of a partition that was moved "
            "away, or kept a renamed file 15 s longer than file.delete.delay.ms before it stopped"
        ),
    },
    not_counted=(
        "Brokers where disks or clocks failed, or a broker or controller started or stopped since.",
    ),
    occasion=Occasion.LOGS,
    opportunities="SELECT COUNT(*) AS n FROM logs",
    violations="""
SELECT 'on disk' AS sub_kind, leftovers.p, CAST(NULL AS BIGINT) AS off,
  CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns, leftovers.broker,
  CAST(leftovers.age_s AS BIGINT) AS late_s, leftovers.kind, leftovers.name,
  CAST(leftovers.limit_s AS BIGINT) AS limit_s
FROM leftover_logs leftovers WHERE leftovers.late = 1""",
    explain=_explain,
    tie="finding.broker, finding.name",
    compares_times=True,
    host_load_excuses=True,
    needs=("logs",),
    reads=("leftover_logs", "logs"),
    rests_on=("logs", "states"),
    no_reference=DERIVED,
)
