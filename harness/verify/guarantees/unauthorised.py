"""Nobody does what was never granted, or what the broker itself had shown to be granted no more.

A broker hears of changes late, but in their order: what it allows, denies or tells of one right
turns at most as often as the right was granted or taken back until then. An operation that succeeds
one turn too late was carried out by a broker that had denied it, or told that nobody may, before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.words import times

_SEEN = """
SELECT a.*, CASE WHEN a.outcome IN ('ok', 'shows grant') THEN 1 ELSE 0 END AS may
FROM accesses a WHERE a.outcome IN ('ok', 'denied', 'shows grant', 'shows none')
"""
_BEFORE = f"""
SELECT s.*, COALESCE(LAG(s.may) OVER (PARTITION BY s.client, s.session, s.node, s.subject
                                      ORDER BY s.invoke_ns), 0) AS might
FROM ({_SEEN}) s
"""
_TURNS = f"""
SELECT b.*, SUM(CASE WHEN b.may <> b.might THEN 1 ELSE 0 END)
  OVER (PARTITION BY b.client, b.session, b.node, b.subject ORDER BY b.invoke_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS turns
FROM ({_BEFORE}) b
"""
_JUDGED = f"""
SELECT t.client, t.session, t.node, t.subject, t.invoke_ns, t.complete_ns, t.turns,
  COUNT(o.subject) AS changes
FROM ({_TURNS}) t LEFT JOIN admin_ops o ON o.subject = t.subject
  AND o.act IN ('grant', 'revoke') AND o.outcome <> 'fail' AND o.invoke_ns <= t.complete_ns
WHERE t.outcome = 'ok'
GROUP BY t.client, t.session, t.node, t.subject, t.invoke_ns, t.complete_ns, t.turns
"""


def _explain(row: Mapping[str, Any]) -> str:
    done = f"Broker {row['node']} carried out `{row['subject']}`"
    if row["sub_kind"] == "never granted":
        return f"{done}, which nobody had ever granted."
    return (
        f"{done}, though it had shown before that this was granted no more: it has turned "
        f"{times(row['turns'])}, and the right was changed {times(row['changes'])} until then."
    )


GUARANTEE = Guarantee(
    name="unauthorised",
    about="something was done without the right to it, or after the broker had shown its end",
    promise="An operation is allowed only if an ACL allows it and none denies it; who does not "
    "know a user's present password is not that user.",
    source="Kafka documentation, 7.4 Authorization and ACLs; KIP-11, KIP-84, KIP-554",
    opportunities="SELECT COUNT(*) AS n FROM accesses a WHERE a.outcome = 'denied'",
    violations=f"""
SELECT CASE WHEN j.changes = 0 THEN 'never granted' ELSE 'after revocation' END AS sub_kind,
  CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off, j.invoke_ns AS at_ns,
  j.complete_ns AS until_ns, j.client, j.session, j.node, j.subject, j.turns, j.changes
FROM ({_JUDGED}) j WHERE j.turns > j.changes""",
    explain=_explain,
    needs=("accesses",),
    rests_on=("accesses", "admin_ops", "clients"),
    sub_kinds=("never granted", "after revocation"),
    tie="j.node, j.subject",
)
