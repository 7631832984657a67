"""No transaction stays open for ever: its coordinator aborts it when its timeout has passed, and
not before.

Judged in the end, when every producer is gone and every fault healed: from the transactions'
timeout, the interval at which coordinators look and 10 s on, the last stable offset must have
reached what was the high watermark before. Until then each transactional id must be had again, too:
a coordinator that is not done with a transaction keeps its successors waiting, whatever the logs
have of it. `cut short`: cut_short.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.history.journal import INITIALISE
from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.torn_txn import COORDINATOR, SPOILED

_ENDS = """
SELECT a.p, z.txns_over_ns,
  MAX(CASE WHEN q.unclean_on = 1 OR q.lost_floor IS NOT NULL THEN 1 ELSE 0 END) AS spoiled,
  MAX(CASE WHEN a.kind = 'stable' THEN a.offset END) AS stable,
  MAX(CASE WHEN a.kind = 'latest' AND a.complete_ns < z.txns_over_ns THEN a.offset END) AS latest,
  MAX(CASE WHEN a.kind = 'stable' AND a.invoke_ns > z.txns_over_ns THEN 1 ELSE 0 END) AS over,
  MAX(CASE WHEN a.kind = 'stable' THEN a.invoke_ns END) AS asked_ns
FROM answers a JOIN parts q ON q.p = a.p JOIN settings z ON z.txns_over_ns IS NOT NULL
WHERE a.error IS NULL AND a.offset >= 0
GROUP BY a.p, z.txns_over_ns
"""

_ASKED = f"""
FROM admin_ops o JOIN settings z ON z.txns_over_ns IS NOT NULL
WHERE o.act = '{INITIALISE}'
  AND (o.outcome = 'ok' OR (o.outcome = 'fail' AND o.complete_ns > z.txns_over_ns))
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "kept":
        return (
            f"The transactional id {row['tid']} could not be had again: its coordinator was still "
            "not done with the last transaction, though every transaction's timeout passed long "
            "ago."
        )
    if row["sub_kind"] == "cut short":
        return (
            f"A transaction of {row['tid']} was aborted by its coordinator, which shut its "
            f"producer out after {(row['until_ns'] - row['at_ns']) / 1e9:.1f} s, before "
            "transaction.timeout.ms had passed."
        )
    return (
        f"The last stable offset of {row['topic']}-{row['partition']} stays at {row['off']}, below "
        f"the end {row['latest']}, though every transaction's timeout passed long ago."
    )


GUARANTEE = Guarantee(
    name="hanging_txn",
    about="a transaction was never ended: the last stable offset stays below the end; or too soon",
    promise="A transaction that lasts longer than transaction.timeout.ms is aborted by its "
    "coordinator; one that does not is ended by its producer.",
    source="Kafka documentation, Producer Configs: transaction.timeout.ms; KIP-664",
    opportunities=f"""
SELECT SUM(y.n) AS n FROM (
  SELECT COUNT(*) AS n FROM ({_ENDS}) e WHERE e.stable >= e.latest OR e.over = 1
  UNION ALL SELECT COUNT(*) AS n {_ASKED}) y""",
    violations=f"""
SELECT 'open' AS sub_kind, e.p, e.stable AS off, e.txns_over_ns AS at_ns, e.asked_ns AS until_ns,
  e.latest, CAST(NULL AS STRING) AS tid,
  CASE WHEN e.spoiled = 1 THEN 1 ELSE {COORDINATOR} END AS spoiled
FROM ({_ENDS}) e WHERE e.over = 1 AND e.stable < e.latest
UNION ALL
SELECT 'kept', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), d.invoke_ns, d.complete_ns,
  CAST(NULL AS BIGINT), d.subject, {COORDINATOR}
FROM (SELECT o.subject, o.outcome, o.invoke_ns, o.complete_ns {_ASKED}) d
WHERE d.outcome = 'fail'
UNION ALL
SELECT 'cut short', NULL, NULL, x.begin_ns, x.end_ns, NULL, x.tid, {COORDINATOR}
FROM txn_p x WHERE x.cut_short = 1""",
    permitted=f"CASE WHEN x.spoiled = 1 THEN '{SPOILED}' END",
    explain=_explain,
    needs=("txns", "offset_answers"),
    rests_on=("txns", "offset_answers", "admin_ops", "clients", "faults"),
    sub_kinds=("open", "kept", "cut short"),
    tie="j.latest, j.tid",
)
