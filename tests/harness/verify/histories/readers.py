"""Readers of a generated history: live ones that seek and restart, a group, final passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.harness.verify.histories.log import MS, Entry, Log, Row


def read(entry: Entry, log: Log, at_ns: int, **session: object) -> Row:
    """A row of `reads`."""
    return (
        log.place
        | {"offset": entry.offset, "key": entry.key, "value_id": entry.value_id, "intact": True}
        | {"leader_epoch": entry.epoch, "timestamp_ms": entry.timestamp_ms, "read_ns": at_ns}
        | session
    )


@dataclass(slots=True, kw_only=True)
class Reader:
    """A consumer that tails one partition on its own."""

    name: str
    log: Log
    random: Random
    committed: bool = False
    session: int = 0
    number: int = 0
    polled: int = 0
    position: int = 0
    began: tuple[int, int] = (0, 0)
    reads: list[Row] = field(default_factory=list)
    polls: list[Row] = field(default_factory=list)
    passes: list[Row] = field(default_factory=list)

    def poll(self, at_ns: int, most: int = 9) -> None:
        """Reads on from the position, up to the committed end, or the last stable offset."""
        log = self.log
        if self.position < log.start:
            self.jump(at_ns, log.start, "reset")
        high = log.stable() if self.committed else log.high
        delivered = log.shown(self.position, high, committed=self.committed)[:most]
        self.polled += 1
        for n, entry in enumerate(delivered):
            session = {"client": self.name, "session": self.session, "pass": self.number}
            where = {"poll": self.polled, "position_in_poll": n}
            self.reads.append(read(entry, log, at_ns, **session, **where))
        if delivered:
            after = delivered[-1].offset + 1
            self._record(at_ns, self.position, after, None)
            self.position = after

    def _record(self, at_ns: int, before: int, after: int, event: str | None) -> None:
        self.polls.append(
            self.log.place
            | {"client": self.name, "session": self.session, "poll": self.polled}
            | {"invoke_ns": at_ns - MS, "complete_ns": at_ns, "outcome": "ok", "event": event}
            | {"position_before": before, "position_after": after}
        )

    def jump(self, at_ns: int, position: int, event: str) -> None:
        """Another position, in the same pass (`seek`) or in a new one."""
        self.polled += 1
        self._record(at_ns, self.position, position, event)
        if event == "reset":
            self.close(at_ns)
            self.number += 1
            self.began = (position, at_ns)
        self.position = position

    def close(self, at_ns: int) -> None:
        low, begin_ns = self.began
        self.passes.append(
            self.log.place
            | {"client": self.name, "session": self.session, "pass": self.number, "final": False}
            | {"from_offset": low, "to_offset": max(self.position, low), "complete": True}
            | {"isolation": "read_committed" if self.committed else "read_uncommitted"}
            | {"begin_ns": begin_ns, "end_ns": at_ns}
        )

    def restart(self, at_ns: int, position: int) -> None:
        """A new process, which begins elsewhere and starts the numbers of its polls and passes
        again."""
        self.close(at_ns)
        self.session += 1
        self.number, self.polled, self.position = 0, 0, position
        self.began = (position, at_ns)


@dataclass(slots=True, kw_only=True)
class Group:
    """Members that share the partitions; one owner a partition and generation."""

    name: str
    members: list[str]
    logs: list[Log]
    random: Random
    generation: int = 0
    owner: dict[int, str] = field(default_factory=dict)
    position: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    polled: dict[str, int] = field(default_factory=dict)
    reads: list[Row] = field(default_factory=list)
    polls: list[Row] = field(default_factory=list)
    assignments: list[Row] = field(default_factory=list)
    commits: list[Row] = field(default_factory=list)
    commit_reads: list[Row] = field(default_factory=list)

    def _member(self, member: str, generation: int) -> Row:
        fields = {"client": member, "session": 0, "group": self.name, "generation": generation}
        return fields | {"member_id": f"{member}-id"}

    def rebalance(self, at_ns: int) -> None:
        """Moves partitions to other members; each fetches the group's committed position."""
        for log in self.logs:
            if log.partition in self.owner:
                event = self.random.choice(("revoked", "lost"))
                self._assign(log, at_ns, event)
        self.generation += 1
        for log in self.logs:
            member = self.owner[log.partition] = self.random.choice(self.members)
            self.turns[member] = self.turns.get(member, 0) + 1
            self._assign(log, at_ns + MS, "assigned")
            self._fetch_position(log, at_ns + 2 * MS, self._member(member, self.generation))
            self.position[log.partition] = self.kept.get(log.partition, log.start)

    def _assign(self, log: Log, at_ns: int, event: str) -> None:
        session = self._member(self.owner[log.partition], self.generation)
        self.assignments.append(session | log.place | {"event": event, "at_ns": at_ns})

    def _fetch_position(self, log: Log, at_ns: int, session: Row) -> None:
        times = {"invoke_ns": at_ns, "complete_ns": at_ns + MS, "outcome": "ok"}
        self.commit_reads.append(
            session | log.place | times | {"offset": self.kept.get(log.partition)}
        )

    def ask_from_outside(self, log: Log, at_ns: int, client: str) -> None:
        self._fetch_position(log, at_ns, {"client": client, "session": 0, "group": self.name})

    def poll(self, log: Log, at_ns: int) -> None:
        """The owner processes the next records."""
        member, position = self.owner[log.partition], self.position[log.partition]
        if position < log.start:
            position = log.start
            self._record(log, member, at_ns, "reset")
        delivered = log.shown(position, log.high)[:7]
        poll = self.polled[member] = self.polled.get(member, 0) + 1
        for n, entry in enumerate(delivered):
            session = {"client": member, "session": 0, "pass": self.turns[member], "poll": poll}
            session |= {"position_in_poll": n, "generation": self.generation}
            self.reads.append(read(entry, log, at_ns, **session))
        self.position[log.partition] = delivered[-1].offset + 1 if delivered else position

    def _record(self, log: Log, member: str, at_ns: int, event: str) -> None:
        poll = self.polled[member] = self.polled.get(member, 0) + 1
        self.polls.append(
            log.place
            | {"client": member, "session": 0, "poll": poll, "event": event, "outcome": "ok"}
            | {"invoke_ns": at_ns - MS, "complete_ns": at_ns}
        )

    def commit(self, log: Log, at_ns: int) -> None:
        """Commits the processed records: acknowledged, or lost on the way there or back."""
        offset = self.position[log.partition]
        outcome = self.random.choices(("ok", "took", "lost"), (8, 1, 1))[0]
        if outcome != "lost":
            self.kept[log.partition] = offset
        self._commit(log, self._member(self.owner[log.partition], self.generation), at_ns, offset,
                     "ok" if outcome == "ok" else "info")  # fmt: skip

    def commit_late(self, log: Log, at_ns: int) -> None:
        """A former member is refused."""
        if self.generation > 1:
            session = self._member(self.random.choice(self.members), self.generation - 1)
            self._commit(log, session, at_ns, self.position[log.partition] + 3, "fail")

    def _commit(self, log: Log, session: Row, at_ns: int, offset: int, outcome: str) -> None:
        done_ns = None if outcome == "info" and self.random.random() < 0.5 else at_ns + MS
        self.commits.append(
            session
            | log.place
            | {"invoke_ns": at_ns, "complete_ns": done_ns, "outcome": outcome, "offset": offset}
            | {"processed_to": offset, "error": None if outcome == "ok" else "made up"}
        )
