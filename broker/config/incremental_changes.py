"""Single changes of settings: set, delete, append to and subtract from lists (KIP-339)."""

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
    """One setting of a request; an `operation` that is none of the four is the client's fault."""

    name: str
    operation: int
    value: str | None


class Refused(Exception):
    """A change that Apache Kafka refuses, with its error and its words (None: it says none)."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def check_changes(changes: Iterable[Change]) -> None:
    """Raises Refused for a name that comes twice or a null that is no deletion."""
    changes = list(changes)
    names = Counter(one.name for one in changes)
    if any(count > 1 for count in names.values()):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [one.name for one in changes if one.value is None and one.operation != Operation.DELETE]
    if nulls:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}"
        )


def apply_changes(
    settings: Mapping[str, str],
    changes: Iterable[Change],
    key_of: Callable[[str], ConfigKey | None],
) -> dict[str, str]:
    """The settings after the changes, which `check_changes` found sound. Raises Refused."""
    after = dict(settings)
    for change in changes:
        if change.operation == Operation.SET:
            after[change.name] = change.value or ""
        elif change.operation == Operation.DELETE:
            after.pop(change.name, None)
        else:
            after[change.name] = _list_changed(after, change, key_of(change.name))
    return after


def _list_changed(settings: Mapping[str, str], change: Change, key: ConfigKey | None) -> str:
    if change.operation not in (Operation.APPEND, Operation.SUBTRACT) or key is None:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    adds = change.operation == Operation.APPEND
    if key.type != "list":
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"Config value {'append' if adds else 'subtract'} is not allowed for config key: "
            f"{change.name}",
        )
    standing = settings.get(change.name, key.default or "")
    values = standing.split(",") if standing else []
    asked = (change.value or "").rstrip(",").split(",")
    if adds:
        return ",".join([*values, *(one for one in asked if one not in values)])
    left = Counter(asked)
    kept = []
    for one in values:
        if left[one] > 0:
            left[one] -= 1
        else:
            kept.append(one)
    return ",".join(kept)
