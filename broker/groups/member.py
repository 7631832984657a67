"""One member of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from urteil.broker.wire.errors import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]
"""What a member can do, most wanted first: assignor name and its metadata."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member may wait in a rebalance without being heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """What JoinGroup asks; `needs_known_id` from version 4 on (KIP-394)."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    needs_known_id: bool
    new_member_id: str
    can_skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResult:
    """The answer to JoinGroup; `members` (id, instance id, metadata) for the leader alone."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[tuple[str, str | None, bytes]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """The answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What a static member was, until its return is stored; `leader` is the group's."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    leader: str

    def restore(self, member: Member) -> None:
        """All but its id, which its group knows."""
        member.session_timeout_ms = self.session_timeout_ms
        member.rebalance_timeout_ms = self.rebalance_timeout_ms


@dataclass(slots=True, kw_only=True)
class Member:
    """What the group knows of a member; `on_join` and `on_sync` are its waiting requests."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    deadline_ms: float
    is_new: bool = True
    assignment: bytes = b""
    before: Before | None = None
    on_join: Callable[[JoinResult], None] | None = field(default=None, repr=False)
    on_sync: Callable[[SyncResult], None] | None = field(default=None, repr=False)

    def takes(self, request: JoinRequest) -> None:
        """What it asks for from now on."""
        self.protocols = request.protocols
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = request.rebalance_timeout_ms

    def returns(self, leader: str | None) -> None:
        """Remember what it is, of a group with this leader, until its return is stored."""
        self.before = Before(
            member_id=self.member_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            leader=leader or "",
        )

    def heard(self, now_ms: float) -> None:
        """The member lives: its session begins anew."""
        self.deadline_ms = now_ms + self.session_timeout_ms

    def is_expired(self, now_ms: float) -> bool:
        """Whether its session ran out. A waiting request is a sign of life, but for new members,
        who may have given up on a long rebalance without anybody hearing of it."""
        if self.on_sync is not None or (self.on_join is not None and not self.is_new):
            return False
        return now_ms >= self.deadline_ms

    def metadata(self, protocol: str | None) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The candidate this member wants most; it supports every candidate."""
        return next(name for name, _ in self.protocols if name in candidates)

    def answer_join(self, result: JoinResult) -> None:
        if self.on_join is not None:
            answer, self.on_join = self.on_join, None
            answer(result)

    def answer_sync(self, result: SyncResult, now_ms: float | None = None) -> None:
        """With `now_ms` its session begins anew, which could not end while it waited."""
        if self.on_sync is not None:
            answer, self.on_sync = self.on_sync, None
            if now_ms is not None:
                self.heard(now_ms)
            answer(result)
