"""What a dynamic quorum committed depends on its voters, which stand in the log itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.harness.evidence.metadata_files import FIRST_SEGMENT, SegmentWriter
from urteil.chaos.faults.base.fault import KRAFT
from urteil.harness.cluster.quorum_state import QuorumState
from urteil.harness.dependencies.kraft_storage import directory_id, format_directory
from urteil.harness.evidence.collection import collect
from urteil.harness.evidence.readers.metadata_log import FOLDER, RecordSchemas, release_schemas
from urteil.harness.evidence.readers.quorum_votes import QUORUM_STATE, read_quorum_state
from urteil.harness.scenario import RunFacts, save
from urteil.harness.targets import KraftTarget

VERSION = KraftTarget().version
ALL = {node: directory_id(f"b{node}") for node in (1, 2, 3)}
TOPIC = {"TopicId": "AAAAAAAAAAAAAAAAAAAAAQ", "Name": "orders"}


@pytest.fixture(scope="module")
def schemas() -> RecordSchemas:
    return release_schemas(VERSION)


@pytest.fixture
def state(tmp_path: Path, schemas: RecordSchemas) -> QuorumState:
    return QuorumState(lambda: [folder(tmp_path, node) for node in ALL], lambda: schemas)


def folder(run_dir: Path, node: int) -> Path:
    return run_dir / "nodes" / f"b{node}" / "data" / FOLDER


def store(run_dir: Path, node: int, log: SegmentWriter, directory: str = "") -> None:
    """A node's copy, in the log directory of its name or in another one."""
    copy = folder(run_dir, node)
    format_directory(copy.parent, None, node_id=node, name=directory or f"b{node}")
    copy.mkdir(exist_ok=True)
    (copy / FIRST_SEGMENT).write_bytes(log.data)


def written(
    schemas: RecordSchemas, *voters: dict[int, str], with_topic: bool = True
) -> SegmentWriter:
    """A log with these records of voters one after another, then a topic."""
    writer = SegmentWriter(schemas)
    writer.lead(controller=1, epoch=1, voters=tuple(ALL), granted=(1, 2))
    for some in voters:
        writer.change_voters(some)
    if with_topic:
        writer.write(("TopicRecord", TOPIC))
    return writer


def collect_all(run_dir: Path) -> None:
    facts = RunFacts(run="r1", seed=1, scenario="s", target=KRAFT, runtime="process",
                     boot_id="boot", command="", versions={KRAFT: VERSION})  # fmt: skip
    save(run_dir / "run.json", facts)
    assert not collect(run_dir).problems


def only(*nodes: int) -> dict[int, str]:
    return {node: ALL[node] for node in nodes}


@pytest.mark.parametrize(
    ("voters", "holders", "is_committed"),
    [
        (only(1, 2, 3), (1, 3), True),
        (only(1, 2), (1, 3), False),
        (only(1, 2), (1, 2), True),
        (only(1), (1,), True),
        ({**only(1, 2), 3: directory_id("new disk")}, (1, 3), False),
    ],
    ids=["all", "removed voter", "remaining voters", "single voter", "voter with another disk"],
)
def test_majority_is_that_of_the_voters(
    tmp_path: Path, schemas: RecordSchemas, state: QuorumState, voters, holders, is_committed
) -> None:
    for node in ALL:
        store(tmp_path, node, written(schemas, ALL, voters, with_topic=node in holders))
    assert state.topics() == ["orders"] * is_committed


def test_voter_that_joined_with_another_disk_counts(
    tmp_path: Path, schemas: RecordSchemas, state: QuorumState
) -> None:
    voters = {**only(1, 2), 3: directory_id("new disk")}
    store(tmp_path, 1, written(schemas, ALL, only(1, 2), voters))
    store(tmp_path, 2, written(schemas, ALL, only(1, 2), voters, with_topic=False))
    store(tmp_path, 3, written(schemas, ALL, only(1, 2), voters), "new disk")
    assert state.topics() == ["orders"]
    assert state.voters() == {f"b{node}": text for node, text in voters.items()}


def test_static_quorum_has_no_voters_that_change(
    tmp_path: Path, schemas: RecordSchemas, state: QuorumState
) -> None:
    for node in ALL:
        store(tmp_path, node, written(schemas))
    assert state.voters() == {}


def test_evidence_has_voters_and_their_changes(tmp_path: Path, schemas: RecordSchemas) -> None:
    for node in ALL:
        store(tmp_path, node, written(schemas, ALL, only(1, 2), only(1)))
    collect_all(tmp_path)
    rows = pq.read_table(tmp_path / "evidence" / "metadata_logs").to_pylist()
    assert {(row["broker"], row["is_voter"]) for row in rows} == {(1, True), (2, False), (3, False)}
    changes = [row["changed_voters"] for row in rows if row["broker"] == 2]
    assert changes == [None, 0, 1, 1, None]
    states = pq.read_table(tmp_path / "evidence" / "states").to_pylist()
    settings = [row["settings"] for row in states if row["path"] == "/quorum/voters"]
    assert [text.count(":") for text in settings] == [3, 2, 1]


def test_votes_of_an_elected_leader_have_the_voters_directories(
    tmp_path: Path, schemas: RecordSchemas
) -> None:
    for node in ALL:
        log = written(schemas, ALL)
        log.lead(controller=2, epoch=2, voters=tuple(ALL), granted=(2, 3))
        store(tmp_path, node, log)
    collect_all(tmp_path)
    votes = pq.read_table(tmp_path / "evidence" / "votes").to_pylist()
    elected = {vote["broker"]: vote["directory"] for vote in votes if vote["epoch"] == 2}
    assert elected == only(2, 3)


@pytest.mark.parametrize(("version", "directory"), [(0, None), (1, ALL[2])])
def test_vote_of_a_dynamic_quorum_names_the_log_directory(
    tmp_path: Path, schemas: RecordSchemas, version: int, directory: str | None
) -> None:
    store(tmp_path, 2, written(schemas))
    file = folder(tmp_path, 2) / QUORUM_STATE
    file.write_text(
        f'{{"leaderId": 1, "leaderEpoch": 2, "votedId": -1, "data_version": {version}}}'
    )
    assert read_quorum_state(file) == {
        "epoch": 2, "candidate": None, "leader": 1, "directory": directory,
    }  # fmt: skip
