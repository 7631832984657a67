"""Valid and internal topic names (`org.apache.kafka.common.internals.Topic`)."""

from __future__ import annotations

import re

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})
MAX_NAME = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    return name in INTERNAL


def is_valid(name: str) -> bool:
    return name_error(name) is None


def name_error(name: str) -> str | None:
    """Why a topic cannot have this name, in the words of `Topic.validate`; None if it can."""
    why = None
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME:
        why = f"the length of '{name}' is longer than the max allowed length {MAX_NAME}"
    elif not _LEGAL.fullmatch(name):
        why = (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None if why is None else f"Topic name is invalid: {why}"
