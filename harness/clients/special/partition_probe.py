"""Asks every broker, all the time, who leads and where the partitions end.

    python -m urteil.harness.clients.special.partition_probe SPEC.json

Beside that: where the partitions that a broker leads begin, which record of them has the largest
time, where an older epoch ended, what lies before the begin, which must be refused, and which id
another producer would have. One thread a broker; a broker that does not answer is asked again.
"""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Sequence

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.evidence.journal import JournalWriter, OffsetAnswer, View
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.metadata_requests import (
    EARLIEST,
    EPOCH_END,
    ERRORS,
    FETCH,
    INIT_PRODUCER_ID,
    LATEST,
    LIST_NEWEST,
    LIST_OFFSETS,
    Slot,
    epoch_end_request,
    fetch_request,
    largest_timestamp_request,
    list_offsets_request,
    metadata_request,
    producer_id_request,
    read_epoch_end,
    read_fetch_error,
    read_largest_timestamp,
    read_list_offsets,
    read_metadata,
    read_producer_id,
)

EVERY_S = 0.5


class Asker:
    """Asks one broker."""

    def __init__(self, spec: ClientSpec, address: str, journal: JournalWriter) -> None:
        self._address = address
        self._journal = journal
        self._timeout_s = spec.workload.request_timeout_ms / 1000
        self._slots = spec.partitions()
        self._stable = spec.isolation == "read_committed"
        self._random = random.Random(f"{spec.seed}/{address}")
        self._since_ms = time.time_ns() // 1_000_000
        self._wire: Connection | None = None
        self._number = 0
        self._led: dict[Slot, int] = {}

    def ask(self) -> None:
        """One round; a connection that failed is opened anew in the next."""
        try:
            self._wire = self._wire or Connection(self._address, self._timeout_s)
            node = self._views(self._wire)
            if node is not None:
                self._ends(self._wire, node, LATEST)
                if self._stable:
                    self._ends(self._wire, node, LATEST, committed=True)
                now_ms = time.time_ns() // 1_000_000
                self._ends(self._wire, node, self._random.randint(self._since_ms, now_ms))
                self._newest(self._wire, node)
                self._old_epochs(self._wire, node)
                self._begins(self._wire, node)
                self._producer_id(self._wire, node)
        except (OSError, struct.error, UnicodeDecodeError):
            self.close()

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _views(self, wire: Connection) -> int | None:
        self._number += 1
        topics = sorted({topic for topic, _ in self._slots})
        brokers, found = read_metadata(wire.call(metadata_request(self._number, topics)))
        node = brokers.get(self._address)
        if node is not None:
            at_ns = time.monotonic_ns()
            self._led = {(one[0], one[1]): one[3] for one in found if one[2] == node}
            known = {(one[0], one[1]) for one in found}
            unknown = [(*slot, -1, -1, -1) for slot in self._slots if slot not in known]
            for told in [*found, *unknown]:
                self._journal.write(View(at_ns, node, *told))
        return node

    def _ends(self, wire: Connection, node: int, asked_ms: int, *, committed: bool = False) -> None:
        end = "stable" if committed else "latest"
        query = end if asked_ms == LATEST else f"time:{asked_ms}"
        self._list(wire, node, query, self._slots, asked_ms, committed=committed)

    def _list(
        self,
        wire: Connection,
        node: int,
        query: str,
        slots: Sequence[Slot],
        asked_ms: int,
        *,
        committed: bool = False,
    ) -> list[tuple[str, int, int, int, int, int]]:
        """ListOffsets: what was told is journaled as the answer to `query`."""
        self._number += 1
        invoke_ns = time.monotonic_ns()
        frame = wire.call(list_offsets_request(self._number, slots, asked_ms, committed=committed))
        complete_ns = time.monotonic_ns()
        found = read_list_offsets(frame)
        self._told(invoke_ns, complete_ns, query, node, LIST_OFFSETS[1], found)
        return found

    def _newest(self, wire: Connection, node: int) -> None:
        """Which record has the largest time, of what this broker leads."""
        if not self._led:
            return
        self._number += 1
        invoke_ns = time.monotonic_ns()
        frame = wire.call(largest_timestamp_request(self._number, sorted(self._led)))
        complete_ns = time.monotonic_ns()
        self._told(
            invoke_ns, complete_ns, "max", node, LIST_NEWEST[1], read_largest_timestamp(frame)
        )

    def _told(
        self,
        invoke_ns: int,
        complete_ns: int,
        query: str,
        node: int,
        version: int,
        found: Sequence[tuple[str, int, int, int, int, int]],
    ) -> None:
        for topic, partition, error, timestamp_ms, offset, epoch in found:
            self._journal.write(
                OffsetAnswer(invoke_ns, complete_ns, query, topic, partition, offset, node,
                             _name(error), version, epoch, timestamp_ms)
            )  # fmt: skip

    def _old_epochs(self, wire: Connection, node: int) -> None:
        """Where an epoch ended that is over, of what this broker leads."""
        for slot, current in self._led.items():
            if current < 1:
                continue
            self._number += 1
            asked, invoke_ns = self._random.randrange(current), time.monotonic_ns()
            frame = wire.call(epoch_end_request(self._number, slot, current, asked))
            error, epoch, offset = read_epoch_end(frame)
            self._journal.write(
                OffsetAnswer(invoke_ns, time.monotonic_ns(), f"epoch:{asked} in {current}", *slot,
                             offset, node, _name(error), EPOCH_END[1], epoch)
            )  # fmt: skip

    def _begins(self, wire: Connection, node: int) -> None:
        """Where a partition begins, and that nothing is there before."""
        if not self._led:
            return
        for topic, p, error, _, start, _ in self._list(
            wire, node, "earliest", sorted(self._led), EARLIEST
        ):
            if error or start < 1:
                continue
            self._number += 1
            slot, invoke_ns = (topic, p), time.monotonic_ns()
            current = self._led[slot]
            frame = wire.call(fetch_request(self._number, slot, current, start - 1))
            refused = _name(read_fetch_error(frame))
            self._journal.write(
                OffsetAnswer(invoke_ns, time.monotonic_ns(), f"before:{start}", topic, p, start - 1,
                             node, refused, FETCH[1], current)
            )  # fmt: skip

    def _producer_id(self, wire: Connection, node: int) -> None:
        """Another producer's id, which nobody else has or gets."""
        self._number += 1
        invoke_ns = time.monotonic_ns()
        error, found = read_producer_id(wire.call(producer_id_request(self._number)))
        self._journal.write(
            OffsetAnswer(invoke_ns, time.monotonic_ns(), "producer", *self._slots[0], found, node,
                         _name(error), INIT_PRODUCER_ID[1])
        )  # fmt: skip


def _name(error: int) -> str | None:
    return ERRORS.get(error, str(error)) if error else None


def probe(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Ask all brokers until the end."""
    over = threading.Event()

    def run(asker: Asker) -> None:
        while not over.is_set():
            asker.ask()
            over.wait(EVERY_S)
        asker.close()

    askers = [Asker(spec, address, journal) for address in spec.bootstrap]
    threads = [threading.Thread(target=run, args=(asker,), daemon=True) for asker in askers]
    for thread in threads:
        thread.start()
    while not stop.asked():
        stop.wait(0.2)
    over.set()
    for thread in threads:
        thread.join(spec.workload.request_timeout_ms / 1000 + 1)


if __name__ == "__main__":
    run_client(probe)
