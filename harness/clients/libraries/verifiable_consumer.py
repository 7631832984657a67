"""A group member that is Kafka's VerifiableConsumer, with the Java client.

The tool polls, reports every record, commits the poll and reports the commit. It does not report
generations, member ids, epochs or timestamps.
"""

from __future__ import annotations

import time
from collections import defaultdict

from urteil.harness.clients.libraries.unreported_attempts import POSSIBLY_REPEATED
from urteil.harness.clients.libraries.verifiable_tool import (
    Tool,
    ToolMessage,
    connection_config,
    monotonic_ns,
    topic_of,
)
from urteil.harness.clients.options import FETCH_MAX_WAIT_MS, GroupOptions, MembershipOptions
from urteil.harness.clients.payload import decode
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import (
    Assigned,
    Commit,
    CommitEntry,
    Committed,
    Got,
    JournalWriter,
    Poll,
    Slice,
)

CLOSE_S = 10.0
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
CHANGES = {"partitions_assigned": "assigned", "partitions_revoked": "revoked"}
Slot = tuple[str, int]


def consumer_config(spec: ClientSpec) -> dict[str, object]:
    """The settings of `spec.consumer_config` by Apache Kafka's names."""
    options = MembershipOptions.of(spec.workload)
    return connection_config(spec) | {
        "isolation.level": spec.isolation,
        "fetch.max.wait.ms": FETCH_MAX_WAIT_MS,
        "heartbeat.interval.ms": options.heartbeat_interval_ms,
        "max.poll.interval.ms": options.max_poll_interval_ms,
    }


class VerifiableConsumer:
    """Journals the reports of the tool."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        options = MembershipOptions.of(spec.workload)
        if GroupOptions.of(spec.workload).commit == "before":
            raise ValueError("client verifiable commits after it has processed, never before")
        self._run = spec.run
        self._journal = journal
        self._position: dict[Slot, int] = {}
        self._event: dict[Slot, str] = {}
        self._records: dict[Slot, list[Got]] = defaultdict(list)
        self._pass = self._polls = self._commits = 0
        topic, _ = topic_of(spec)
        self._tool = Tool(
            spec,
            "VerifiableConsumer",
            [
                "--topic", topic, "--verbose",
                "--group-id", spec.workload.group, "--reset-policy", "earliest",
                "--session-timeout", str(options.session_timeout_ms),
                "--assignment-strategy", ASSIGNORS[options.assignor],
            ],
            consumer_config(spec),
        )  # fmt: skip

    def step(self, stop: Stop) -> None:
        """Process the messages of the tool. ToolExited if it exited."""
        self._process_messages()
        self._tool.check(stop)

    def close(self) -> None:
        """Leave the group."""
        self._tool.end(self._process_messages, deadline_s=CLOSE_S)

    def _process_messages(self) -> None:
        for message in self._tool.messages():
            self._process(message)

    def _process(self, message: ToolMessage) -> None:
        name = message["name"]
        if name in CHANGES:
            self._note_change(CHANGES[name], sorted(map(_slot, message["partitions"])))
        elif name == "record_data":
            self._records[_slot(message)].append(self._entry(message))
        elif name == "records_consumed" and self._records:
            self._note_poll(message)
        elif name == "offsets_committed":
            error = None if message["success"] else message.get("error", "")
            outcome = "ok" if message["success"] else "info"
            self._journal.write(
                Committed(self._commits, time.monotonic_ns(), outcome, error or POSSIBLY_REPEATED)
            )

    def _entry(self, message: ToolMessage) -> Got:
        key, value = (
            None if field is None else field.encode()
            for field in (message["key"], message["value"])
        )
        payload = decode(self._run, value, key)
        return Got(message["offset"], message["key"], payload.value_id, payload.intact, None, None)

    def _note_change(self, event: str, slots: list[Slot]) -> None:
        self._journal.write(Assigned(time.monotonic_ns(), event, None, None, slots))
        self._pass += event == "assigned"
        for slot in slots:
            self._position.pop(slot, None)
            if event == "assigned":
                self._event[slot] = "rebalance"

    def _note_poll(self, message: ToolMessage) -> None:
        """Journal the poll, and the commit that the tool now sends for it."""
        self._polls += 1
        at_ns = monotonic_ns(message)
        slices = [self._slice(slot, records) for slot, records in self._records.items()]
        self._records.clear()
        self._journal.write(Poll(self._polls, at_ns, time.monotonic_ns(), "ok", None, None, slices))
        self._commits += 1
        entries = [CommitEntry(s.topic, s.partition, s.after or 0, s.after or 0) for s in slices]
        self._journal.write(Commit(self._commits, at_ns, None, None, entries))

    def _slice(self, slot: Slot, records: list[Got]) -> Slice:
        before = self._position.get(slot)
        after = self._position[slot] = records[-1].offset + 1
        return Slice(*slot, self._pass, before, after, self._event.pop(slot, None), records)


def _slot(message: ToolMessage) -> Slot:
    return message["topic"], message["partition"]


def consume_in_group(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Let the tool poll until the stop is requested."""
    member = VerifiableConsumer(spec, journal)
    while not stop.is_set():
        member.step(stop)
    member.close()
