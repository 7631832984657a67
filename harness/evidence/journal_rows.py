"""Rows of evidence from the journal of one client.

The fields of an entry have the names of columns, so that a row consists of the fields of its
entries. The writer ignores fields for which the table has no column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from urteil.harness.evidence import acts
from urteil.harness.evidence import journal as j

Row = dict[str, Any]
TableRow = tuple[str, Row]


class JournalRows:
    """Turns entries into rows, in the order of their completion.

    A send without completion, a commit or acknowledgement without answer and a pass without end
    come last, as unknown or incomplete. Memory holds open operations only.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._client_columns: Row = {}
        self._begin: j.Begin | None = None
        self._end_ns: int | None = None
        self._sends: dict[int, j.Send] = {}
        self._passes: dict[int, j.PassBegin] = {}
        self._reached: dict[int, int] = {}
        self._commits: dict[int, j.Commit] = {}
        self._txns: dict[int, Row] = {}
        self._deliveries: list[Row] = []
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
            j.Delivered: self._on_delivered,
            j.Acknowledge: self._on_acknowledge,
            j.Acknowledged: self._on_acknowledged,
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
            yield "passes", self._pass_row(begun, reached) | {"complete": False}
        for commit in self._commits.values():
            yield from self._commit_rows(commit, None, "info", "no answer")
        yield from self._take_deliveries()
        for txn in self._txns.values():
            yield "txns", txn | {"outcome": "unknown", "error": "no answer"}
        if self._begin is not None:
            yield "clients", self._row(self._begin, begin_ns=self._begin.at_ns, end_ns=end_ns)

    def _row(self, *entries: Struct, **columns: Any) -> Row:
        """A row of the client, the fields of entries, and further columns; later values win."""
        row = dict(self._client_columns)
        for entry in entries:
            row |= asdict(entry)
        row |= columns
        if "topic" in row and self._begin is not None:
            row["topic_id"] = self._begin.topic_ids.get(row["topic"])
        return row

    def _on_access(self, access: j.Access) -> Iterator[TableRow]:
        yield "accesses", self._row(access)

    def _on_right(self, right: j.Right) -> Iterator[TableRow]:
        act = acts.GRANT if right.granted else acts.REVOKE
        after = json.dumps({"error": right.error} if right.error else {})
        yield "admin_ops", self._row(right, act=act, before="{}", after=after)

    def _on_begin(self, begin: j.Begin) -> Iterator[TableRow]:
        self._begin = begin
        self._client_columns = {"client": begin.client, "session": begin.session}
        return iter(())

    def _on_send(self, send: j.Send) -> Iterator[TableRow]:
        self._sends[send.op] = send
        if self.first_sequence is None:
            self.first_sequence = send.op
        self.last_sequence = send.op
        return iter(())

    def _send_row(self, send: j.Send) -> Row:
        begin = self._begin
        return self._row(
            send,
            partition=None,
            partition_intended=send.partition,
            value_id=f"{self._run}/{self._client_columns.get('client')}/{send.op}",
            acks=begin.acks if begin else None,
            idempotent=begin.idempotent if begin else None,
        )

    def _on_completion(self, done: j.Ok | j.Fail | j.Info, outcome: str) -> Iterator[TableRow]:
        send = self._sends.pop(done.op, None)
        if send is None:
            return
        row = self._send_row(send) | asdict(done) | {"outcome": outcome}
        row["attempts"] = done.attempts if done.attempts >= 0 else None
        if done.timestamp_ms is None:
            row["timestamp_ms"] = send.timestamp_ms
        yield "sends", row

    def _on_poll(self, poll: j.Poll) -> Iterator[TableRow]:
        if not poll.slices:
            yield "polls", self._row(poll)
        position = 0
        for part in poll.slices:
            moved = {"position_before": part.before, "position_after": part.after}
            common = self._row(poll, topic=part.topic, partition=part.partition)
            yield "polls", common | moved | {"event": part.event}
            if part.after is not None:
                self._reached[part.pass_] = part.after
            common |= {"pass": part.pass_, "read_ns": poll.complete_ns}
            for got in part.records:
                yield "reads", {**common, "position_in_poll": position, **asdict(got)}
                position += 1

    def _on_pass_begin(self, begun: j.PassBegin) -> Iterator[TableRow]:
        self._passes[begun.pass_] = begun
        return iter(())

    def _on_pass_end(self, ended: j.PassEnd) -> Iterator[TableRow]:
        begun = self._passes.pop(ended.pass_, None)
        if begun is not None:
            arrived = begun.to_offset is None or ended.to_offset >= begun.to_offset
            end = {"end_ns": ended.end_ns, "leader": ended.leader}
            row = self._pass_row(begun, ended.to_offset) | end
            yield "passes", row | {"complete": ended.complete and arrived}

    def _pass_row(self, begun: j.PassBegin, reached: int) -> Row:
        to_offset = reached if begun.to_offset is None else begun.to_offset
        return self._row(begun, to_offset=to_offset) | {"pass": begun.pass_}

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
        for entry in commit.offsets:
            row = self._row(commit, entry, complete_ns=complete_ns, outcome=outcome, error=error)
            row["group"] = self._group(commit.group)
            if commit.deletes:
                place = {name: row[name] for name in ("topic", "topic_id", "partition")}
                act = {"act": acts.DELETE_POSITION, "subject": commit.group, "before": "{}"}
                yield "admin_ops", row | act | {"after": json.dumps(place)}
            else:
                yield "commits", row

    def _group(self, group: str | None = None) -> str | None:
        return group or (self._begin.group if self._begin else None)

    def _on_commit_read(self, read: j.CommitRead) -> Iterator[TableRow]:
        yield "commit_reads", self._row(read, group=self._group(read.group))

    def _on_delivered(self, delivered: j.Delivered) -> Iterator[TableRow]:
        yield from self._take_deliveries()
        self._deliveries = [
            self._row(delivered, part, record)
            for part in delivered.slices
            for record in part.records
        ]

    def _on_acknowledge(self, call: j.Acknowledge) -> Iterator[TableRow]:
        kinds = {(one.topic, one.partition, one.offset): one for one in call.records}
        for row in self._deliveries:
            one = kinds.get((row["topic"], row["partition"], row["offset"]))
            if one is not None:
                row |= {"acknowledgement": one.acknowledgement, "invoke_ns": call.invoke_ns}
                row |= {"outcome": "info", "error": "no answer"}
        return iter(())

    def _on_acknowledged(self, done: j.Acknowledged) -> Iterator[TableRow]:
        results = {(one.topic, one.partition): one for one in done.results}
        for row in self._deliveries:
            one = results.get((row["topic"], row["partition"]))
            if one is not None and row.get("acknowledgement"):
                row |= {"complete_ns": done.complete_ns, "outcome": one.outcome}
                row["error"] = one.error
        yield from self._take_deliveries()

    def _take_deliveries(self) -> Iterator[TableRow]:
        """The rows of the last poll of a share group's member."""
        rows, self._deliveries = self._deliveries, []
        for row in rows:
            yield "deliveries", row

    def _on_assigned(self, assigned: j.Assigned) -> Iterator[TableRow]:
        for topic, partition in assigned.partitions:
            place = {"topic": topic, "partition": partition}
            yield "assignments", self._row(assigned, group=self._group(), **place)

    def _on_answer(self, answer: j.OffsetAnswer) -> Iterator[TableRow]:
        yield "offset_answers", self._row(answer)

    def _on_txn_begin(self, begun: j.TxnBegin) -> Iterator[TableRow]:
        transactional_id = self._begin.transactional_id if self._begin else None
        self._txns[begun.txn] = self._row(begun, transactional_id=transactional_id)
        return iter(())

    def _on_txn_commit(self, commit: j.TxnCommit) -> Iterator[TableRow]:
        if commit.txn in self._txns:
            self._txns[commit.txn]["commit_invoke_ns"] = commit.invoke_ns
        return iter(())

    def _on_txn_end(self, ended: j.TxnEnd) -> Iterator[TableRow]:
        row = self._txns.pop(ended.txn, None)
        if row is not None:
            yield "txns", row | asdict(ended)

    def _on_view(self, view: j.View) -> Iterator[TableRow]:
        known = self._begin.topic_ids if self._begin else {}
        labels = {"topic": view.topic, "topic_id": known.get(view.topic)}
        common = {
            "at_ns": view.at_ns,
            "source": f"b{view.node}",
            "labels": json.dumps(labels | {"partition": view.partition}),
        }
        metrics = {"metadata_leader": view.leader}
        if view.leader_epoch is not None:
            metrics["metadata_leader_epoch"] = view.leader_epoch
        if view.in_sync >= 0:
            metrics["metadata_in_sync"] = view.in_sync
        for metric, value in metrics.items():
            yield "samples", common | {"metric": metric, "value": float(value)}
