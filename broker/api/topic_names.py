"""Valid and internal topic names (`org.apache.kafka.common.internals.Topic`)."""

from __future__ import annotations

import re

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_internal(name: str) -> bool:
    return name in INTERNAL


def is_valid(name: str) -> bool:
    return name not in (".", "..") and _LEGAL.fullmatch(name) is not None
