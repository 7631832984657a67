"""Damage to what people may do: rights that nobody granted, or that had been taken back."""

from __future__ import annotations

from urteil.harness.verify.damage.copy import Copy, S, Trace

_MADE_UP = "User:made up"


def do_what_nobody_granted(copy: Copy) -> Trace:
    _try(copy, f"{_MADE_UP} Read", copy.last_ns + S, "ok")
    return Trace("unauthorised", "never granted")


def do_what_was_taken_back(copy: Copy) -> Trace:
    """Allowed, seen to be denied, and allowed again, though it was taken back for good."""
    subject = f"{_MADE_UP} Write"
    for number, act in enumerate(("grant", "revoke")):
        at_ns = copy.last_ns + (2 + 2 * number) * S
        copy.rows("admin_ops").append(
            {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "outcome": "ok", "act": act}
            | {"subject": subject, "before": "{}", "after": "{}"}
        )
    for number, outcome in enumerate(("ok", "shows none", "ok")):
        _try(copy, subject, copy.last_ns + (3 + 2 * number) * S, outcome)
    return Trace("unauthorised", "after revocation")


def _try(copy: Copy, subject: str, at_ns: int, outcome: str) -> None:
    copy.rows("accesses").append(
        {"client": "made up", "session": 1, "node": 1, "subject": subject, "outcome": outcome}
        | {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "error": None}
    )
