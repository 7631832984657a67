"""Damage to authorization and answers: rights that were not granted, or that had been revoked,
quotas, wrong answers."""

from __future__ import annotations

import json

from urteil.harness.verify.damage.copy import Copy, S, damage, first

_MADE_UP = "User:made up"
_LATER_S = 500
"""When the faults of all other damages are over."""


@damage("allow an access that was never granted", "unauthorised", "never granted")
def allow_without_grant(copy: Copy) -> None:
    _try(copy, f"{_MADE_UP} Read", copy.last_ns + S, "ok")


@damage("allow an access after its revocation", "unauthorised", "after revocation")
def allow_after_revocation(copy: Copy) -> None:
    """Allowed, seen to be denied, and allowed again, though it was taken back for good."""
    subject = f"{_MADE_UP} Write"
    _grant_and_revoke(copy, subject)
    for number, outcome in enumerate(("ok", "shows none", "ok")):
        _try(copy, subject, copy.last_ns + (3 + 2 * number) * S, outcome)


@damage("allow an access long after its revocation", "unauthorised", "long after")
def allow_long_after_revocation(copy: Copy) -> None:
    """Allowed for ever, though it was taken back."""
    subject = f"{_MADE_UP} Describe"
    _grant_and_revoke(copy, subject)
    for after_s in (3, _LATER_S):
        _try(copy, subject, copy.last_ns + after_s * S, "ok")


@damage("deny a granted access", "unauthorised", "refused")
def deny_granted_access(copy: Copy) -> None:
    """A right that was granted is refused."""
    subject = f"{_MADE_UP} Alter"
    _act(copy, subject, "grant", 2)
    for number, outcome in enumerate(("shows grant", "denied")):
        _try(copy, subject, copy.last_ns + (3 + number) * S, outcome)


@damage("answer a question wrongly", "wrong_answer", "answer")
def answer_wrong(copy: Copy) -> None:
    """A question of which the answer is known, when no fault acts any more."""
    _try(copy, "a made-up question", copy.last_ns + _LATER_S * S, "wrong")


@damage("let a client write beyond its quota", "quota_exceeded", "written")
def exceed_quota(copy: Copy) -> None:
    """Somebody has a quota of less than nothing, which the first record is beyond."""
    known = {row["client"] for row in copy.rows("clients") if row["library"] == "kafka-python"}
    writer = first(row for row in copy.rows("sends") if row["client"] in known)
    since_ns = min(row["invoke_ns"] for row in copy.rows("sends")) - 10 * S
    rate = {"producer_byte_rate": "-1000000000"}
    copy.rows("admin_ops").append(
        {"invoke_ns": since_ns, "complete_ns": since_ns + 1, "outcome": "ok", "act": "quota"}
        | {"subject": writer["client"], "before": "{}", "after": json.dumps(rate)}
    )


def _grant_and_revoke(copy: Copy, subject: str) -> None:
    for number, act in enumerate(("grant", "revoke")):
        _act(copy, subject, act, 2 + 2 * number)


def _act(copy: Copy, subject: str, act: str, after_s: int) -> None:
    at_ns = copy.last_ns + after_s * S
    copy.rows("admin_ops").append(
        {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "outcome": "ok", "act": act}
        | {"subject": subject, "before": "{}", "after": "{}"}
    )


def _try(copy: Copy, subject: str, at_ns: int, outcome: str) -> None:
    copy.rows("accesses").append(
        {"client": "made up", "session": 1, "node": 1, "subject": subject, "outcome": outcome}
        | {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "error": None}
    )
