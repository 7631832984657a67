"""No operation succeeds without a right that was granted, and none is denied that was granted.

Brokers learn of changes late, but in order. The answers of a broker about one right therefore
change at most as often as the right was granted or revoked until then. An operation that
succeeds one change too late was carried out by a broker that had denied it, or had reported it
as not granted, before.

Five seconds after the last change and the last healing every broker has the current rights,
unless a change was not answered and may itself arrive late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.plurals import times

_LONG_NS = 5_000_000_000

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
_LAST = """
SELECT o.subject, MAX(o.complete_ns) AS last_ns,
  MAX(CASE WHEN o.act = 'grant' THEN o.invoke_ns ELSE 0 END) AS granted_ns,
  MAX(CASE WHEN o.act = 'revoke' THEN o.invoke_ns ELSE 0 END) AS revoked_ns
FROM admin_ops o WHERE o.act IN ('grant', 'revoke') AND o.outcome <> 'fail'
GROUP BY o.subject HAVING MIN(CASE WHEN o.outcome = 'ok' THEN 1 ELSE 0 END) = 1
"""
_JUDGED = f"""
SELECT t.client, t.session, t.node, t.subject, t.outcome, t.invoke_ns, t.complete_ns, t.turns,
  COUNT(o.subject) AS changes, MAX(CASE WHEN l.revoked_ns > l.granted_ns
    AND t.invoke_ns >= l.last_ns + {_LONG_NS} AND t.invoke_ns >= h.calm_ns + {_LONG_NS}
    THEN 1 ELSE 0 END) AS is_over
FROM ({_TURNS}) t CROSS JOIN (SELECT MAX(q.calm_ns) AS calm_ns FROM parts q) h
LEFT JOIN ({_LAST}) l ON l.subject = t.subject LEFT JOIN admin_ops o ON o.subject = t.subject
  AND o.act IN ('grant', 'revoke') AND o.outcome <> 'fail' AND o.invoke_ns <= t.complete_ns
WHERE t.outcome IN ('ok', 'denied')
GROUP BY t.client, t.session, t.node, t.subject, t.outcome, t.invoke_ns, t.complete_ns, t.turns
"""


def _explain(row: Mapping[str, Any]) -> str:
    done = f"Broker {row['node']} carried out `{row['subject']}`"
    turned = (
        f"its answers changed {times(row['turns'])}, and the right {times(row['changes'])} "
        "until then."
    )
    sentences = {
        "never granted": f"{done}, which was never granted.",
        "after revocation": f"{done}, although it had shown before that this was revoked: {turned}",
        "long after": f"{done}, although the right had been revoked finally more than five seconds "
        "before, which was acknowledged, and no fault acted.",
        "refused": f"Broker {row['node']} denied `{row['subject']}`, although it had shown before "
        f"that this was granted: {turned}",
    }
    return sentences[row["sub_kind"]]


GUARANTEE = Guarantee(
    name="unauthorised",
    rank=10,
    about="an operation succeeded without a right, or was denied although the right was granted",
    promise="An operation is allowed if and only if an ACL allows it and none denies it; a client "
    "without the user's current password is not that user.",
    source="Kafka documentation, 7.4 Authorization and ACLs; KIP-11, KIP-84, KIP-554",
    sub_kinds={
        "never granted": "a user did what was never granted",
        "after revocation": (
            "the broker had shown before that the right was revoked, by a denial or by its answer "
            "to DescribeAcls"
        ),
        "long after": "the revocation was acknowledged and final more than five seconds before",
        "refused": "a user was denied what the broker had shown to be granted",
    },
    not_counted=(
        "As many changes of a broker's mind as the right was granted or revoked until then, "
        "because brokers learn of changes late. An attempt without a definite rejection counts as "
        "a change, since it may take effect late, and then no `long after` is judged for that "
        "right.",
        "Attempts while a fault acts, or less than five seconds after its healing.",
    ),
    opportunities="SELECT COUNT(*) AS n FROM accesses a WHERE a.outcome = 'denied'",
    violations=f"""
SELECT CASE WHEN j.outcome = 'denied' THEN 'refused' WHEN j.changes = 0 THEN 'never granted'
    WHEN j.turns > j.changes THEN 'after revocation' ELSE 'long after' END AS sub_kind,
  CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off, j.invoke_ns AS at_ns,
  j.complete_ns AS until_ns, j.client, j.session, j.node, j.subject, j.turns, j.changes
FROM ({_JUDGED}) j WHERE j.turns > j.changes OR (j.outcome = 'ok' AND j.is_over = 1)""",
    explain=_explain,
    tie="j.node, j.subject",
    compares_times=True,
    needs=("accesses",),
    reads=("parts", "accesses", "admin_ops", "parts.calm_ns"),
    rests_on=("accesses", "admin_ops", "clients", "faults"),
)
