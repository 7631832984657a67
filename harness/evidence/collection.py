"""Collection: writes the evidence of a run from journals, disks, ZooKeeper's log and faults."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from urteil.chaos.link_rules import LINK_EVENTS
from urteil.chaos.topology import EAST, WEST
from urteil.harness import host_clocks
from urteil.harness.evidence import outputs
from urteil.harness.evidence.acts import KILL
from urteil.harness.evidence.collected import KEPT, Collected, cluster_folder
from urteil.harness.evidence.journal import (
    ADMIN_ACTS,
    CLIENT_ACTS,
    Begin,
    JournalReader,
)
from urteil.harness.evidence.journal_rows import JournalRows, Row
from urteil.harness.evidence.readers.deleted_files import read_deleted_files
from urteil.harness.evidence.readers.metadata_states import MetadataStates
from urteil.harness.evidence.readers.replica_logs import find_logs, read_log
from urteil.harness.evidence.readers.zookeeper_log import (
    StateRows,
)
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.evidence.state_collection import collect_states
from urteil.harness.evidence.table_writer import Evidence, remove_parts, write_empty_parts
from urteil.harness.scenario import TopicFact, load_facts

DISK = re.compile(r"disk\d+")
_BROKER = re.compile(r"b(\d+)")


def collect(run_dir: Path) -> Collected:
    """Write `evidence/` from `journal/`, `faults.jsonl` and the stopped nodes' `nodes/*/data`.

    `run.json` names the run and its topics. The folder `west/` has the nodes of a second cluster:
    of it, evidence shows the run's topics. Repeatable: parts of an earlier collection are
    replaced. Call it once all clients, brokers and ZooKeeper servers have ended. Missing or damaged
    sources are recorded in the manifest and never raise. Without any source, existing evidence
    stays.
    """
    facts = load_facts(run_dir)
    run = facts.run
    collected = Collected()
    if not any((run_dir / source).is_dir() for source in ("journal", "nodes")):
        collected.problems.append("there is neither journal/ nor nodes/ to collect evidence from")
        write_empty_parts(run_dir)
        return collected
    remove_parts(run_dir, KEPT)
    killed = _client_acts(run_dir, run, collected)
    offset_ns = _journals(run_dir, run, collected, killed)
    add_file = partial(_add_file, run_dir, run, collected)
    add_file("faults.jsonl", "faults", part="faults")
    add_file(LINK_EVENTS, "link_events", part="link_events")
    _host_samples(run_dir, run, collected)
    add_file(ADMIN_ACTS, "admin_ops", part="admin_ops")
    add_file(outputs.FILE, "outputs", part="application", kind="outputs")
    at_ns = max((phase.end_ns for phase in facts.phases), default=0)
    for place in (EAST, WEST) if (run_dir / WEST).is_dir() else (EAST,):
        topics = [topic for topic in facts.topics if topic.cluster == place]
        states = collect_states(run_dir, place, facts, offset_ns, collected)
        _replicas(run_dir, place, topics, run, states, collected, at_ns)
    collected.count_kept_parts(run_dir)
    _manifest(run_dir, run, collected)
    write_empty_parts(run_dir)
    return collected


def _client_acts(run_dir: Path, run: str, collected: Collected) -> frozenset[str]:
    """The lab's acts on its clients, as rows of `admin_ops`. Returns the clients that it killed."""
    killed: set[str] = set()

    def note_kill(act: Row) -> None:
        if act["act"] == KILL:
            killed.add(str(act["subject"]))

    _add_file(run_dir, run, collected, CLIENT_ACTS, "admin_ops", part="clients", on_row=note_kill)
    return frozenset(killed)


def _journals(run_dir: Path, run: str, collected: Collected, killed: frozenset[str]) -> int:
    """Rows of all journals. Returns wall clock minus CLOCK_MONOTONIC in ns, of the first client."""
    offset_ns = None
    for path in sorted((run_dir / "journal").glob("*.jsonl")):
        found_ns = _journal(path, run_dir, run, collected, killed)
        offset_ns = found_ns if offset_ns is None else offset_ns
    return time.time_ns() - time.monotonic_ns() if offset_ns is None else offset_ns


def _journal(
    path: Path, run_dir: Path, run: str, collected: Collected, killed: frozenset[str]
) -> int | None:
    reader, rows = JournalReader(path), JournalRows(run)
    offset_ns = None
    with Evidence(run_dir, path.stem, run) as evidence:
        for entry in reader:
            if isinstance(entry, Begin):
                offset_ns = entry.wall_ns - entry.at_ns
            for table, row in rows.take(entry):
                evidence.add(table, row)
        for table, row in rows.remaining_rows(reader.state.end_ns):
            evidence.add(table, row)
    collected.count_rows(evidence)
    collected.note(
        f"journal/{path.name}",
        "journal",
        reader.state.entries,
        first=rows.first_sequence,
        last=rows.last_sequence,
        damage=_journal_damage(reader),
        excused=path.stem in killed and not reader.state.damaged,
    )
    return offset_ns


def _journal_damage(reader: JournalReader) -> list[str]:
    state = reader.state
    if state.ended_properly:
        return []
    reasons = ["the journal has no proper end: its client was killed or the file was cut"]
    if state.unfinished:
        reasons.append("its last entry is unfinished and was left out")
    if state.damaged:
        reasons.append(f"{state.damaged} entries in it are damaged")
    return reasons


def _host_samples(run_dir: Path, run: str, collected: Collected) -> None:
    """Rows of `samples` that the runtime ssh wrote. The last line may be incomplete if the lab
    died."""
    path = run_dir / host_clocks.FILE
    if not path.exists():
        return
    with Evidence(run_dir, "hosts", run) as evidence:
        for line in path.read_bytes().splitlines():
            with suppress(msgspec.MsgspecError):
                evidence.add("samples", msgspec.json.decode(line, type=dict))
    collected.count_rows(evidence)


def _add_file(
    run_dir: Path,
    run: str,
    collected: Collected,
    file: str,
    table: str,
    *,
    part: str,
    kind: str = "journal",
    on_row: Callable[[Row], object] = lambda _: None,
) -> None:
    """Rows of a table from a file with one line each; none without the file. An incomplete last
    line was being written when the lab died."""
    path = run_dir / file
    if not path.exists():
        return
    count, is_damaged = 0, False
    with Evidence(run_dir, part, run) as evidence:
        for line in path.read_bytes().splitlines():
            try:
                row = _table_row(table, msgspec.json.decode(line, type=dict))
            except msgspec.MsgspecError:
                is_damaged = True
                continue
            evidence.add(table, row)
            on_row(row)
            count += 1
    collected.count_rows(evidence)
    damage = ["an entry is damaged"] if is_damaged else []
    collected.note(file, kind, count, damage=damage)


def _table_row(table: str, entry: Row) -> Row:
    """The columns of the table; of faults, the list of targets as a JSON string."""
    row = {name: entry.get(name) for name in SCHEMAS[table].names}
    targets = row.get("targets")
    if targets is not None and not isinstance(targets, str):
        row["targets"] = msgspec.json.encode(targets).decode()
    return row


def _replicas(
    run_dir: Path,
    place: str,
    topics: Sequence[TopicFact],
    run: str,
    states: StateRows | MetadataStates | None,
    collected: Collected,
    at_ns: int,
) -> None:
    """Rows of the replica logs of a cluster. Logs that are no longer replicas are left out, and in
    the second cluster those of topics that are not the run's."""
    topic_ids = {topic.name: topic.topic_id for topic in topics}
    znode_ids = states.topic_ids if states else {}
    are_made = states is not None and not states.has_topic_ids
    copies = {topic.name for topic in topics if topic.copies}
    for broker, data in _broker_data(cluster_folder(run_dir, place)):
        with Evidence(run_dir, _part(broker, data), run) as evidence:
            for log in find_logs(broker, data, topic_ids, copies, znode_ids, are_made=are_made):
                if place == WEST and not log.ours:
                    continue
                name = str(log.folder.relative_to(run_dir))
                if states and states.is_stray(log.topic, log.topic_id, log.partition, broker):
                    collected.note(name, "stray_log", 0)
                    continue
                for row in read_log(log, run):
                    evidence.add("replicas", row)
                evidence.add("logs", log.row)
                for row in log.indexes if log.ours else ():
                    evidence.add("indexes", row)
                collected.note(name, "replica_log", log.records, damage=log.damage)
            for row in read_deleted_files(broker, data, at_ns):
                evidence.add("samples", row)
        collected.count_rows(evidence)


def _part(broker: int, log_dir: Path) -> str:
    return f"b{broker}" if log_dir.name == "data" else f"b{broker}-{log_dir.name}"


def log_dirs(data: Path) -> list[Path]:
    """A broker's log directories: its `data/` itself, or `data/disk1`, `data/disk2` ..."""
    return sorted(path for path in data.glob("disk*") if DISK.fullmatch(path.name)) or [data]


def _broker_data(cluster: Path) -> Iterator[tuple[int, Path]]:
    for folder in sorted((cluster / "nodes").glob("b*")):
        match = _BROKER.fullmatch(folder.name)
        if match and (folder / "data").is_dir():
            for log_dir in log_dirs(folder / "data"):
                yield int(match[1]), log_dir


def _manifest(run_dir: Path, run: str, collected: Collected) -> None:
    for table, rows in sorted(collected.rows.items()):
        collected.note(f"evidence/{table}", "table", rows)
    with Evidence(run_dir, "manifest", run) as evidence:
        for row in collected.manifest:
            evidence.add("manifest", row)
    collected.rows["manifest"] = len(collected.manifest)
