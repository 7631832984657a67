"""Wall clocks of brokers and controllers that faults can set. Implements
`chaos.controls.ClockControls`."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError

from urteil.chaos.observations import LabFailure
from urteil.harness.runtimes.false_clocks import FalseClocks
from urteil.harness.stack_dumps import DumpSource, request_dump

TOPIC = "urteil-clocks"
ANSWER_S = 10.0
_DUMPED, _DUMPED_FORM = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "%Y-%m-%d %H:%M:%S"
_DUMPED_WITHIN_S = 0.5


class Clocks:
    """The clocks of all brokers, and the time that each stamps on a record (LogAppendTime). A
    controller with a node of its own stamps no records: its time is that of a stack dump, in whole
    seconds, and is read on this machine only."""

    def __init__(
        self,
        clocks: FalseClocks,
        bootstrap: Callable[[], Sequence[str]],
        brokers: Sequence[str],
        dump_source: Callable[[str], DumpSource],
        file: Path,
    ) -> None:
        """`file` receives the settings of each clock, beginning with that of now, as evidence."""
        self._clocks = clocks
        self._bootstrap = bootstrap
        self._brokers = brokers
        self._dump_source = dump_source
        self._file = file
        self._began_ns = time.monotonic_ns()
        self._noted: set[str] = set()
        self._lock = threading.Lock()
        self._made = False

    def set_offset(self, node: str, *, offset_s: float) -> None:
        if node not in self._noted:
            self._note(node, self._began_ns, 0.0)
            self._noted.add(node)
        self._note(node, time.monotonic_ns(), offset_s)
        self._clocks.set_offset(node, offset_s)

    def _note(self, node: str, at_ns: int, ahead_s: float) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps({"node": node, "at_ns": at_ns, "ahead_s": ahead_s}) + "\n")

    def clock_offset_s(self, node: str) -> float:
        return self._stamped_s(node) if node in self._brokers else self._dumped_s(node)

    def note_start(self, node: str) -> None:
        """A node starts with a true clock."""
        if node in self._noted:
            self._note(node, time.monotonic_ns(), 0.0)

    def precision_s(self, node: str) -> float:
        return 0.0 if node in self._brokers else _DUMPED_WITHIN_S

    def _dumped_s(self, controller: str) -> float:
        source, now_s = self._dump_source(controller), time.time()
        dump = request_dump(source)
        dumped = _DUMPED.search(dump)
        if dumped is None:
            raise LabFailure(f"{controller} reports no time: {dump[:200]}")
        return time.mktime(time.strptime(dumped[0], _DUMPED_FORM)) + _DUMPED_WITHIN_S - now_s

    def _stamped_s(self, node: str) -> float:
        self._make()
        producer = KafkaProducer(
            bootstrap_servers=list(self._bootstrap()), acks=1, max_block_ms=ANSWER_S * 1000
        )
        try:
            partition = list(self._brokers).index(node)
            metadata = producer.send(TOPIC, value=b"now", partition=partition).get(ANSWER_S)
            return float(metadata.timestamp) / 1000 - time.time()
        except KafkaError as error:
            raise LabFailure(f"{node} reports no time: {error}") from error
        finally:
            producer.close(timeout=ANSWER_S)

    def _make(self) -> None:
        """A topic with a partition on every broker, whose records carry the brokers' time."""
        with self._lock:
            if self._made:
                return
            admin = KafkaAdminClient(bootstrap_servers=list(self._bootstrap()))
            places = {number: [int(broker[1:])] for number, broker in enumerate(self._brokers)}
            configs = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "1"}
            try:
                topic = {TOPIC: {"assignments": places, "configs": configs}}
                admin.create_topics(topic, wait_for_metadata=True)
            except TopicAlreadyExistsError:
                pass
            except KafkaError as error:
                raise LabFailure(f"no topic to read brokers' times from: {error}") from error
            finally:
                admin.close()
            self._made = True
