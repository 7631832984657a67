"""Collection: writes the evidence of a run from journals, disks, ZooKeeper's log and faults."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from urteil.chaos.capabilities import TOPIC_IDS
from urteil.chaos.faults.base.fault import EXTERNAL, KRAFT
from urteil.chaos.link_rules import LINK_EVENTS
from urteil.chaos.topology import EAST, WEST, node_id
from urteil.harness import host_clocks
from urteil.harness.dependencies.kafka_releases import LINES
from urteil.harness.evidence import outputs
from urteil.harness.evidence.acts import KILL
from urteil.harness.evidence.journal import (
    ADMIN_ACTS,
    CLIENT_ACTS,
    METADATA_COMMITTED,
    QUORUM_STATES,
    Begin,
    JournalReader,
)
from urteil.harness.evidence.journal_rows import JournalRows, Row
from urteil.harness.evidence.limits import SECOND_ZXID
from urteil.harness.evidence.readers.deleted_files import read_deleted_files
from urteil.harness.evidence.readers.metadata_batches import (
    SEEN_COMMITTED,
    add_directories,
    read_committed,
    read_copy,
)
from urteil.harness.evidence.readers.metadata_copies import MetadataCopy, find_committed
from urteil.harness.evidence.readers.metadata_log import (
    FOLDER,
    MetadataLog,
    RecordSchemas,
    find_segments,
    read_metadata,
    release_schemas,
)
from urteil.harness.evidence.readers.metadata_states import MetadataStates
from urteil.harness.evidence.readers.quorum_votes import (
    AFTER_RUN,
    QUORUM_STATE,
    read_quorum_state,
    read_watched,
)
from urteil.harness.evidence.readers.replica_logs import find_logs, read_log
from urteil.harness.evidence.readers.zookeeper_log import (
    LogFiles,
    StateRows,
    find_log_files,
    find_longest_log,
    read_changes,
)
from urteil.harness.evidence.schema import SCHEMAS, TABLES
from urteil.harness.evidence.table_writer import Evidence, remove_parts, write_empty_parts
from urteil.harness.scenario import RunFacts, TopicFact, load_facts

KEPT = frozenset(table.name for table in TABLES.values() if table.is_written_live)
"""Tables with parts that the lab wrote during the run."""
DISK = re.compile(r"disk\d+")
_BROKER = re.compile(r"b(\d+)")


@dataclass(slots=True)
class Collected:
    """`rows` by table. `problems` are sentences for the verdict: evidence that is missing."""

    rows: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    manifest: list[Row] = field(default_factory=list)

    def count_rows(self, evidence: Evidence) -> None:
        """Count the rows of one source. Each of its parts has a row in the manifest."""
        for table, rows in evidence.counts().items():
            self.rows[table] = self.rows.get(table, 0) + rows
        for file, rows in evidence.rows_by_file().items():
            self.note(file, "part", rows)

    def count_kept_parts(self, run_dir: Path) -> None:
        """Count parts that existed before. Validation reports damaged ones."""
        noted = {row["file"] for row in self.manifest}
        for table in KEPT:
            for part in sorted((run_dir / "evidence" / table).glob("*.parquet")):
                file, rows = str(part.relative_to(run_dir)), 0
                with suppress(pa.ArrowInvalid):
                    rows = pq.ParquetFile(part).metadata.num_rows
                if rows and file not in noted:
                    self.rows[table] = self.rows.get(table, 0) + rows
                    self.note(file, "part", rows)

    def note(
        self,
        file: str,
        kind: str,
        rows: int,
        *,
        first: int | None = None,
        last: int | None = None,
        damage: Sequence[str] = (),
        excused: bool = False,
    ) -> None:
        """Add one row to the manifest. Damage that is not excused is also a problem."""
        self.manifest.append(
            {
                "file": file,
                "kind": kind,
                "rows": rows,
                "first_sequence": first,
                "last_sequence": last,
                "ended_properly": not damage,
            }
        )
        if not excused:
            self.problems.extend(f"{file}: {what}" for what in damage)


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
    _faults(run_dir, run, collected)
    _link_events(run_dir, run, collected)
    _host_samples(run_dir, run, collected)
    _acts(run_dir, run, collected, ADMIN_ACTS, "admin_ops")
    _outputs(run_dir, run, collected)
    at_ns = max((phase.end_ns for phase in facts.phases), default=0)
    for place in (EAST, WEST) if (run_dir / WEST).is_dir() else (EAST,):
        topics = [topic for topic in facts.topics if topic.cluster == place]
        states = _states(run_dir, place, facts, offset_ns, collected)
        _replicas(run_dir, place, topics, run, states, collected, at_ns)
    collected.count_kept_parts(run_dir)
    _manifest(run_dir, run, collected)
    write_empty_parts(run_dir)
    return collected


def _client_acts(run_dir: Path, run: str, collected: Collected) -> frozenset[str]:
    """The lab's acts on its clients, as rows of `admin_ops`. Returns the clients that it killed."""
    acts = _acts(run_dir, run, collected, CLIENT_ACTS, "clients")
    return frozenset(str(act["subject"]) for act in acts if act["act"] == KILL)


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


def _faults(run_dir: Path, run: str, collected: Collected) -> None:
    path = run_dir / "faults.jsonl"
    if not path.exists():
        return
    damage: list[str] = []
    with Evidence(run_dir, "faults", run) as evidence:
        for line in path.read_bytes().splitlines():
            try:
                evidence.add("faults", _fault(msgspec.json.decode(line, type=dict)))
            except msgspec.MsgspecError:
                damage.append("an entry is damaged")
    collected.count_rows(evidence)
    collected.note("faults.jsonl", "journal", evidence.counts().get("faults", 0), damage=damage)


def _link_events(run_dir: Path, run: str, collected: Collected) -> None:
    path = run_dir / LINK_EVENTS
    if not path.exists():
        return
    damage: list[str] = []
    with Evidence(run_dir, "link_events", run) as evidence:
        for line in path.read_bytes().splitlines():
            try:
                event = msgspec.json.decode(line, type=dict)
            except msgspec.MsgspecError:
                damage.append("an entry is damaged")
                continue
            row = {name: event.get(name) for name in SCHEMAS["link_events"].names}
            evidence.add("link_events", row)
    collected.count_rows(evidence)
    count = evidence.counts().get("link_events", 0)
    collected.note(LINK_EVENTS, "journal", count, damage=damage)


def _host_samples(run_dir: Path, run: str, collected: Collected) -> None:
    """Rows of `samples` that the runtime ssh wrote. A last line may be cut: the lab died."""
    path = run_dir / host_clocks.FILE
    if not path.exists():
        return
    with Evidence(run_dir, "hosts", run) as evidence:
        for line in path.read_bytes().splitlines():
            with suppress(msgspec.MsgspecError):
                evidence.add("samples", msgspec.json.decode(line, type=dict))
    collected.count_rows(evidence)


def _acts(run_dir: Path, run: str, collected: Collected, file: str, part: str) -> list[Row]:
    """Rows from a file with one line an act. A last line that is cut was being written when the lab
    died."""
    path = run_dir / file
    if not path.exists():
        return []
    acts: list[Row] = []
    damage: list[str] = []
    with Evidence(run_dir, part, run) as evidence:
        for line in path.read_bytes().splitlines():
            try:
                act = msgspec.json.decode(line, type=dict)
            except msgspec.MsgspecError:
                damage.append("an entry is damaged")
                continue
            acts.append({name: act.get(name) for name in SCHEMAS["admin_ops"].names})
            evidence.add("admin_ops", acts[-1])
    collected.count_rows(evidence)
    collected.note(file, "journal", len(acts), damage=damage)
    return acts


def _outputs(run_dir: Path, run: str, collected: Collected) -> None:
    """Rows from the file of an application's outputs, which is complete or does not exist."""
    path = run_dir / outputs.FILE
    if not path.exists():
        return
    rows, damage = 0, []
    with Evidence(run_dir, "application", run) as evidence:
        for line in path.read_bytes().splitlines():
            try:
                evidence.add("outputs", msgspec.json.decode(line, type=dict))
                rows += 1
            except msgspec.MsgspecError:
                damage = ["an entry is damaged"]
    collected.count_rows(evidence)
    collected.note(outputs.FILE, "outputs", rows, damage=damage)


def _fault(row: Row) -> Row:
    """Lists as JSON strings; columns that the table does not have are left out."""
    known = {name: row.get(name) for name in SCHEMAS["faults"].names}
    if known["targets"] is not None and not isinstance(known["targets"], str):
        known["targets"] = msgspec.json.encode(known["targets"]).decode()
    return known


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
    for broker, data in _broker_data(_folder(run_dir, place)):
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


def _folder(run_dir: Path, place: str) -> Path:
    """The folder of a cluster: the run's own, or `west/` in it."""
    return run_dir if place == EAST else run_dir / place


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


def _states(
    run_dir: Path,
    place: str,
    facts: RunFacts,
    offset_ns: int,
    collected: Collected,
) -> StateRows | MetadataStates | None:
    """Rows of a cluster's metadata: of the second, only those of the run's topics."""
    data_dirs = sorted((_folder(run_dir, place) / "nodes").glob("zk*/data"))
    data = find_longest_log(data_dirs)
    if data is None:
        if data_dirs:
            collected.problems.append("no ZooKeeper left a transaction log")
            return None
        return _quorum_states(run_dir, place, facts, offset_ns, collected)
    has_topic_ids = TOPIC_IDS.name not in facts.lacks
    files, states = LogFiles(), StateRows(offset_ns, has_topic_ids=has_topic_ids)
    rows = (row for change in read_changes(data, files) for row in states.rows(change))
    _add_states(run_dir, data.parent.name, place, facts, rows, collected)
    name = str(find_log_files(data)[0].parent.relative_to(run_dir))
    collected.note(name, "zookeeper_log", files.transactions, first=files.first_zxid,
                   last=files.last_zxid, damage=files.damage)  # fmt: skip
    return states


def _quorum_states(
    run_dir: Path, place: str, facts: RunFacts, offset_ns: int, collected: Collected
) -> MetadataStates | None:
    """The same of KRaft, from the best copy of the metadata log as far as it is committed.

    The release of an external cluster is not known: the newest defines all that earlier ones write,
    and nobody saw what its quorum committed.
    """
    nodes = _folder(run_dir, place) / "nodes"
    controllers = "q" if any(nodes.glob("q*/data")) else "b"
    folders = sorted(nodes.glob(f"{controllers}*/data/**/{FOLDER}"))
    folders = [folder for folder in folders if find_segments(folder)]
    if not folders:
        return None
    version = facts.versions.get(KRAFT, "").partition(",")[0]
    is_external = facts.runtime == EXTERNAL
    if not version and not is_external:
        collected.problems.append("the metadata log cannot be read: run.json names no release")
        return None
    schemas = release_schemas(version or LINES[-1].versions[-1])
    copies = [MetadataCopy(folder, lambda: schemas) for folder in folders]
    for copy in copies:
        copy.read_new()
    best, committed = find_committed(copies)
    log, states = MetadataLog(best.folder), MetadataStates(offset_ns)
    if place == EAST and not is_external:
        voters = best.voters(before=committed)
        _add_metadata_logs(run_dir, facts.run, copies, best, voters, schemas, offset_ns, collected)
        end_ns = max((phase.end_ns for phase in facts.phases), default=0)
        _add_last_votes(run_dir, facts.run, copies, end_ns, collected)
    records = read_metadata(log, schemas)
    rows = states.rows(record for record in records if record.offset < committed)
    _add_states(run_dir, f"quorum-{place}", place, facts, rows, collected)
    collected.note(str(best.folder.relative_to(run_dir)), "metadata_log", log.records,
                   first=log.start, last=committed - 1,
                   damage=[*log.damage, *states.damage])  # fmt: skip
    return states


def _add_metadata_logs(
    run_dir: Path,
    run: str,
    copies: Iterable[MetadataCopy],
    best: MetadataCopy,
    voters: dict[int, str],
    schemas: RecordSchemas,
    offset_ns: int,
    collected: Collected,
) -> None:
    """The batches of each controller's copy, and those that the lab saw committed. `voters` are
    those of a dynamic quorum. Damage is a problem; that of the best copy is reported with its
    states."""

    def rows() -> Iterator[Row]:
        for copy in copies:
            folder, damage = copy.folder.relative_to(run_dir), list[str]()
            holder = {"broker": node_id(folder.parts[1])}
            if voters:
                holder["is_voter"] = copy.is_of(voters)
            for row in add_directories(read_copy(copy.folder, schemas, damage)):
                yield holder | row
            if copy is not best:
                collected.problems.extend(f"{folder}: {sentence}" for sentence in damage)
        for row in add_directories(read_committed(run_dir / METADATA_COMMITTED)):
            yield {"broker": SEEN_COMMITTED, **row}

    votes: dict[tuple[Any, ...], Row] = {}
    with Evidence(run_dir, "quorum", run) as evidence:
        for row in rows():
            at_ns = row.pop("wall_ms") * 1_000_000 - offset_ns
            row.pop("voter_ids", None)
            for vote in row.pop("votes", ()):
                vote["at_ns"] = vote.pop("wall_ms") * 1_000_000 - offset_ns
                votes[tuple(vote.values())] = vote
            evidence.add("metadata_logs", row | {"at_ns": at_ns})
        for vote in (*votes.values(), *read_watched(run_dir / QUORUM_STATES)):
            evidence.add("votes", vote)
    collected.count_rows(evidence)


def _add_last_votes(
    run_dir: Path, run: str, copies: Iterable[MetadataCopy], at_ns: int, collected: Collected
) -> None:
    """What the controllers' files say after the run."""
    with Evidence(run_dir, "quorum-files", run) as evidence:
        for copy in copies:
            folder = copy.folder.relative_to(run_dir)
            try:
                row = read_quorum_state(copy.folder / QUORUM_STATE)
            except FileNotFoundError:
                continue
            except ValueError as error:
                collected.problems.append(f"{folder}: {error}")
                continue
            place = {"broker": node_id(folder.parts[1]), "position": AFTER_RUN, "at_ns": at_ns}
            evidence.add("votes", place | row)
    collected.count_rows(evidence)


def _add_states(
    run_dir: Path,
    part: str,
    place: str,
    facts: RunFacts,
    rows: Iterable[Row],
    collected: Collected,
) -> None:
    names = {topic.name for topic in facts.topics if topic.cluster == place}
    with Evidence(run_dir, part, facts.run) as evidence:
        for row in rows:
            if place == EAST:
                evidence.add("states", row)
            elif row.get("topic") in names:
                evidence.add("states", _of_second(row))
    collected.count_rows(evidence)


def _of_second(row: Row) -> Row:
    """A state of the second cluster. Its zxids follow all zxids of the first, and it shows no
    controller epoch, since that would be compared with the first cluster's."""
    return row | {"zxid": row["zxid"] + SECOND_ZXID, "controller_epoch": None}


def _manifest(run_dir: Path, run: str, collected: Collected) -> None:
    for table, rows in sorted(collected.rows.items()):
        collected.note(f"evidence/{table}", "table", rows)
    with Evidence(run_dir, "manifest", run) as evidence:
        for row in collected.manifest:
            evidence.add("manifest", row)
    collected.rows["manifest"] = len(collected.manifest)
