"""Producers of a generated history: their sends, the outcomes and the answers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from tests.harness.verify.histories.log import MS, Log, Row, wall_ms

GIVES_UP_NS = 900 * MS
REFUSED = "MESSAGE_TOO_LARGE"


@dataclass(slots=True, kw_only=True)
class Producer:
    """One client through all its sessions; `name` is unique in the run."""

    run: str
    name: str
    random: Random
    acks: int = -1
    idempotent: bool = True
    transactional: bool = False
    deletes: bool = False
    keys: int = 8
    producer_id: int = -1
    producer_epoch: int = 0
    session: int = 0
    op: int = 0
    killed: bool = False
    last_invoke_ns: int = 0
    txn: int | None = None
    sends: list[Row] = field(default_factory=list)
    txns: list[Row] = field(default_factory=list)
    open_in: dict[int, Log] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def invoke(self, log: Log, at_ns: int, count: int) -> list[Row]:
        """Invocations just before `at_ns`, each a row of `sends` without an outcome."""
        rows = []
        for _ in range(count):
            earliest = max(self.last_invoke_ns, at_ns - 40 * MS)
            invoke_ns = self.last_invoke_ns = self.random.randint(min(earliest, at_ns), at_ns)
            rows.append(
                log.place
                | {"client": self.name, "session": self.session, "op": self.op}
                | {"value_id": f"{self.run}/{self.name}/{self.op}", "invoke_ns": invoke_ns}
                | {"complete_ns": None, "outcome": "info", "error": "KafkaTimeoutError"}
                | {"attempts": 1, "ambiguous": False, "offset": None, "node": None}
                | {"partition_intended": log.partition, "acks": self.acks, "txn": self.txn}
                | {"key": f"k{self.random.randrange(self.keys)}", "timestamp_ms": wall_ms(at_ns)}
                | {"idempotent": self.idempotent, "tombstone": self._deletes()}
            )
            self.op += 1
        self.sends += rows
        return rows

    def _deletes(self) -> bool:
        return self.deletes and self.random.random() < 0.2

    def append(self, log: Log, rows: list[Row], at_ns: int, sequence: int | None = None) -> int:
        """The leader appends a batch of `rows`; answers its base offset."""
        first = self.sequences[log.partition] if sequence is None else sequence
        base = log.append(
            [
                {"value_id": row["value_id"], "key": row["key"], "tombstone": row["tombstone"]}
                | {"timestamp_ms": row["timestamp_ms"], "transactional": self.transactional}
                | self._numbered(first + n)
                for n, row in enumerate(rows)
            ],
            at_ns,
        )
        if sequence is None:
            self.sequences[log.partition] += len(rows)
        if self.transactional:
            self.open_in[log.partition] = log
        return base

    def _numbered(self, sequence: int) -> Row:
        if not self.idempotent:
            return {}
        epoch = self.producer_epoch
        return {"producer_id": self.producer_id, "producer_epoch": epoch, "sequence": sequence}

    def acknowledge(self, log: Log, rows: list[Row], at_ns: int, base: int | None) -> None:
        for n, row in enumerate(rows):
            offset = None if base is None else base + n
            row |= {"complete_ns": at_ns, "outcome": "ok", "error": None, "offset": offset}
            row |= {"node": log.leader, "producer_id": self.producer_id if self.idempotent else -1}

    def give_up(self, rows: list[Row], at_ns: int) -> None:
        """The outcome stays unknown; an idempotent producer continues with a new epoch."""
        for row in rows:
            row |= {"complete_ns": at_ns, "ambiguous": True}
        self.raise_epoch()

    def raise_epoch(self) -> None:
        self.producer_epoch += 1
        self.sequences.clear()

    def refuse(self, rows: list[Row], at_ns: int, error: str = REFUSED) -> None:
        """Certainly not appended; the sequence was not used up."""
        for row in rows:
            row |= {"complete_ns": at_ns, "outcome": "fail", "error": error}

    def restart(self, at_ns: int, producer_id: int) -> None:
        """Killed, and a new process in its place; the open transaction is aborted for it."""
        self.killed = True
        self.session += 1
        if self.transactional:
            self.producer_epoch += 1
            self._mark("abort", at_ns)
            if self.txn is not None:
                self.txns[-1] |= {"outcome": "unknown"}
            self.txn = None
        else:
            self.producer_id, self.producer_epoch = producer_id, -1
        self.raise_epoch()

    # Transactions

    def begin(self, at_ns: int) -> None:
        self.txn = len(self.txns)
        self.txns.append(
            {"client": self.name, "session": self.session, "txn": self.txn}
            | {"transactional_id": self.name, "producer_id": self.producer_id}
            | {"epoch": self.producer_epoch, "begin_ns": at_ns, "outcome": "unknown"}
        )

    def end(self, at_ns: int, *, commit: bool) -> None:
        """Markers in every partition of the transaction."""
        if commit:
            self.txns[-1]["commit_invoke_ns"] = at_ns - MS
        self._mark("commit" if commit else "abort", at_ns)
        self.txns[-1] |= {"end_ns": at_ns + MS, "outcome": "committed" if commit else "aborted"}
        self.txn = None

    def _mark(self, control: str, at_ns: int) -> None:
        for log in self.open_in.values():
            log.append(
                [
                    {"value_id": None, "key": None, "control": control, "transactional": True}
                    | {"producer_id": self.producer_id, "producer_epoch": self.producer_epoch}
                    | {"timestamp_ms": wall_ms(at_ns)}
                ],
                at_ns,
            )
            log.commit()
        self.open_in.clear()
