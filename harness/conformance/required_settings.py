"""Settings that brokers need for the questions with known answers."""

from __future__ import annotations

MOST_MEMBERS = 3
LEAST_SESSION_MS, MOST_SESSION_MS = 2_000, 70_000
MOST_TRANSACTION_MS = 90_000

LIMITS = {
    "group.max.size": str(MOST_MEMBERS),
    "group.min.session.timeout.ms": str(LEAST_SESSION_MS),
    "group.max.session.timeout.ms": str(MOST_SESSION_MS),
    "transaction.max.timeout.ms": str(MOST_TRANSACTION_MS),
    "log.cleaner.backoff.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
"""By the names of broker properties."""
