"""The timeline of one record: its send, acknowledgement, leaders, reads and replicas.

It is read from the evidence without a judgement, so it also works for runs that cannot be judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow.dataset as ds

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import RunFacts, load_facts
from urteil.harness.verify.evidence import Row, files, rows

LINGER_NS = 5_000_000_000
"""Elections and faults up to this long after a record's last event are shown, too."""


_OF_RECORDS = ("sends", "reads", "replicas", "deliveries")
"""Tables with rows of single records."""
SHOWN_MESSAGES = 5
"""Messages of one fault and API that are shown; further ones are counted."""
RECORD = "record"
"""The fault that changes nothing."""

PLACE = re.compile(r"(?P<topic>[^/@]+)-(?P<partition>\d{1,9})@(?P<offset>\d{1,18})")
"""A record's place as findings write it, with numbers that fit into a table."""


class SmallTables(NamedTuple):
    """Tables that are read completely."""

    states: list[Row]
    faults: list[Row]
    logs: list[Row]
    link_events: list[Row]


class UnknownRecord(LookupError):
    """No client sent or read the record, and no replica holds it."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a record or of its partition; CLOCK_MONOTONIC in ns."""

    at_ns: int
    kind: str
    text: str


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """The record in one broker's log at the end of the run.

    `offsets` are its offsets there: none, one, or several if it was appended twice. `instead` is
    the other record at its acknowledged offset, if there is one.
    """

    broker: int
    log_start: int
    log_end: int
    offsets: list[int]
    leader_epochs: list[int]
    instead: str | None = None


class Led(msgspec.Struct, frozen=True, kw_only=True):
    """The leader of the record's partition from `at_ns` on, -1 for none, and the ISR."""

    at_ns: int
    leader: int
    leader_epoch: int
    isr: list[int]


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """All evidence about one record. `begin_ns` is the begin of the load.

    `led` begins with the partition's state when the record was sent.
    """

    run: str
    value_id: str
    place: str
    begin_ns: int
    moments: list[Moment]
    replicas: list[Replica]
    led: list[Led] = []


def life_of(run_dir: Path, value_id: str) -> Life:
    """The life of the record `value_id` (RUN/CLIENT/SEQUENCE, or CLIENT/SEQUENCE of this run).

    Raises UnknownRecord when the evidence has no row about it.
    """
    facts = load_facts(run_dir)
    if value_id.count("/") == 1:
        value_id = f"{facts.run}/{value_id}"
    lives = lives_of(run_dir, [value_id], facts)
    if not any(files(run_dir, table) for table in ("sends", "reads", "replicas")):
        raise UnknownRecord(f"{run_dir.name} has no evidence of sends, reads or replicas")
    if not lives:
        raise UnknownRecord(
            f"no record {value_id} in {run_dir.name}: nobody sent or read it and no replica holds "
            f"it; a record is named RUN/CLIENT/SEQUENCE, like {_example(run_dir)}"
        )
    return lives[value_id]


def lives_at(run_dir: Path, place: str) -> list[Life]:
    """The lives of all records that a client saw, or a replica holds, at `place`
    (TOPIC-PARTITION@OFFSET). More than one means a violation.

    Raises UnknownRecord when there is none, with the marker or foreign record at that place.
    """
    match = PLACE.fullmatch(place)
    if match is None:
        raise UnknownRecord(f"{place} is not TOPIC-PARTITION@OFFSET, like urteil-0@108")
    facts = load_facts(run_dir)
    there = (
        ds.field("topic_id").isin(_topic_ids(run_dir, facts, match["topic"]))
        & (ds.field("partition") == int(match["partition"]))
        & (ds.field("offset") == int(match["offset"]))
    )
    acked = _select_rows(run_dir, "sends", there & (ds.field("outcome") == "ok"))
    copies = _select_rows(run_dir, "replicas", there)
    holders = [*acked, *_select_rows(run_dir, "reads", there), *copies]
    value_ids = list(dict.fromkeys(row["value_id"] for row in holders if row["value_id"]))
    if not value_ids:
        raise UnknownRecord(f"no record at {place} in {run_dir.name}: {_unnamed_copies(copies)}")
    return list(lives_of(run_dir, value_ids, facts).values())


def _unnamed_copies(copies: list[Row]) -> str:
    if not copies:
        return "no client saw one there, and no replica holds one there"
    what = {f"a {copy['control']} marker" if copy["control"] else "a stranger's" for copy in copies}
    return f"{' and '.join(sorted(what))} stands there"


def _topic_ids(run_dir: Path, facts: RunFacts, topic: str) -> list[str]:
    """The ids of all topics that had this name. Raises UnknownRecord when none had."""
    named = {(topic.name, topic.topic_id) for topic in facts.topics}
    for row in rows(run_dir, "states"):
        names = str(row["path"]).split("/")
        if row["topic_id"] and names[1:3] == ["brokers", "topics"] and len(names) > 3:
            named.add((names[3], row["topic_id"]))
    if not (ids := sorted(topic_id for name, topic_id in named if name == topic)):
        known = ", ".join(sorted({name for name, _ in named})) or "none"
        raise UnknownRecord(f"no topic {topic} in {run_dir.name}; its topics: {known}")
    return ids


def lives_of(run_dir: Path, value_ids: list[str], facts: RunFacts) -> dict[str, Life]:
    """The lives of records by value_id, with one pass over each large table. Records without
    evidence are missing."""
    tables = {name: _by_record(run_dir, name, value_ids) for name in _OF_RECORDS}
    small = SmallTables(*(rows(run_dir, name) for name in SmallTables._fields))
    lives = {}
    for value_id in value_ids:
        own_rows = {name: tables[name].get(value_id, []) for name in _OF_RECORDS}
        if any(own_rows.values()):
            lives[value_id] = _life(run_dir, facts, value_id, own_rows, small)
    return lives


def _life(
    run_dir: Path,
    facts: RunFacts,
    value_id: str,
    own_rows: dict[str, list[Row]],
    small: SmallTables,
) -> Life:
    sends, copies = own_rows["sends"], own_rows["replicas"]
    first = next(row for rows in own_rows.values() for row in rows)
    topic_id, partition = first["topic_id"], _partition(first)
    record_moments = [
        *_of_sends(sends),
        *_of_reads(own_rows["reads"]),
        *_of_deliveries(own_rows["deliveries"]),
    ]
    begin_ns, end_ns = _span(record_moments, facts.phases[0].begin_ns if facts.phases else 0)
    led = _leaders_in_force(small.states, topic_id, partition, begin_ns, end_ns)
    around = [
        *map(_of_state, led),
        *_of_faults(small.faults, begin_ns, end_ns),
        *_of_messages(small.link_events, begin_ns, end_ns),
    ]
    acked = next((row["offset"] for row in sends if row["outcome"] == "ok"), None)
    return Life(
        run=facts.run,
        value_id=value_id,
        place=f"{first['topic']}-{partition}",
        begin_ns=facts.phases[0].begin_ns if facts.phases else begin_ns,
        moments=sorted([*record_moments, *around], key=lambda moment: moment.at_ns),
        replicas=_replicas(run_dir, small.logs, copies, (topic_id, partition), acked, value_id),
        led=led,
    )


def timeline_lines(life: Life) -> Iterator[str]:
    """The timeline as text; seconds count from the begin of the load."""
    yield f"{life.value_id} in {life.place}"
    for moment in life.moments:
        yield f"{(moment.at_ns - life.begin_ns) / 1e9:+9.3f} s  {moment.text}"
    yield "in the end"
    for replica in life.replicas:
        extent = f"its log covers {replica.log_start} to {replica.log_end}"
        yield f"  broker {replica.broker}: {_copies_text(replica)} ({extent})"
    if not life.replicas:
        yield "  no replica's log is in the evidence"


def _copies_text(replica: Replica) -> str:
    places = " and ".join(
        f"offset {offset} (epoch {epoch})"
        for offset, epoch in zip(replica.offsets, replica.leader_epochs, strict=True)
    )
    held = f"holds it at {places}" if places else "does not hold it"
    return held if replica.instead is None else f"{held}; at its offset stands {replica.instead}"


def _by_record(run_dir: Path, table: str, value_ids: list[str]) -> dict[str, list[Row]]:
    rows_by_value: dict[str, list[Row]] = {}
    for row in _select_rows(run_dir, table, ds.field("value_id").isin(value_ids)):
        rows_by_value.setdefault(row["value_id"], []).append(row)
    return rows_by_value


def _select_rows(run_dir: Path, table: str, condition: Any) -> list[Row]:
    paths = files(run_dir, table)
    if not paths:
        return []
    dataset = ds.dataset([str(part) for part in paths], schema=SCHEMAS[table])
    rows: list[Row] = dataset.to_table(filter=condition).to_pylist()
    return rows


def _example(run_dir: Path) -> str:
    paths = files(run_dir, "sends")
    if not paths:
        return "4af31c02/p1/17"
    dataset = ds.dataset([str(part) for part in paths], schema=SCHEMAS["sends"])
    return str(dataset.head(1, columns=["value_id"]).to_pylist()[0]["value_id"])


def _partition(row: Row) -> int:
    known = row["partition"]
    return int(row.get("partition_intended", -1) if known is None else known)


def _of_sends(sends: list[Row]) -> Iterator[Moment]:
    for row in sends:
        key = "" if row["key"] is None else f" with key {row['key']}"
        what = "deleted by" if row["tombstone"] else "sent by"
        acks = {-1: "all", 0: "0", 1: "1"}.get(row["acks"], "?")
        text = f"{what} {row['client']} (session {row['session']}){key}, acks={acks}"
        yield Moment(at_ns=row["invoke_ns"], kind="sent", text=text)
        if row["complete_ns"] is not None:
            kind, text = _outcome(row)
            yield Moment(at_ns=row["complete_ns"], kind=kind, text=text)


def _outcome(row: Row) -> tuple[str, str]:
    if row["outcome"] == "ok":
        node = "" if row["node"] is None else f" by broker {row['node']}"
        offset = "without an offset" if row["offset"] is None else f"at offset {row['offset']}"
        return "acknowledged", f"acknowledged{node} {offset}"
    if row["outcome"] == "fail":
        return "failed", f"failed for certain: {row['error']}"
    return "unknown", f"its fate is unknown to the client: {row['error']}"


def _of_reads(reads: list[Row]) -> Iterator[Moment]:
    """The first read of each client, with the number of its reads."""
    by_client: dict[tuple[str, int], list[Row]] = {}
    for row in reads:
        by_client.setdefault((row["client"], row["offset"]), []).append(row)
    for (client, offset), client_reads in by_client.items():
        first = min(client_reads, key=lambda row: int(row["read_ns"]))
        epoch = "" if first["leader_epoch"] is None else f" (epoch {first['leader_epoch']})"
        again = "" if len(client_reads) == 1 else f", {len(client_reads)} times in all"
        damaged = "" if all(row["intact"] for row in client_reads) else ", DAMAGED"
        text = f"read by {client} at offset {offset}{epoch}{again}{damaged}"
        yield Moment(at_ns=first["read_ns"], kind="read", text=text)


def _of_deliveries(deliveries: list[Row]) -> Iterator[Moment]:
    """Each delivery to a member of a share group, and its acknowledgement."""
    for row in deliveries:
        turn = "" if row["delivery_count"] is None else f", delivery {row['delivery_count']}"
        text = f"read by {row['client']} at offset {row['offset']}{turn} of {row['group']}"
        yield Moment(at_ns=row["read_ns"], kind="read", text=text)
        if row["acknowledgement"] is not None:
            at_ns = row["invoke_ns"] if row["complete_ns"] is None else row["complete_ns"]
            answer = "acknowledged" if row["outcome"] == "ok" else _outcome(row)[1]
            text = f"{row['client']} answers {row['acknowledgement']}: {answer}"
            yield Moment(at_ns=at_ns, kind="answered", text=text)


def _span(record_moments: list[Moment], otherwise_ns: int) -> tuple[int, int]:
    times = [moment.at_ns for moment in record_moments] or [otherwise_ns]
    return min(times), max(times) + LINGER_NS


def _leaders_in_force(
    states: list[Row], topic_id: str, partition: int, begin_ns: int, end_ns: int
) -> list[Led]:
    """The partition's state when the record was sent, and the states until its last event."""
    partition_states = [
        Led(
            at_ns=row["at_ns"],
            leader=-1 if row["leader"] is None else row["leader"],
            leader_epoch=row["leader_epoch"],
            isr=json.loads(row["isr"] or "[]"),
        )
        for row in sorted(states, key=lambda row: int(row["zxid"]))
        if row["topic_id"] == topic_id
        and row["partition"] == partition
        and row["leader_epoch"] is not None
    ]
    earlier = [state for state in partition_states if state.at_ns <= begin_ns][-1:]
    return [*earlier, *(state for state in partition_states if begin_ns < state.at_ns <= end_ns)]


def _of_state(state: Led) -> Moment:
    leader = "no broker leads" if state.leader == -1 else f"broker {state.leader} leads"
    isr = ", ".join(map(str, state.isr)) or "nobody"
    text = f"{leader} in epoch {state.leader_epoch}, in sync: {isr}"
    return Moment(at_ns=state.at_ns, kind="state", text=text)


def _of_faults(faults: list[Row], begin_ns: int, end_ns: int) -> Iterator[Moment]:
    for row in faults:
        healed_ns = row["healed_ns"] or row["end_ns"] or end_ns
        if not row["acted"] or row["begin_ns"] > end_ns or healed_ns < begin_ns:
            continue
        name = f"{row['fault']} on {', '.join(json.loads(row['targets'] or '[]'))}"
        yield Moment(at_ns=row["begin_ns"], kind="fault", text=f"{name} begins")
        yield Moment(at_ns=healed_ns, kind="healed", text=f"{name} is healed")


def _of_messages(link_events: list[Row], begin_ns: int, end_ns: int) -> Iterator[Moment]:
    """The requests and answers on which faults acted: the first of each fault and API."""
    by_kind: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(link_events, key=lambda row: int(row["at_ns"])):
        if begin_ns <= row["at_ns"] <= end_ns and row["act"] != RECORD:
            kind = row["fault"], row["act"], row["api"], row["direction"]
            by_kind.setdefault(kind, []).append(row)
    for (fault, act, api, direction), hits in by_kind.items():
        for row in hits[:SHOWN_MESSAGES]:
            client = f" of {row['client_id']}" if row["client_id"] else ""
            text = (
                f"{fault}: {act} the {direction} {api} v{row['version']}, "
                f"id {row['correlation_id']}{client}, on {row['link']}"
            )
            yield Moment(at_ns=row["at_ns"], kind="message", text=text)
        if further := hits[SHOWN_MESSAGES:]:
            text = f"{fault}: {act} {len(further)} more, {direction} {api}"
            yield Moment(at_ns=further[0]["at_ns"], kind="message", text=text)


def _replicas(
    run_dir: Path,
    logs: list[Row],
    copies: list[Row],
    place: tuple[str, int],
    acked: int | None,
    value_id: str,
) -> list[Replica]:
    topic_id, partition = place
    there = (ds.field("topic_id") == topic_id) & (ds.field("partition") == partition)
    others = (
        []
        if acked is None
        else _select_rows(run_dir, "replicas", there & (ds.field("offset") == acked))
    )
    instead = {
        row["broker"]: row["value_id"] or f"a {row['control']} marker"
        for row in others
        if row["value_id"] != value_id
    }
    replicas = []
    for log in logs:
        if (log["topic_id"], log["partition"]) != (topic_id, partition):
            continue
        held = [row for row in copies if row["broker"] == log["broker"]]
        replicas.append(
            Replica(
                broker=log["broker"],
                log_start=log["log_start"],
                log_end=log["log_end"],
                offsets=[row["offset"] for row in held],
                leader_epochs=[row["leader_epoch"] for row in held],
                instead=instead.get(log["broker"]),
            )
        )
    return sorted(replicas, key=lambda replica: replica.broker)
