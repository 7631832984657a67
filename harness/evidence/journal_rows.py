"""Rows of evidence from the journal of one client."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from urteil.harness.evidence import journal as j

Row = dict[str, Any]
TableRow = tuple[str, Row]


class JournalRows:
    """Turns entries into rows, in the order of their completion.

    A send without completion, a commit without answer and a pass without end come last, as unknown
    or incomplete. Memory holds open operations only.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._who: Row = {}
        self._begin: j.Begin | None = None
        self._end_ns: int | None = None
        self._sends: dict[int, j.Send] = {}
        self._passes: dict[int, j.PassBegin] = {}
        self._reached: dict[int, int] = {}
        self._commits: dict[int, j.Commit] = {}
        self._txns: dict[int, Row] = {}
        self.first_sequence: int | None = None
        self.last_sequence: int | None = None
        self._handlers: dict[type, Callable[[Any], Iterator[TableRow]]] = {
            j.Begin: self._on_begin,
            j.Send: self._on_send,
            j.Ok: lambda done: self._on_completion(done, "ok"),
            j.Fail: lambda done: self._on_completion(done, "fail"),
            j.Info: lambda done: self._on_completion(done, "info"),
            j.Poll: self._on_poll,
            j.PassBegin: self._on_pass_begin,
            j.PassEnd: self._on_pass_end,
            j.Commit: self._on_commit,
            j.Committed: self._on_committed,
            j.CommitRead: self._on_commit_read,
            j.Assigned: self._on_assigned,
            j.OffsetAnswer: self._on_answer,
            j.View: self._on_view,
            j.TxnBegin: self._on_txn_begin,
            j.TxnCommit: self._on_txn_commit,
            j.TxnEnd: self._on_txn_end,
            j.Access: self._on_access,
            j.Right: self._on_right,
        }

    def take(self, entry: j.Entry) -> Iterator[TableRow]:
        """The rows that `entry` completes."""
        return self._handlers[type(entry)](entry)

    def remaining_rows(self, end_ns: int | None) -> Iterator[TableRow]:
        """Rows of operations that were open when the journal ended, and of the client itself."""
        for send in self._sends.values():
            yield "sends", self._send_row(send) | {"outcome": "info", "ambiguous": True}
        for number, begun in self._passes.items():
            reached = self._reached.get(number, begun.from_offset)
            yield "passes", self._pass_row(begun, reached, complete=False)
        for commit in self._commits.values():
            yield from self._commit_rows(commit, None, "info", "no answer")
        for txn in self._txns.values():
            yield "txns", txn | {"outcome": "unknown", "error": "no answer"}
        if self._begin is not None:
            yield "clients", self._client_row(self._begin, end_ns)

    def _on_access(self, tried: j.Access) -> Iterator[TableRow]:
        yield "accesses", self._who | msgspec.structs.asdict(tried)

    def _on_right(self, changed: j.Right) -> Iterator[TableRow]:
        details = {"error": changed.error} if changed.error else {}
        yield (
            "admin_ops",
            {
                "invoke_ns": changed.invoke_ns,
                "complete_ns": changed.complete_ns,
                "outcome": changed.outcome,
                "act": j.GRANT if changed.granted else j.REVOKE,
                "subject": changed.subject,
                "before": "{}",
                "after": json.dumps(details),
            },
        )

    def _on_begin(self, begin: j.Begin) -> Iterator[TableRow]:
        self._begin = begin
        self._who = {"client": begin.client, "session": begin.session}
        return iter(())

    def _client_row(self, begin: j.Begin, end_ns: int | None) -> Row:
        return self._who | {
            "kind": begin.kind,
            "acks": begin.acks,
            "idempotent": begin.idempotent,
            "transactional_id": begin.transactional_id,
            "instance": begin.instance,
            "group": begin.group,
            "isolation": begin.isolation,
            "library": begin.library,
            "version": begin.version,
            "boot_id": begin.boot_id,
            "pid": begin.pid,
            "begin_ns": begin.at_ns,
            "end_ns": end_ns,
        }

    def _topic(self, topic: str) -> Row:
        known = self._begin.topic_ids if self._begin else {}
        return {"topic": topic, "topic_id": known.get(topic)}

    def _on_send(self, send: j.Send) -> Iterator[TableRow]:
        self._sends[send.op] = send
        if self.first_sequence is None:
            self.first_sequence = send.op
        self.last_sequence = send.op
        return iter(())

    def _send_row(self, send: j.Send) -> Row:
        begin = self._begin
        return {
            **self._who,
            **self._topic(send.topic),
            "op": send.op,
            "invoke_ns": send.invoke_ns,
            "partition_intended": send.partition,
            "key": send.key,
            "value_id": f"{self._run}/{self._who.get('client')}/{send.op}",
            "timestamp_ms": send.timestamp_ms,
            "acks": begin.acks if begin else None,
            "idempotent": begin.idempotent if begin else None,
            "tombstone": send.tombstone,
            "txn": send.txn,
            "source": send.source,
        }

    def _on_completion(self, done: j.Ok | j.Fail | j.Info, outcome: str) -> Iterator[TableRow]:
        send = self._sends.pop(done.op, None)
        if send is None:
            return
        row = self._send_row(send)
        row["complete_ns"] = done.complete_ns
        row["outcome"] = outcome
        row["error"] = done.error
        row["attempts"] = done.attempts if done.attempts >= 0 else None
        row["ambiguous"] = done.ambiguous
        row["partition"] = done.partition
        row["offset"] = done.offset
        row["node"] = done.node
        row["producer_id"] = done.producer_id
        row["producer_epoch"] = done.producer_epoch
        row["sequence"] = done.sequence
        if done.timestamp_ms is not None:
            row["timestamp_ms"] = done.timestamp_ms
        yield "sends", row

    def _on_poll(self, poll: j.Poll) -> Iterator[TableRow]:
        common = {
            **self._who,
            "poll": poll.poll,
            "invoke_ns": poll.invoke_ns,
            "complete_ns": poll.complete_ns,
            "outcome": poll.outcome,
            "error": poll.error,
        }
        if not poll.slices:
            yield "polls", common
        position = 0
        for part in poll.slices:
            yield (
                "polls",
                {
                    **common,
                    **self._topic(part.topic),
                    "partition": part.partition,
                    "position_before": part.before,
                    "position_after": part.after,
                    "event": part.event,
                },
            )
            if part.after is not None:
                self._reached[part.pass_] = part.after
            where = self._read_place(poll, part)
            for got in part.records:
                yield "reads", self._read_row(where, position, got)
                position += 1

    def _read_place(self, poll: j.Poll, part: j.Slice) -> Row:
        return {
            **self._who,
            **self._topic(part.topic),
            "pass": part.pass_,
            "poll": poll.poll,
            "read_ns": poll.complete_ns,
            "generation": poll.generation,
            "partition": part.partition,
            "txn": poll.txn,
        }

    def _read_row(self, where: Row, position: int, got: j.Got) -> Row:
        return {
            **where,
            "position_in_poll": position,
            "offset": got.offset,
            "key": got.key,
            "value_id": got.value_id,
            "intact": got.intact,
            "leader_epoch": got.leader_epoch,
            "timestamp_ms": got.timestamp_ms,
        }

    def _on_pass_begin(self, begun: j.PassBegin) -> Iterator[TableRow]:
        self._passes[begun.pass_] = begun
        return iter(())

    def _on_pass_end(self, ended: j.PassEnd) -> Iterator[TableRow]:
        begun = self._passes.pop(ended.pass_, None)
        if begun is not None:
            arrived = begun.to_offset is None or ended.to_offset >= begun.to_offset
            row = self._pass_row(begun, ended.to_offset, complete=ended.complete and arrived)
            yield "passes", row | {"end_ns": ended.end_ns, "leader": ended.leader}

    def _pass_row(self, begun: j.PassBegin, reached: int, *, complete: bool) -> Row:
        return {
            **self._who,
            **self._topic(begun.topic),
            "pass": begun.pass_,
            "partition": begun.partition,
            "from_offset": begun.from_offset,
            "to_offset": reached if begun.to_offset is None else begun.to_offset,
            "isolation": begun.isolation,
            "begin_ns": begun.begin_ns,
            "final": begun.final,
            "complete": complete,
        }

    def _on_commit(self, commit: j.Commit) -> Iterator[TableRow]:
        self._commits[commit.number] = commit
        return iter(())

    def _on_committed(self, done: j.Committed) -> Iterator[TableRow]:
        commit = self._commits.pop(done.number, None)
        if commit is not None:
            yield from self._commit_rows(commit, done.complete_ns, done.outcome, done.error)

    def _commit_rows(
        self, commit: j.Commit, complete_ns: int | None, outcome: str, error: str | None
    ) -> Iterator[TableRow]:
        if commit.deletes:
            yield from self._deletion_rows(commit, complete_ns, outcome)
            return
        for entry in commit.offsets:
            yield (
                "commits",
                {
                    **self._member(commit.generation, commit.member_id, commit.group),
                    **self._topic(entry.topic),
                    "invoke_ns": commit.invoke_ns,
                    "complete_ns": complete_ns,
                    "outcome": outcome,
                    "error": error,
                    "partition": entry.partition,
                    "offset": entry.offset,
                    "processed_to": entry.processed_to,
                    "txn": commit.txn,
                },
            )

    def _deletion_rows(
        self, commit: j.Commit, complete_ns: int | None, outcome: str
    ) -> Iterator[TableRow]:
        for entry in commit.offsets:
            place = self._topic(entry.topic) | {"partition": entry.partition}
            yield (
                "admin_ops",
                {
                    "invoke_ns": commit.invoke_ns,
                    "complete_ns": complete_ns,
                    "outcome": outcome,
                    "act": j.FORGET,
                    "subject": commit.group,
                    "before": "{}",
                    "after": json.dumps(place),
                },
            )

    def _member(
        self, generation: int | None, member_id: str | None, group: str | None = None
    ) -> Row:
        own = self._begin.group if self._begin else None
        return {
            **self._who,
            "group": group or own,
            "generation": generation,
            "member_id": member_id,
        }

    def _on_commit_read(self, read: j.CommitRead) -> Iterator[TableRow]:
        yield (
            "commit_reads",
            {
                **self._member(read.generation, read.member_id, read.group),
                **self._topic(read.topic),
                "invoke_ns": read.invoke_ns,
                "complete_ns": read.complete_ns,
                "outcome": read.outcome,
                "error": read.error,
                "partition": read.partition,
                "offset": read.offset,
                "intact": read.intact,
            },
        )

    def _on_assigned(self, assigned: j.Assigned) -> Iterator[TableRow]:
        for topic, partition in assigned.partitions:
            yield (
                "assignments",
                {
                    **self._member(assigned.generation, assigned.member_id),
                    **self._topic(topic),
                    "at_ns": assigned.at_ns,
                    "event": assigned.event,
                    "partition": partition,
                },
            )

    def _on_answer(self, answer: j.OffsetAnswer) -> Iterator[TableRow]:
        yield (
            "offset_answers",
            {
                **self._topic(answer.topic),
                "node": answer.node,
                "invoke_ns": answer.invoke_ns,
                "complete_ns": answer.complete_ns,
                "query": answer.query,
                "partition": answer.partition,
                "offset": answer.offset,
                "error": answer.error,
                "api_version": answer.api_version,
                "leader_epoch": answer.leader_epoch,
                "timestamp_ms": answer.timestamp_ms,
            },
        )

    def _on_txn_begin(self, begun: j.TxnBegin) -> Iterator[TableRow]:
        self._txns[begun.txn] = {
            **self._who,
            "txn": begun.txn,
            "transactional_id": self._begin.transactional_id if self._begin else None,
            "producer_id": begun.producer_id,
            "epoch": begun.epoch,
            "begin_ns": begun.begin_ns,
            "init_invoke_ns": begun.init_invoke_ns,
            "init_ns": begun.init_ns,
        }
        return iter(())

    def _on_txn_commit(self, commit: j.TxnCommit) -> Iterator[TableRow]:
        if commit.txn in self._txns:
            self._txns[commit.txn]["commit_invoke_ns"] = commit.invoke_ns
        return iter(())

    def _on_txn_end(self, ended: j.TxnEnd) -> Iterator[TableRow]:
        row = self._txns.pop(ended.txn, None)
        if row is not None:
            outcome = {"outcome": ended.outcome, "error": ended.error}
            late = {"end_ns": ended.end_ns, "late_end_ns": ended.late_end_ns}
            yield "txns", row | outcome | late

    def _on_view(self, view: j.View) -> Iterator[TableRow]:
        labels = self._topic(view.topic) | {"partition": view.partition}
        common = {
            "at_ns": view.at_ns,
            "source": f"b{view.node}",
            "labels": json.dumps(labels),
        }
        metrics = {"metadata_leader": view.leader, "metadata_leader_epoch": view.leader_epoch}
        if view.in_sync >= 0:
            metrics["metadata_in_sync"] = view.in_sync
        for metric, value in metrics.items():
            yield "samples", common | {"metric": metric, "value": float(value)}
