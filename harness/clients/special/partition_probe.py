"""A probe of partitions: reads leaders and end offsets from every broker, all the time.

    python -m urteil.harness.clients.special.partition_probe SPEC.json

For the partitions that a broker leads it also reads the log start offset, the record with the
largest timestamp, the end of an older leader epoch, the error of a fetch before the log start, and
a new producer id, as far as the broker serves these requests. Each broker has a thread; a broker
that does not respond gets the requests again.
"""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from urteil.chaos.capabilities import FETCH_EPOCHS, IDEMPOTENCE, LARGEST_TIMESTAMP, Versions
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
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
    METADATA,
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
from urteil.harness.protocol.served_versions import highest_version, read_served_versions

EVERY_S = 0.5
COMMITTED_SINCE = 2
"""The first version of ListOffsets with an isolation."""


class ProbeOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    probe: Annotated[
        bool,
        Meta(description="Whether the client `probe` reads leaders and offsets from all brokers."),
    ] = True


class BrokerProbe:
    """Probes one broker."""

    def __init__(self, spec: ClientSpec, address: str, journal: JournalWriter) -> None:
        self._address = address
        self._journal = journal
        self._timeout_s = spec.workload.request_timeout_ms / 1000
        self._slots = spec.partitions()
        self._stable = spec.isolation == "read_committed"
        self._random = random.Random(f"{spec.seed}/{address}")
        self._since_ms = time.time_ns() // 1_000_000
        self._connection: Connection | None = None
        self._versions: Versions = {}
        self._number = 0
        self._led: dict[Slot, int] = {}

    def run_round(self) -> None:
        """One round. A failed connection is opened again in the next round."""
        try:
            if self._connection is None:
                self._connection = Connection(self._address, self._timeout_s)
                self._versions = read_served_versions(self._connection)
            node = self._metadata(self._connection)
            if node is not None:
                self._end_offsets(self._connection, node, LATEST)
                if self._stable and self._version(LIST_OFFSETS) >= COMMITTED_SINCE:
                    self._end_offsets(self._connection, node, LATEST, committed=True)
                now_ms = time.time_ns() // 1_000_000
                self._end_offsets(
                    self._connection, node, self._random.randint(self._since_ms, now_ms)
                )
                if LARGEST_TIMESTAMP.is_served(self._versions):
                    self._largest_timestamp(self._connection, node)
                if FETCH_EPOCHS.is_served(self._versions):
                    self._old_epochs(self._connection, node)
                    self._log_starts(self._connection, node)
                if IDEMPOTENCE.is_served(self._versions):
                    self._producer_id(self._connection, node)
        except (OSError, struct.error, UnicodeDecodeError):
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _version(self, api: tuple[int, int]) -> int:
        return highest_version(api, self._versions)[1]

    def _metadata(self, connection: Connection) -> int | None:
        self._number += 1
        topics = sorted({topic for topic, _ in self._slots})
        version = self._version(METADATA)
        frame = connection.call(metadata_request(self._number, topics, version))
        brokers, result = read_metadata(frame, version)
        node = brokers.get(self._address)
        if node is not None:
            at_ns = time.monotonic_ns()
            self._led = {
                (topic, partition): -1 if epoch is None else epoch
                for topic, partition, leader, epoch, _ in result
                if leader == node
            }
            known = {(topic_partition[0], topic_partition[1]) for topic_partition in result}
            unknown = [(*slot, -1, -1, -1) for slot in self._slots if slot not in known]
            for view in [*result, *unknown]:
                self._journal.write(View(at_ns, node, *view))
        return node

    def _end_offsets(
        self, connection: Connection, node: int, timestamp_ms: int, *, committed: bool = False
    ) -> None:
        end = "stable" if committed else "latest"
        query = end if timestamp_ms == LATEST else f"time:{timestamp_ms}"
        self._list_offsets(connection, node, query, self._slots, timestamp_ms, committed=committed)

    def _list_offsets(
        self,
        connection: Connection,
        node: int,
        query: str,
        slots: Sequence[Slot],
        timestamp_ms: int,
        *,
        committed: bool = False,
    ) -> list[tuple[str, int, int, int, int, int]]:
        """Send ListOffsets and journal the response as the answer to `query`."""
        self._number += 1
        version, invoke_ns = self._version(LIST_OFFSETS), time.monotonic_ns()
        request = list_offsets_request(
            self._number, slots, timestamp_ms, committed=committed, version=version
        )
        frame = connection.call(request)
        complete_ns = time.monotonic_ns()
        result = read_list_offsets(frame, version)
        self._note_offsets(invoke_ns, complete_ns, query, node, version, result)
        return result

    def _largest_timestamp(self, connection: Connection, node: int) -> None:
        """The record with the largest timestamp in the partitions that this broker leads."""
        if not self._led:
            return
        self._number += 1
        invoke_ns = time.monotonic_ns()
        frame = connection.call(largest_timestamp_request(self._number, sorted(self._led)))
        complete_ns = time.monotonic_ns()
        self._note_offsets(
            invoke_ns, complete_ns, "max", node, LIST_NEWEST[1], read_largest_timestamp(frame)
        )

    def _note_offsets(
        self,
        invoke_ns: int,
        complete_ns: int,
        query: str,
        node: int,
        version: int,
        offsets: Sequence[tuple[str, int, int, int, int, int]],
    ) -> None:
        for topic, partition, error, timestamp_ms, offset, epoch in offsets:
            self._journal.write(
                OffsetAnswer(invoke_ns, complete_ns, query, topic, partition, offset, node,
                             _name(error), version, epoch, timestamp_ms)
            )  # fmt: skip

    def _old_epochs(self, connection: Connection, node: int) -> None:
        """The end of a former epoch in the partitions that this broker leads."""
        for slot, current in self._led.items():
            if current < 1:
                continue
            self._number += 1
            old_epoch, invoke_ns = self._random.randrange(current), time.monotonic_ns()
            frame = connection.call(epoch_end_request(self._number, slot, current, old_epoch))
            error, epoch, offset = read_epoch_end(frame)
            self._journal.write(
                OffsetAnswer(invoke_ns, time.monotonic_ns(), f"epoch:{old_epoch} in {current}",
                             *slot, offset, node, _name(error), EPOCH_END[1], epoch)
            )  # fmt: skip

    def _log_starts(self, connection: Connection, node: int) -> None:
        """The log start offset of a partition, and the error of a fetch before it."""
        if not self._led:
            return
        for topic, p, error, _, start, _ in self._list_offsets(
            connection, node, "earliest", sorted(self._led), EARLIEST
        ):
            if error or start < 1:
                continue
            self._number += 1
            slot, invoke_ns = (topic, p), time.monotonic_ns()
            current = self._led[slot]
            frame = connection.call(fetch_request(self._number, slot, current, start - 1))
            error_name = _name(read_fetch_error(frame))
            self._journal.write(
                OffsetAnswer(invoke_ns, time.monotonic_ns(), f"before:{start}", topic, p, start - 1,
                             node, error_name, FETCH[1], current)
            )  # fmt: skip

    def _producer_id(self, connection: Connection, node: int) -> None:
        """A new producer id, which no other producer has or gets."""
        self._number += 1
        invoke_ns = time.monotonic_ns()
        error, result = read_producer_id(connection.call(producer_id_request(self._number)))
        self._journal.write(
            OffsetAnswer(invoke_ns, time.monotonic_ns(), "producer", *self._slots[0], result, node,
                         _name(error), INIT_PRODUCER_ID[1])
        )  # fmt: skip


def _name(error: int) -> str | None:
    return ERRORS.get(error, str(error)) if error else None


def probe(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Probe all brokers until the stop is requested."""
    over = threading.Event()

    def run(broker: BrokerProbe) -> None:
        while not over.is_set():
            broker.run_round()
            over.wait(EVERY_S)
        broker.close()

    probes = [BrokerProbe(spec, address, journal) for address in spec.bootstrap]
    threads = [threading.Thread(target=run, args=(broker,), daemon=True) for broker in probes]
    for thread in threads:
        thread.start()
    stop.wait_until_set()
    over.set()
    for thread in threads:
        thread.join(spec.workload.request_timeout_ms / 1000 + 1)


KIND = ClientKind(
    name="probe",
    about="Reads leaders, offsets, epochs and producer ids from every broker, all the time.",
    stage=Stage.OBSERVATION,
    judged_by=(
        "latest_went_back",
        "end_below_ack",
        "disagreement",
        "epoch_lineage",
        "time_index_wrong",
    ),
    prefix="probe",
    is_single=True,
    count=lambda scenario: int(ProbeOptions.of(scenario.workload).probe),
    work=probe,
    options=(ProbeOptions,),
)

if __name__ == "__main__":
    run_client(KIND)
