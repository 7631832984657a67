"""How far an application is: what of its input it has not processed yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from urteil.harness.clients.applications.declaration import Context
from urteil.harness.clients.payload import COPY
from urteil.harness.evidence.journal import JournalReader, Ok, Poll

if TYPE_CHECKING:
    from kafka import TopicPartition

PATIENCE_S = 60.0
"""Without progress for this time, what remains counts as never processed."""

TIMEOUT_MS = 10_000


def uncopied_values(context: Context) -> set[str]:
    """The acknowledged records of which no reader has received a copy."""
    acked = {
        value
        for path in context.journals("producer")
        for value in _acknowledged_values(path, context.run)
    }
    return acked - {
        value for path in context.journals("consumer") for value in _copied_values(path)
    }


def _acknowledged_values(path: Path, run: str) -> list[str]:
    entries = JournalReader(path) if path.exists() else ()
    return [f"{run}/{path.stem}/{entry.op}" for entry in entries if isinstance(entry, Ok)]


def _copied_values(path: Path) -> list[str]:
    entries = JournalReader(path) if path.exists() else ()
    return [
        got.value_id.removeprefix(COPY)
        for entry in entries
        if isinstance(entry, Poll)
        for part in entry.slices
        for got in part.records
        if got.value_id is not None and got.value_id.startswith(COPY)
    ]


def uncommitted_offsets(
    context: Context, topics: Iterable[str] = (), group: str = ""
) -> dict[str, int] | str:
    """The records between a group's committed offsets and the last stable offsets of topics, by
    `topic-partition` where there are any; the text of an error if a broker does not answer.

    By default the group is the application's and the topics are its inputs. Topics that the group
    has committed offsets in, such as repartition topics, count as well.
    """
    from kafka.errors import KafkaError

    try:
        committed = _committed_offsets(context, group or context.group)
        named = {*(topics or context.inputs), *(place.topic for place in committed)}
        ends = _stable_ends(context, named)
    except (KafkaError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    lags = {f"{place.topic}-{place.partition}": end - committed.get(place, 0)
            for place, end in ends.items()}  # fmt: skip
    return {place: lag for place, lag in sorted(lags.items()) if lag > 0}


def unread(context: Context, positions: Mapping[tuple[str, int], int]) -> dict[str, int] | str:
    """The records between positions in the inputs, by topic and partition, and the last stable
    offsets, as `uncommitted_offsets` returns them. A partition without a position counts from 0."""
    from kafka.errors import KafkaError

    try:
        ends = _stable_ends(context, context.inputs)
    except (KafkaError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    lags = {
        f"{place.topic}-{place.partition}": end - positions.get((place.topic, place.partition), 0)
        for place, end in ends.items()
    }
    return {place: lag for place, lag in sorted(lags.items()) if lag > 0}


def open_transactions(context: Context, topics: Iterable[str]) -> dict[str, int] | str:
    """The records behind the last stable offset, by topic and partition where there are any; the
    text of an error if a broker does not answer."""
    from kafka.errors import KafkaError

    named = list(topics)
    try:
        stable, ends = (
            _stable_ends(context, named),
            _end_offsets(context, named, "read_uncommitted"),
        )
    except (KafkaError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    lags = {f"{place.topic}-{place.partition}": end - stable[place] for place, end in ends.items()}
    return {place: lag for place, lag in sorted(lags.items()) if lag > 0}


def _committed_offsets(context: Context, group: str) -> dict[TopicPartition, int]:
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(
        bootstrap_servers=list(context.bootstrap), request_timeout_ms=TIMEOUT_MS
    )
    try:
        offsets = admin.list_group_offsets(group)[group]
    finally:
        admin.close()
    return {place: entry.offset for place, entry in offsets.items() if entry.offset >= 0}


def _stable_ends(context: Context, topics: Iterable[str]) -> dict[TopicPartition, int]:
    return _end_offsets(context, topics, "read_committed")


def _end_offsets(
    context: Context, topics: Iterable[str], isolation: str
) -> dict[TopicPartition, int]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=list(context.bootstrap),
        isolation_level=isolation,
        request_timeout_ms=TIMEOUT_MS,
        enable_auto_commit=False,
    )
    try:
        places = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in consumer.partitions_for_topic(topic) or ()
        ]
        return dict(consumer.end_offsets(places)) if places else {}
    finally:
        consumer.close()


def last_logged(pattern: str) -> Callable[[Context, Sequence[str]], str | None]:
    """A function for `Application.leader`: the running process that logged a line with the pattern
    last. Lines begin with a time that sorts as text, such as ISO 8601."""
    expression = re.compile(pattern)

    def find(context: Context, running: Sequence[str]) -> str | None:
        last: dict[str, str] = {}
        for name in running:
            lines = context.log(name).read_text(errors="replace").splitlines()
            matching = [line for line in lines if expression.search(line)]
            if matching:
                last[name] = matching[-1]
        return max(last, key=lambda name: last[name]) if last else None

    return find
