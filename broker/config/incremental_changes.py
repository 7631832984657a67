"""Incremental changes of settings: set, delete, append to and subtract from lists (KIP-339)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from urteil.broker.config.values import ConfigKey
from urteil.broker.wire.errors import ErrorCode


class Operation(IntEnum):
    """`AlterConfigOp.OpType`."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one setting. An `operation` other than the four is the client's error."""

    name: str
    operation: int
    value: str | None


class RejectedChange(Exception):
    """A change that Apache Kafka rejects, with its error and message (None: no message)."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def check_changes(changes: Iterable[Change]) -> None:
    """Check the changes of a request. Raises RejectedChange for a repeated name, and for a null in
    anything but a deletion."""
    changes = list(changes)
    names = Counter(change.name for change in changes)
    if any(count > 1 for count in names.values()):
        raise RejectedChange(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        change.name
        for change in changes
        if change.value is None and change.operation != Operation.DELETE
    ]
    if nulls:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}"
        )


def apply_changes(
    settings: Mapping[str, str],
    changes: Iterable[Change],
    key_of: Callable[[str], ConfigKey | None],
) -> dict[str, str]:
    """Return the settings after changes that passed `check_changes`. Raises RejectedChange."""
    after = dict(settings)
    for change in changes:
        if change.operation == Operation.SET:
            after[change.name] = change.value or ""
        elif change.operation == Operation.DELETE:
            after.pop(change.name, None)
        else:
            after[change.name] = _change_list(after, change, key_of(change.name))
    return after


def _change_list(settings: Mapping[str, str], change: Change, key: ConfigKey | None) -> str:
    if change.operation not in (Operation.APPEND, Operation.SUBTRACT) or key is None:
        raise RejectedChange(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    adds = change.operation == Operation.APPEND
    if key.type != "list":
        raise RejectedChange(
            ErrorCode.INVALID_CONFIG,
            f"Config value {'append' if adds else 'subtract'} is not allowed for config key: "
            f"{change.name}",
        )
    standing = settings.get(change.name, key.default or "")
    values = standing.split(",") if standing else []
    asked = (change.value or "").rstrip(",").split(",")
    if adds:
        return ",".join([*values, *(value for value in asked if value not in values)])
    left = Counter(asked)
    kept = []
    for value in values:
        if left[value] > 0:
            left[value] -= 1
        else:
            kept.append(value)
    return ",".join(kept)
