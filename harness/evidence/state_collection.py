"""Collection of a cluster's state over time: ZooKeeper's transaction log, or KRaft's metadata log.

Every node has a copy. The lab reads the longest log of ZooKeeper. For KRaft it reads the best copy,
up to its committed end, and all copies for the tables `metadata_logs` and `votes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from urteil.chaos.capabilities import TOPIC_IDS
from urteil.chaos.faults.base.fault import EXTERNAL, KRAFT
from urteil.chaos.topology import EAST, node_id
from urteil.harness.dependencies.kafka_releases import LINES
from urteil.harness.evidence.collected import Collected, cluster_folder
from urteil.harness.evidence.journal import METADATA_COMMITTED, QUORUM_STATES
from urteil.harness.evidence.journal_rows import Row
from urteil.harness.evidence.limits import SECOND_ZXID
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
from urteil.harness.evidence.readers.wall_clocks import (
    FOR_EVER_NS,
    WallClocks,
    read_wall_clocks,
)
from urteil.harness.evidence.readers.zookeeper_log import (
    LogFiles,
    StateRows,
    find_log_files,
    find_longest_log,
    read_changes,
)
from urteil.harness.evidence.table_writer import Evidence
from urteil.harness.scenario import RunFacts


def collect_states(
    run_dir: Path,
    place: str,
    facts: RunFacts,
    offset_ns: int,
    collected: Collected,
) -> StateRows | MetadataStates | None:
    """Rows of a cluster's metadata: of the second, only those of the run's topics. `offset_ns` is
    wall clock minus CLOCK_MONOTONIC. Returns what the replica logs need to know; None without a
    readable log."""
    data_dirs = sorted((cluster_folder(run_dir, place) / "nodes").glob("zk*/data"))
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
    """The same for KRaft, from the best copy of the metadata log up to its committed end. The
    newest release of the run's nodes defines all records of earlier ones. The release of an
    external cluster is unknown: the newest of all defines its records. Its committed end was not
    observed."""
    nodes = cluster_folder(run_dir, place) / "nodes"
    controllers = "q" if any(nodes.glob("q*/data")) else "b"
    folders = sorted(nodes.glob(f"{controllers}*/data/**/{FOLDER}"))
    folders = [folder for folder in folders if find_segments(folder)]
    if not folders:
        return None
    version = facts.versions.get(KRAFT, "").rpartition(", ")[2]
    is_external = facts.runtime == EXTERNAL
    if not version and not is_external:
        collected.problems.append("the metadata log cannot be read: run.json names no release")
        return None
    schemas = release_schemas(version or LINES[-1].versions[-1])
    copies = [MetadataCopy(folder, lambda: schemas) for folder in folders]
    for copy in copies:
        copy.read_new()
    best, committed = find_committed(copies)
    end_ns = max((phase.end_ns for phase in facts.phases), default=0)
    clocks = read_wall_clocks(cluster_folder(run_dir, place), offset_ns, end_ns or FOR_EVER_NS)
    log, states = MetadataLog(best.folder), MetadataStates(clocks)
    if place == EAST and not is_external:
        voters = best.voters(before=committed)
        _add_metadata_logs(run_dir, facts.run, copies, best, voters, schemas, clocks, collected)
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
    clocks: WallClocks,
    collected: Collected,
) -> None:
    """The batches of each controller's copy, and the batches observed as committed. `voters` are
    those of a dynamic quorum. Damage is a problem; damage of the best copy is reported with its
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
    leaders, last_ns = dict[int, int](), Counter[int]()
    with Evidence(run_dir, "quorum", run) as evidence:
        for row in rows():
            if row["leader"] is not None:
                leaders[row["epoch"]] = row["leader"]
            leader, holder = leaders.get(row["epoch"]), row["broker"]
            at_ns = clocks.monotonic_ns(row.pop("wall_ms"), leader, after_ns=last_ns[holder])
            last_ns[holder] = at_ns
            row.pop("voter_ids", None)
            for vote in row.pop("votes", ()):
                vote["at_ns"] = clocks.monotonic_ns(vote.pop("wall_ms"), leader, after_ns=at_ns)
                votes[tuple(vote.values())] = vote
            evidence.add("metadata_logs", row | {"at_ns": at_ns})
        for vote in (*votes.values(), *read_watched(run_dir / QUORUM_STATES)):
            evidence.add("votes", vote)
    collected.count_rows(evidence)


def _add_last_votes(
    run_dir: Path, run: str, copies: Iterable[MetadataCopy], at_ns: int, collected: Collected
) -> None:
    """The content of the controllers' files after the run."""
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
