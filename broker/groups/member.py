"""One member of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from urteil.broker.wire.errors import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]
"""Assignor names with their metadata, in the member's order of preference."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""The longest wait of a new member in a rebalance without any further request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A JoinGroup request; `needs_known_id` from version 4 on (KIP-394)."""

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
    """The response to JoinGroup; `members` (id, instance id, metadata) for the leader alone."""

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
    """The response to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousIdentity:
    """The identity of a static member before its return; `leader` is the group's leader then."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    leader: str

    def restore(self, member: Member) -> None:
        """Restore all but the id, which the group restores."""
        member.session_timeout_ms = self.session_timeout_ms
        member.rebalance_timeout_ms = self.rebalance_timeout_ms


@dataclass(slots=True, kw_only=True)
class Member:
    """The state of a member; `on_join` and `on_sync` are the callbacks of its waiting requests."""

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
    previous_identity: PreviousIdentity | None = None
    on_join: Callable[[JoinResult], None] | None = field(default=None, repr=False)
    on_sync: Callable[[SyncResult], None] | None = field(default=None, repr=False)

    def apply_request(self, request: JoinRequest) -> None:
        """Apply the protocols and timeouts of a request."""
        self.protocols = request.protocols
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = request.rebalance_timeout_ms

    def remember_identity(self, leader: str | None) -> None:
        """Keep the present identity until the return of the member is stored."""
        self.previous_identity = PreviousIdentity(
            member_id=self.member_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            leader=leader or "",
        )

    def renew_session(self, now_ms: float) -> None:
        """Restart the session timeout."""
        self.deadline_ms = now_ms + self.session_timeout_ms

    def is_expired(self, now_ms: float) -> bool:
        """Whether the session expired. A waiting request keeps it alive, except that of a new
        member, which may have abandoned a long rebalance."""
        if self.on_sync is not None or (self.on_join is not None and not self.is_new):
            return False
        return now_ms >= self.deadline_ms

    def metadata(self, protocol: str | None) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The candidate that this member prefers; it supports all of them."""
        return next(name for name, _ in self.protocols if name in candidates)

    def answer_join(self, result: JoinResult) -> None:
        if self.on_join is not None:
            answer, self.on_join = self.on_join, None
            answer(result)

    def answer_sync(self, result: SyncResult, now_ms: float | None = None) -> None:
        """Answer a waiting SyncGroup; with `now_ms` the session timeout restarts."""
        if self.on_sync is not None:
            answer, self.on_sync = self.on_sync, None
            if now_ms is not None:
                self.renew_session(now_ms)
            answer(result)
