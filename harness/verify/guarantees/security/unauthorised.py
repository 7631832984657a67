"""No operation succeeds without a right that was granted, and none is denied that was granted.

Changes reach brokers late, but in order. The answers of a broker about one right therefore change
at most as often as the right was granted or revoked until then. If an operation succeeds one change
too late, the broker that carried it out had denied it, or had reported it as not granted, before.

Five seconds after the last change and the last healing every broker has the current rights, unless
a change was not answered and may itself arrive late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.plurals import times
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_LONG_NS = 5_000_000_000

_OBSERVED = """
SELECT *, CASE WHEN outcome IN ('ok', 'shows grant') THEN 1 ELSE 0 END AS is_allowed
FROM accesses WHERE outcome IN ('ok', 'denied', 'shows grant', 'shows none')
"""
_BEFORE = f"""
SELECT *, COALESCE(LAG(is_allowed) OVER (PARTITION BY client, session, node, subject
                                      ORDER BY invoke_ns), 0) AS was_allowed
FROM ({_OBSERVED}) observed_accesses
"""
_CHANGES_SHOWN = f"""
SELECT *, SUM(CASE WHEN is_allowed <> was_allowed THEN 1 ELSE 0 END)
  OVER (PARTITION BY client, session, node, subject ORDER BY invoke_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS turns
FROM ({_BEFORE}) earlier_changes
"""
_LAST = """
SELECT subject, MAX(complete_ns) AS last_ns,
  MAX(CASE WHEN act = 'grant' THEN invoke_ns ELSE 0 END) AS granted_ns,
  MAX(CASE WHEN act = 'revoke' THEN invoke_ns ELSE 0 END) AS revoked_ns
FROM admin_ops WHERE act IN ('grant', 'revoke') AND outcome <> 'fail'
GROUP BY subject HAVING MIN(CASE WHEN outcome = 'ok' THEN 1 ELSE 0 END) = 1
"""
_JUDGED = f"""
SELECT turns.client, turns.session, turns.node, turns.subject, turns.outcome, turns.invoke_ns,
  turns.complete_ns, turns.turns,
  COUNT(admin_ops.subject) AS changes,
  MAX(CASE WHEN last_changes.revoked_ns > last_changes.granted_ns
    AND turns.invoke_ns >= last_changes.last_ns + {_LONG_NS} AND turns.invoke_ns >= recovery.calm_ns
    + {_LONG_NS}
    THEN 1 ELSE 0 END) AS is_over
FROM ({_CHANGES_SHOWN}) turns CROSS JOIN (SELECT MAX(partitions.calm_ns) AS calm_ns
                                    FROM partitions) recovery
LEFT JOIN ({_LAST}) last_changes ON last_changes.subject = turns.subject LEFT JOIN admin_ops
  ON admin_ops.subject = turns.subject
  AND admin_ops.act IN ('grant', 'revoke') AND admin_ops.outcome <> 'fail'
  AND admin_ops.invoke_ns <= turns.complete_ns
WHERE turns.outcome IN ('ok', 'denied')
GROUP BY turns.client, turns.session, turns.node, turns.subject, turns.outcome, turns.invoke_ns,
  turns.complete_ns, turns.turns
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


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A broker's answers about a right change no more often than the right itself had until then,
    and five seconds after its last revocation a right is denied."""
    healed_ns = max(
        (row.calm_ns or 0 for row in history.derived_rows("partitions")), default=FOREVER_NS
    )
    for access in history.accesses:
        if access.outcome not in ("ok", "denied"):
            continue
        turns, may = 0, False
        for answer in _answers_before(history, access):
            turns += answer != may
            may = answer
        acts = [
            op for op in history.admin_ops
            if op.act in ("grant", "revoke") and op.subject == access.subject
            if op.outcome in ("ok", "info")
        ]  # fmt: skip
        changes = sum(op.invoke_ns <= access.complete_ns for op in acts)
        kind = None
        if turns > changes:
            kind = "refused" if access.outcome == "denied" else "after revocation"
        elif access.outcome == "ok" and _is_revoked(acts, access, healed_ns):
            kind = "long after"
        if kind:
            kind = "never granted" if access.outcome == "ok" and not changes else kind
            about = (access.client, access.node, access.subject, access.invoke_ns)
            yield Violation(kind, subject=subject_text(*about))


def _answers_before(history: SmallHistory, access: Row) -> list[bool]:
    """The answers of a broker to one client about one right up to an access: whether the client has
    it."""
    same = ("client", "session", "node", "subject")
    answers = [
        (row.invoke_ns, row.outcome in ("ok", "shows grant"))
        for row in history.accesses
        if row.invoke_ns <= access.invoke_ns and all(row[name] == access[name] for name in same)
        if row.outcome in ("ok", "denied", "shows grant", "shows none")
    ]
    return [has_right for _, has_right in sorted(answers)]


def _is_revoked(acts: list[Row], access: Row, healed_ns: int) -> bool:
    """Whether the last change of a right was a revocation that every broker must know at the
    access."""
    if not acts or any(op.outcome != "ok" for op in acts):
        return False
    known_ns = max(healed_ns, *(op.complete_ns for op in acts)) + _LONG_NS
    last = max(acts, key=lambda op: int(op.invoke_ns))
    return bool(last.act == "revoke" and access.invoke_ns >= known_ns)


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
        "As many changes of a broker's answers as the right was granted or revoked until then, "
        "because changes reach brokers late. An attempt without a definite rejection counts as "
        "a change, since it may take effect late, and then no `long after` is judged for that "
        "right.",
        "Attempts while a fault acts, or less than five seconds after its healing.",
    ),
    occasion=Occasion.RIGHTS,
    opportunities="SELECT COUNT(*) AS n FROM accesses WHERE outcome = 'denied'",
    violations=f"""
SELECT CASE WHEN outcome = 'denied' THEN 'refused' WHEN changes = 0 THEN 'never granted'
    WHEN turns > changes THEN 'after revocation' ELSE 'long after' END AS sub_kind,
  CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off, invoke_ns AS at_ns,
  complete_ns AS until_ns, client, session, node, subject, turns, changes
FROM ({_JUDGED}) decisions WHERE turns > changes OR (outcome = 'ok' AND is_over = 1)""",
    explain=_explain,
    tie="finding.node, finding.subject",
    compares_times=True,
    needs=("accesses",),
    reads=("partitions", "accesses", "admin_ops", "partitions.calm_ns"),
    rests_on=("accesses", "admin_ops", "clients", "faults"),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.client, violation.node, violation.subject, "
    "violation.at_ns)",
)
