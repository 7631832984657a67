"""Types of a session: states, node stats, and the operations of a multi."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from kazoo.exceptions import RolledBackError, RuntimeInconsistency

_NEVER_IN_A_PATH = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def is_node_name(name: str) -> bool:
    """Whether the name is valid for a node (ZooKeeper's `PathUtils`)."""
    return name not in ("", ".", "..") and not _NEVER_IN_A_PATH.search(name)


class State(Enum):
    """A session is CONNECTED, SUSPENDED (may resume) or EXPIRED (its ephemeral nodes are
    deleted)."""

    CONNECTED = auto()
    SUSPENDED = auto()
    EXPIRED = auto()


class Stat(NamedTuple):
    """The stat of a node: transaction of its creation and of its last change, version, owning
    session, and creation time by ZooKeeper's clock (ms)."""

    czxid: int
    mzxid: int
    version: int
    ephemeral_owner: int
    created_ms: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    path: str
    data: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = -1


Op = Check | Create | Set | Delete


class MultiFailed(Exception):
    """A multi failed: the operation at `index` failed with `cause`, so none was done."""

    def __init__(self, index: int, cause: Exception) -> None:
        super().__init__(f"operation {index}: {type(cause).__name__} {cause}")
        self.index = index
        self.cause = cause


def as_stat(stat: Any) -> Stat:
    return Stat(stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner, stat.ctime)


def first_failure(results: Sequence[Any]) -> MultiFailed | None:
    """Return the operation that failed: earlier ones were rolled back, later ones never tried."""
    for index, result in enumerate(results):
        blameless = isinstance(result, RolledBackError | RuntimeInconsistency)
        if isinstance(result, Exception) and not blameless:
            return MultiFailed(index, result)
    return None
