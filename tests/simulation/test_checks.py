"""Every check passes what is sound and finds the one thing that is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from tests.simulation import (
    administration_damage,
    deletion_damage,
    disk_damage,
    group_damage,
    interval_damage,
    lookup_damage,
    recovery_damage,
)
from tests.simulation.administration_damage import administer
from urteil.broker.wire.batches import build_batch
from urteil.suites.simulation import checks, play
from urteil.suites.simulation.checks import ROWS, Finding, judge
from urteil.suites.simulation.cluster import EPOCH_MS
from urteil.suites.simulation.evidence import (
    COMMITTED,
    OFFSETS_STATE,
    Evidence,
    Glimpse,
    Promises,
    Replica,
)
from urteil.suites.simulation.history import (
    Answer,
    Assignment,
    Commit,
    CommitRead,
    History,
    Questioned,
    Read,
    Send,
    Txn,
)
from urteil.suites.simulation.mixes import REPLICATION, Scale
from urteil.suites.simulation.scenario import simulate
from urteil.suites.simulation.zookeeper import Change

PLACE = ("t", 0)
PRODUCER = 7
SECOND_NS = 1_000_000_000


def send(n: int, **other: object) -> Send:
    """The n-th send: one record at offset n, taken by broker 1 between n and n + 0.5 s."""
    given = {"client": "p", "topic": "t", "partition": 0, "values": (f"v{n}",), "begin_s": float(n),
             "end_s": n + 0.5, "outcome": "ok", "offset": n, "node": 1, "producer_id": PRODUCER,
             "sequence": n, "attempts": 1}  # fmt: skip
    return Send(**(given | other))  # type: ignore[arg-type]


def read(n: int, value: str = "", key: str | None = None) -> Read:
    return Read("r", "t", 0, n, value or f"v{n}", 0, 100.0 + n, key, EPOCH_MS + 1000 * n)


def replica(
    broker: int, *records: tuple[int, str, int, int], keys: Mapping[str, str] | None = None
) -> Replica:
    """Records as (offset, value, epoch, sequence), one a batch, with the keys of their values."""
    bytes_of = {value: key.encode() for value, key in (keys or {}).items()}
    batches = [
        (offset, build_batch([(bytes_of.get(value), value.encode(), (), EPOCH_MS + 1000 * offset)],
                             base_offset=offset, leader_epoch=epoch, producer_id=PRODUCER,
                             producer_epoch=0, base_sequence=sequence))
        for offset, value, epoch, sequence in records
    ]  # fmt: skip
    return Replica(broker, tuple(batches), len(records))


def state(zxid: int, leader: int, isr: list[int], epoch: int, controller: int = 1) -> Change:
    value = {"leader": leader, "isr": isr, "leader_epoch": epoch, "controller_epoch": controller}
    path = "/brokers/topics/t/partitions/0/state"
    return Change(float(zxid), zxid, path, json.dumps(value).encode(), zxid)


def sound() -> Evidence:
    records = [(n, f"v{n}", 0, n) for n in range(4)]
    return Evidence(
        history=History(sends=[send(n) for n in range(4)], reads=[read(n) for n in range(4)]),
        changes=[state(0, 1, [1, 2, 3], 0)],
        final={PLACE: [read(n) for n in range(4)]},
        replicas={PLACE: [replica(1, *records), replica(2, *records)]},
        glimpses=[Glimpse(n / 2, 1, PLACE, 0, (1, 2, 3), False) for n in range(10)],
        min_isr=2,
        healthy_s=0.0,
    )


def findings_of(evidence: Evidence) -> list[Finding]:
    """What the checks found, none of which may fail."""
    findings, errors = judge(evidence)
    assert not errors
    return findings


def lose(evidence: Evidence) -> None:
    evidence.final[PLACE].pop()


def take_back(evidence: Evidence) -> None:
    """A send of unknown outcome was read, and is not there in the end."""
    evidence.history.sends.append(send(4, outcome="info", sequence=-1, producer_id=-1))
    evidence.history.reads.append(read(2, "v4"))


def invent(evidence: Evidence) -> None:
    evidence.final[PLACE].append(read(4, "nobody's"))


def show_what_failed(evidence: Evidence) -> None:
    evidence.history.sends.append(send(4, outcome="fail", offset=-1))
    evidence.final[PLACE].append(read(4))


def repeat(evidence: Evidence) -> None:
    evidence.final[PLACE].append(read(4, "v1"))


def reread(evidence: Evidence) -> None:
    evidence.history.reads.append(read(2, "v3"))


def store(evidence: Evidence, *records: tuple[int, str, int, int]) -> None:
    """Both replicas have these records."""
    evidence.replicas[PLACE] = [replica(1, *records), replica(2, *records)]


def skip(evidence: Evidence) -> None:
    store(evidence, (0, "v0", 0, 0), (1, "v1", 0, 1), (9, "v3", 0, 3))


def swap(evidence: Evidence) -> None:
    store(evidence, (0, "v0", 0, 0), (1, "v2", 0, 2), (2, "v1", 0, 1), (3, "v3", 0, 3))


def misplace(evidence: Evidence) -> None:
    evidence.history.sends[1].offset = 2


def acknowledge_beyond_the_end(evidence: Evidence) -> None:
    evidence.history.sends.append(send(9))


def lose_one_of_two(evidence: Evidence) -> None:
    store(evidence, (0, "v0", 0, 0), (2, "v2", 0, 2), (3, "v3", 0, 3))


def read_before_the_send(evidence: Evidence) -> None:
    evidence.history.reads[3] = replace(read(3), at_s=1.0)


def begin_at_five(evidence: Evidence) -> None:
    evidence.replicas[PLACE][1] = replica(2, (0, "v0", 0, 5))


def jump(evidence: Evidence) -> None:
    evidence.replicas[PLACE][0] = replica(1, (0, "v0", 0, 0), (1, "v1", 0, 5))


def append_late(evidence: Evidence) -> None:
    evidence.history.sends.append(send(9, client="q", producer_id=-1, offset=1))


def diverge(evidence: Evidence) -> None:
    evidence.replicas[PLACE][1] = replica(2, *[(n, f"w{n}", 0, n) for n in range(4)])


def begin_twice(evidence: Evidence) -> None:
    for broker, start in ((1, 2), (2, 3)):
        records = [(n, f"v{n}", int(n >= start), n) for n in range(4)]
        evidence.replicas[PLACE][broker - 1] = replica(broker, *records)


def take_both(evidence: Evidence) -> None:
    evidence.history.sends[2] = send(2, node=3)


def go_back(evidence: Evidence) -> None:
    evidence.changes += [state(1, 1, [1, 2], 5), state(2, 1, [1, 2], 4)]


def elect_a_stranger(evidence: Evidence) -> None:
    evidence.changes += [state(1, 1, [1], 1), state(2, 2, [2], 2)]


def be_alone(evidence: Evidence) -> None:
    evidence.glimpses[:] = [replace(glimpse, isr=(1,)) for glimpse in evidence.glimpses]


def stall(evidence: Evidence) -> None:
    evidence.troubles.append("nothing moved")


def txn(number: int, **other: object) -> Txn:
    """A transaction of the client p, committed from 100 s on."""
    given = {"client": "p", "session": 0, "number": number, "transactional_id": "x",
             "producer_id": PRODUCER, "epoch": 0, "begin_s": 3.0, "init_invoke_s": 1.0,
             "init_s": 2.0, "commit_s": 100.0, "end_s": 101.0, "outcome": "committed"}  # fmt: skip
    return Txn(**(given | other))  # type: ignore[arg-type]


def with_txn(evidence: Evidence) -> None:
    """The third record is one of a transaction, which readers of committed records receive."""
    evidence.history.txns.append(txn(1))
    evidence.history.sends[3].txn = 1
    evidence.history.readers_of_committed += ["r", COMMITTED]
    evidence.committed[PLACE] = [read(n) for n in range(4)], 4


def tear(evidence: Evidence) -> None:
    with_txn(evidence)
    evidence.committed[PLACE][0].pop()


def read_too_early(evidence: Evidence) -> None:
    with_txn(evidence)
    evidence.history.reads[3] = replace(read(3), at_s=99.0)


def write_after_the_successor(evidence: Evidence) -> None:
    with_txn(evidence)
    evidence.history.txns.append(
        txn(2, session=1, epoch=1, init_invoke_s=2.2, init_s=2.5, outcome="aborted", commit_s=-1.0)
    )


def hold_back(evidence: Evidence) -> None:
    with_txn(evidence)
    evidence.txns_over_s = 200.0
    evidence.history.answers += [
        Answer("a", *PLACE, "latest", 4, 1, 198.0, 199.0),
        Answer("a", *PLACE, "stable", 3, 1, 201.0, 202.0),
    ]


def assign(client: str, generation: int, at_s: float, event: str = "assigned") -> Assignment:
    return Assignment(client, generation, f"id of {client}", event, *PLACE, at_s)


def commit(client: str, generation: int, offset: int, at_s: float) -> Commit:
    return Commit(
        client, generation, f"id of {client}", *PLACE, offset, at_s, at_s + 0.1, "ok", None
    )


def with_group(evidence: Evidence) -> None:
    """Member a commits 5, then member b gets the partition and commits 7."""
    offsets = json.dumps({"leader": 1, "isr": [1, 2], "leader_epoch": 0, "controller_epoch": 1})
    evidence.changes.append(Change(0.0, 0, OFFSETS_STATE, offsets.encode(), 0))
    history = evidence.history
    history.assignments += [assign("a", 1, 1.0), assign("b", 2, 5.0)]
    history.commits += [commit("a", 1, 5, 2.0), commit("b", 2, 7, 6.0)]
    history.commit_reads.append(CommitRead("c", *PLACE, 7, 1, 8.0, 8.1))


def forget_a_commit(evidence: Evidence) -> None:
    with_group(evidence)
    evidence.history.commit_reads.append(CommitRead("c", *PLACE, 3, 1, 9.0, 9.1))


def fall_back(evidence: Evidence) -> None:
    with_group(evidence)
    evidence.history.assignments.append(assign("b", 1, 9.0))


def own_together(evidence: Evidence) -> None:
    with_group(evidence)
    evidence.history.assignments.append(assign("a", 2, 5.0))


def commit_as_a_zombie(evidence: Evidence) -> None:
    with_group(evidence)
    evidence.history.commits.append(commit("a", 1, 8, 7.0))


KEYS = {"v0": "a", "v1": "a", "v2": "b", "v3": "b"}


def compact(evidence: Evidence, *kept: tuple[int, str], tombstones: str = "") -> None:
    """The topic is compacted; what is left of two values of two keys, at which offset."""
    evidence.promises = Promises({"cleanup.policy": "compact"})
    for each in evidence.history.sends:
        each.keys = tuple(KEYS[value] for value in each.values)
        each.tombstones = frozenset({tombstones} & {*each.values})
    evidence.history.reads = [read(n, key=KEYS[f"v{n}"]) for n in range(4)]
    records = [(offset, value, 0, int(value[1:])) for offset, value in kept]
    logs = [replica(broker, *records, keys=KEYS) for broker in (1, 2)]
    evidence.replicas[PLACE] = [replace(log, watermark=4, segments=(0, 4)) for log in logs]
    evidence.final[PLACE] = [read(offset, value, KEYS[value]) for offset, value in kept]


def compact_well(evidence: Evidence) -> None:
    compact(evidence, (1, "v1"), (3, "v3"))


def lose_a_key(evidence: Evidence) -> None:
    compact(evidence, (1, "v1"))


def keep_the_older_value(evidence: Evidence) -> None:
    compact(evidence, (1, "v1"), (2, "v2"))


def lose_a_tombstone(evidence: Evidence) -> None:
    compact(evidence, (1, "v1"), tombstones="v3")
    longer(evidence)


def lose_a_tombstone_alone(evidence: Evidence) -> None:
    compact(evidence, (1, "v1"), (2, "v2"), tombstones="v3")
    longer(evidence)


def longer(evidence: Evidence) -> None:
    """The logs go on behind the tombstone."""
    evidence.history.sends.append(send(4, keys=("c",)))
    last = replica(1, (4, "v4", 0, 4), keys={"v4": "c"}).batches
    evidence.replicas[PLACE] = [
        replace(log, batches=(*log.batches, *last), watermark=5) for log in evidence.replicas[PLACE]
    ]
    evidence.final[PLACE].append(read(4, key="c"))


def clean_the_active_segment(evidence: Evidence) -> None:
    compact_well(evidence)
    evidence.replicas[PLACE] = [replace(log, segments=(0, 2)) for log in evidence.replicas[PLACE]]


def renumber(evidence: Evidence) -> None:
    compact(evidence, (0, "v1"), (3, "v3"))


def limit(evidence: Evidence, ends_s: float, log_start: int = 0, **configs: str) -> None:
    """The topic has limits. Its segments begin at 0 and 2."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    evidence.promises = Promises(named, late_s=1.0, calm_s=4.0, ends_s=ends_s)
    logs = evidence.replicas[PLACE]
    evidence.replicas[PLACE] = [
        replace(
            log,
            batches=tuple(each for each in log.batches if each[0] >= log_start),
            log_start=log_start,
            segments=(0, 2) if log_start < 2 else (2,),
        )
        for log in logs
    ]
    evidence.final[PLACE] = [each for each in evidence.final[PLACE] if each.offset >= log_start]
    evidence.begins["final", PLACE] = log_start


def expire_in_time(evidence: Evidence) -> None:
    limit(evidence, ends_s=100.0, log_start=2, retention_ms="25000", segment_bytes="3000")


def expire_too_early(evidence: Evidence) -> None:
    limit(evidence, ends_s=5.0, log_start=2, retention_ms="25000")


def never_expire(evidence: Evidence) -> None:
    limit(evidence, ends_s=100.0, retention_ms="25000")


def never_roll(evidence: Evidence) -> None:
    limit(evidence, ends_s=5.0, segment_bytes="100")


def answer_wrong(evidence: Evidence) -> None:
    """A question is answered wrong for ten seconds."""
    wrong = Questioned("examiner", 0, 10 * SECOND_NS, 2, "heartbeats", "wrong", "No, not Fenced")
    evidence.history.questioned.append(wrong)


DAMAGE: dict[Callable[[Evidence], None], str] = {
    answer_wrong: "wrong_answer",
    lose: "lost_write",
    take_back: "vanished_read",
    invent: "phantom",
    show_what_failed: "aborted_read",
    repeat: "duplicate",
    reread: "inconsistent_offset",
    skip: "hole",
    swap: "reordered_send",
    misplace: "misplaced_ack",
    acknowledge_beyond_the_end: "unseen",
    lose_one_of_two: "causal_loss",
    read_before_the_send: "future_read",
    begin_at_five: "sequence_gap",
    jump: "sequence_gap",
    append_late: "stale_append",
    diverge: "replica_divergence",
    begin_twice: "epoch_lineage",
    take_both: "two_leaders",
    go_back: "epoch_went_back",
    elect_a_stranger: "unclean_leader",
    be_alone: "ack_below_min_isr",
    stall: "no_progress",
    tear: "torn_txn",
    read_too_early: "precommitted_read",
    write_after_the_successor: "zombie_write",
    hold_back: "hanging_txn",
    forget_a_commit: "commit_went_back",
    fall_back: "generation_went_back",
    own_together: "two_owners",
    commit_as_a_zombie: "zombie_commit",
    lose_a_key: "latest_value_lost",
    keep_the_older_value: "stale_value_visible",
    lose_a_tombstone: "tombstone_too_early",
    lose_a_tombstone_alone: "resurrected_key",
    clean_the_active_segment: "compacted_too_early",
    renumber: "offset_renumbered",
    expire_too_early: "retained_too_short",
    never_expire: "kept_too_long",
    never_roll: "segment_not_rolled",
}


def test_correct_history_passes() -> None:
    assert findings_of(sound()) == []
    for whole in (with_txn, with_group, compact_well, expire_in_time, administer):
        evidence = sound()
        whole(evidence)
        assert findings_of(evidence) == []


def test_answer_of_a_deposed_coordinator_is_not_judged() -> None:
    evidence = sound()
    with_group(evidence)
    evidence.history.commit_reads.append(CommitRead("c", *PLACE, 3, 2, 9.0, 9.1))
    assert findings_of(evidence) == []


def test_partition_without_a_leaders_log_is_no_progress() -> None:
    evidence = sound()
    del evidence.replicas[PLACE][0]
    assert {finding.guarantee for finding in findings_of(evidence)} == {"no_progress"}


def fail(*_: object) -> Iterator[str]:
    raise KeyError("p9")


def test_check_that_fails_is_an_error_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings of the other checks remain."""
    evidence = sound()
    lose(evidence)
    monkeypatch.setattr(checks, "LOCAL", (("ack_below_min_isr", fail), *checks.LOCAL))
    monkeypatch.setattr(checks, "_reference", {"hole": fail}.get)
    monkeypatch.setattr(checks, "REFERENCES", ("hole",))
    del evidence.replicas[PLACE][0]
    findings, errors = judge(evidence)
    assert [error.check for error in errors] == ["hole", "ack_below_min_isr"]
    assert errors[0].error.startswith("KeyError: 'p9' (test_checks.py, line ")
    assert {finding.guarantee for finding in findings} == {"no_progress"}


def test_evidence_that_makes_no_rows_is_an_error_of_the_lab() -> None:
    evidence = sound()
    evidence.changes.append(replace(state(9, 1, [1, 2], 0), data=b"{}"))
    assert [error.check for error in judge(evidence).errors][:1] == [ROWS]


def test_run_whose_check_fails_has_an_error_and_no_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "LOCAL", (("ack_below_min_isr", fail),))
    short = Scale(sends=20, faults_s=3.0)
    run = simulate(3, short)
    assert (run.findings, [error.check for error in run.errors]) == ([], ["ack_below_min_isr"])
    assert "the lab failed in ack_below_min_isr: KeyError" in str(run)
    play._print([run], play._Bug())
    row = json.loads(capsys.readouterr().out)
    assert (row["findings"], row["errors"][0]["mix"]) == ({}, REPLICATION)


def test_every_check_is_tried() -> None:
    others = (
        administration_damage,
        deletion_damage,
        disk_damage,
        group_damage,
        interval_damage,
        lookup_damage,
        recovery_damage,
    )
    tried = {name for each in others for name in each.DAMAGE.values()} | {*DAMAGE.values()}
    assert tried == {*checks.REFERENCES, *(name for name, _ in checks.LOCAL)}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_check_finds_its_anomaly(damage: Callable[[Evidence], None]) -> None:
    evidence = sound()
    damage(evidence)
    assert DAMAGE[damage] in {finding.guarantee for finding in findings_of(evidence)}
