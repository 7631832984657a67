"""The state of a cluster without ZooKeeper is what a majority of the copies of its log holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.harness.evidence.metadata_files import FIRST_SEGMENT, SegmentWriter
from tests.waiting import until
from urteil.chaos.faults.base.fault import KRAFT
from urteil.chaos.observations import LabFailure
from urteil.harness.cluster.quorum_state import QuorumState
from urteil.harness.cluster.quorum_watch import QuorumWatch
from urteil.harness.evidence.collection import collect
from urteil.harness.evidence.journal import METADATA_COMMITTED, QUORUM_STATES
from urteil.harness.evidence.readers.metadata_log import FOLDER, RecordSchemas, release_schemas
from urteil.harness.evidence.readers.quorum_votes import QUORUM_STATE
from urteil.harness.scenario import RunFacts, save
from urteil.harness.targets import KraftTarget

VERSION = KraftTarget().version
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
NODES = ("b1", "b2", "b3")


@pytest.fixture(scope="module")
def schemas() -> RecordSchemas:
    return release_schemas(VERSION)


@pytest.fixture
def state(tmp_path: Path, schemas: RecordSchemas) -> QuorumState:
    return QuorumState(lambda: folders(tmp_path), lambda: schemas)


def folders(run_dir: Path) -> list[Path]:
    return [folder(run_dir, node) for node in NODES]


def folder(run_dir: Path, node: str) -> Path:
    path = run_dir / "nodes" / node / "data" / FOLDER
    path.mkdir(parents=True, exist_ok=True)
    return path


def store(run_dir: Path, **logs: SegmentWriter) -> None:
    """Each node's copy; a node that is not named has none."""
    for node, writer in logs.items():
        (folder(run_dir, node) / FIRST_SEGMENT).write_bytes(writer.data)


@pytest.fixture
def log(schemas: RecordSchemas) -> Callable[..., SegmentWriter]:
    """A log of controller 1, with its topic led by the given brokers one after another."""

    def write(*leaders: int, then: tuple[int, int] | None = None) -> SegmentWriter:
        writer = SegmentWriter(schemas)
        writer.lead(controller=1, epoch=1, voters=(1, 2, 3), granted=(1, 2))
        topic: dict[str, Any] = {"TopicId": TOPIC_ID}
        start = {"Replicas": [1, 2, 3], "Isr": [1, 2, 3], "Leader": leaders[0], "LeaderEpoch": 0}
        writer.write(
            ("TopicRecord", topic | {"Name": "orders"}),
            ("PartitionRecord", topic | start | {"PartitionId": 0, "PartitionEpoch": 0}),
        )
        for leader in leaders[1:]:
            writer.write(("PartitionChangeRecord", topic | {"PartitionId": 0, "Leader": leader}))
        if then is not None:
            controller, leader = then
            writer.lead(controller=controller, epoch=2)
            writer.write(("PartitionChangeRecord", topic | {"PartitionId": 0, "Leader": leader}))
        return writer

    return write


def leader_of(state: QuorumState) -> str | None:
    (view,) = state.partitions("orders")
    return view.leader


def test_record_of_a_minority_is_not_committed(tmp_path: Path, state: QuorumState, log) -> None:
    store(tmp_path, b1=log(1, 2), b2=log(1), b3=log(1))
    assert leader_of(state) == "b1"
    store(tmp_path, b2=log(1, 2))
    assert leader_of(state) == "b2"
    assert (state.controller(), state.controller_epoch()) == ("b1", 1)
    assert (state.topics(), state.topic_id("orders")) == (["orders"], TOPIC_ID)


def test_longer_log_of_an_earlier_epoch_is_overruled(
    tmp_path: Path, state: QuorumState, log
) -> None:
    successor = log(1, then=(2, 3))
    store(tmp_path, b1=log(1, 2, 2, 2, 2), b2=successor, b3=successor)
    assert leader_of(state) == "b3"
    assert (state.controller(), state.controller_epoch()) == ("b2", 2)


def test_new_leader_alone_hides_nothing_that_is_committed(
    tmp_path: Path, state: QuorumState, log
) -> None:
    """A leader elected while the nodes stop has written to its own log only."""
    store(tmp_path, b1=log(1, 2, then=(1, 3)), b2=log(1, 2), b3=log(1, 2))
    assert (leader_of(state), state.controller_epoch()) == ("b2", 1)


def test_record_that_another_leader_may_overwrite_is_not_committed(
    tmp_path: Path, state: QuorumState, log
) -> None:
    """A copy of a later epoch lacks it and may win an election (Raft, figure 8)."""
    store(tmp_path, b1=log(1, 2), b2=log(1, 2), b3=log(1, then=(3, 3)))
    assert state.topics() == ["orders"]
    assert leader_of(state) == "b1"


def test_log_that_was_truncated_and_written_again_is_read_anew(
    tmp_path: Path, state: QuorumState, log
) -> None:
    store(tmp_path, b1=log(1, 2), b2=log(1), b3=log(1))
    assert leader_of(state) == "b1"
    successor = log(1, then=(2, 3))
    store(tmp_path, b1=successor, b2=successor, b3=successor)
    assert leader_of(state) == "b3"


def test_nothing_is_known_before_a_majority_has_a_log(
    tmp_path: Path, state: QuorumState, log
) -> None:
    assert state.controller() is None
    store(tmp_path, b1=log(1))
    assert state.controller() is None
    assert state.topics() == []
    with pytest.raises(LabFailure, match="no leader within 0 s"):
        state.start(deadline_s=0)


def test_question_to_zookeeper_is_a_failure(state: QuorumState) -> None:
    with pytest.raises(LabFailure, match="has no ZooKeeper"):
        _ = state.client


def states_of(run_dir: Path, versions: dict[str, str]) -> tuple[int, list[str]]:
    facts = RunFacts(run="r1", seed=1, scenario="s", target=KRAFT, runtime="process",
                     boot_id="boot", command="", versions=versions)  # fmt: skip
    save(run_dir / "run.json", facts)
    collected = collect(run_dir)
    return collected.rows.get("states", 0), collected.problems


def test_evidence_has_the_committed_states_only(tmp_path: Path, log) -> None:
    store(tmp_path, b1=log(1, 2, 3), b2=log(1, 2), b3=log(1))
    rows, problems = states_of(tmp_path, {KRAFT: VERSION})
    assert rows == len(["/controller", "/controller_epoch", "topic", "state 0", "state 1"])
    assert not problems


def test_newest_release_of_a_run_defines_the_records(tmp_path: Path, log) -> None:
    """After an upgrade the log has records of both releases."""
    store(tmp_path, b1=log(1, 2), b2=log(1, 2), b3=log(1))
    assert states_of(tmp_path, {KRAFT: f"no release, {VERSION}"})[0]


def test_evidence_has_each_copy_and_what_was_seen_committed(
    tmp_path: Path, schemas: RecordSchemas, log
) -> None:
    committed = tmp_path / METADATA_COMMITTED
    state = QuorumState(lambda: folders(tmp_path), lambda: schemas, committed)
    store(tmp_path, b1=log(1, 2), b2=log(1, 2), b3=log(1))
    assert leader_of(state) == "b2"
    store(tmp_path, b1=log(1), b2=log(1), b3=log(1))
    with committed.open("a") as file:
        file.write('{"base": 9')  # the lab was killed
    assert not states_of(tmp_path, {KRAFT: VERSION})[1]
    rows = pq.read_table(tmp_path / "evidence" / "metadata_logs").to_pylist()
    batches: dict[int, list[Any]] = {}
    for row in rows:
        batches.setdefault(row["broker"], []).append((row["base"], row["last"], row["leader"]))
    copy = [(0, 0, 1), (1, 2, None)]
    assert batches == {1: copy, 2: copy, 3: copy, -1: [*copy, (3, 3, None)]}
    assert {row["epoch"] for row in rows} == {1}
    assert len({(row["base"], row["crc"], row["size"]) for row in rows}) == 3


def replace_by_snapshot(copy: Path, writer: SegmentWriter, snapshot: SegmentWriter) -> None:
    """The copy begins with this snapshot, and has the batches of `writer` behind it."""
    (copy / FIRST_SEGMENT).unlink()
    (copy / f"{snapshot.end:020}-{snapshot.epoch:010}.checkpoint").write_bytes(snapshot.data)
    (copy / f"{snapshot.end:020}.log").write_bytes(writer.data[len(snapshot.data) :])


def test_copy_that_begins_with_a_snapshot_says_where(tmp_path: Path, log) -> None:
    store(tmp_path, b1=log(1, 2), b2=log(1, 2), b3=log(1, 2))
    replace_by_snapshot(folder(tmp_path, "b3"), log(1, 2), log(1))
    rows, problems = states_of(tmp_path, {KRAFT: VERSION})
    assert rows == len(["/controller", "/controller_epoch", "topic", "state 0", "state 1"])
    assert not problems
    copies = pq.read_table(tmp_path / "evidence" / "metadata_logs").to_pylist()
    assert {(row["broker"], row["start"]) for row in copies} == {(1, 0), (2, 0), (3, 3)}
    assert [row["base"] for row in copies if row["broker"] == 3] == [3]


def test_copy_without_its_beginning_or_a_snapshot_is_a_problem(tmp_path: Path, log) -> None:
    store(tmp_path, b1=log(1, 2), b2=log(1, 2), b3=log(1, 2))
    replace_by_snapshot(folder(tmp_path, "b3"), log(1, 2), log(1))
    next(folder(tmp_path, "b3").glob("*.checkpoint")).unlink()
    (problem,) = states_of(tmp_path, {KRAFT: VERSION})[1]
    assert "b3" in problem
    assert "begins at offset 3 without a snapshot" in problem


def test_segments_of_a_copy_are_read_one_after_another(
    tmp_path: Path, state: QuorumState, log
) -> None:
    store(tmp_path, b1=log(1), b2=log(1), b3=log(1))
    assert leader_of(state) == "b1"
    for node in NODES:
        (folder(tmp_path, node) / f"{3:020}.log").write_bytes(log(1, 2).data[len(log(1).data) :])
    assert leader_of(state) == "b2"


VOTE = {"leaderId": -1, "leaderEpoch": 2, "votedId": 3, "data_version": 0}


def test_votes_are_those_of_files_and_of_elected_leaders(tmp_path: Path, log) -> None:
    store(tmp_path, b1=log(1), b2=log(1), b3=log(1))
    file, journal = folder(tmp_path, "b2") / QUORUM_STATE, tmp_path / QUORUM_STATES
    watch = QuorumWatch(lambda: {2: file}, journal)
    watch.start()
    for state in (VOTE, VOTE | {"leaderId": 3, "votedId": -1}):
        before = journal.read_text() if journal.exists() else ""
        file.with_suffix(".tmp").write_text(json.dumps(state))
        file.with_suffix(".tmp").replace(file)
        until(lambda before=before: journal.exists() and journal.read_text() != before)
    watch.close()
    with journal.open("a") as lines:
        lines.write('{"broker": 9')  # the lab was killed
    assert not states_of(tmp_path, {KRAFT: VERSION})[1]
    rows = pq.read_table(tmp_path / "evidence" / "votes").to_pylist()
    names = ("broker", "epoch", "candidate", "leader", "voters")
    rows.sort(key=lambda row: (row["voters"] is None, row["position"]))
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, 1, 1, 1, 3), (2, 1, 1, 1, 3),
        (2, 2, 3, None, None), (2, 2, None, 3, None), (2, 2, None, 3, None),
    ]  # fmt: skip


def test_damaged_quorum_state_is_a_problem_that_names_its_file(tmp_path: Path, log) -> None:
    store(tmp_path, b1=log(1), b2=log(1), b3=log(1))
    (folder(tmp_path, "b3") / QUORUM_STATE).write_text('{"leaderEp')
    (problem,) = states_of(tmp_path, {KRAFT: VERSION})[1]
    assert "b3" in problem
    assert "quorum-state is damaged" in problem


@pytest.mark.parametrize("node", NODES)
def test_damaged_copy_is_a_problem_that_names_its_file(tmp_path: Path, log, node: str) -> None:
    """Its later batches would count as lost."""
    store(tmp_path, b1=log(1, 2), b2=log(1, 2), b3=log(1, 2))
    file = folder(tmp_path, node) / FIRST_SEGMENT
    file.write_bytes(file.read_bytes()[:-5])
    (problem,) = states_of(tmp_path, {KRAFT: VERSION})[1]
    assert node in problem
    assert "is cut" in problem


def test_metadata_log_without_a_known_release_is_a_problem(tmp_path: Path, log) -> None:
    store(tmp_path, b1=log(1), b2=log(1), b3=log(1))
    rows, problems = states_of(tmp_path, {})
    assert rows == 0
    assert problems == ["the metadata log cannot be read: run.json names no release"]
