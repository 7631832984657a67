"""Pairs of mirrored partitions, and the rules for translated offsets."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import TopicFact
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.mirrors import mirror_rows, translation_rows
from urteil.harness.verify.evidence import Row

ORDERS = TopicFact(name="orders", topic_id="o", partitions=2, replication_factor=1)
MIRROR = TopicFact(
    name="east.orders",
    topic_id="m",
    partitions=2,
    replication_factor=1,
    copies=True,
    cluster="west",
)
NUMBERS = {("o", 0): 0, ("o", 1): 1, ("m", 0): 2, ("m", 1): 3}
PAIR = [{"p": 2, "source_p": 0}]


def test_mirror_is_a_prefixed_topic_with_copies() -> None:
    assert mirror_rows([ORDERS, MIRROR], NUMBERS) == [*PAIR, {"p": 3, "source_p": 1}]
    own = TopicFact(name="out", topic_id="m", partitions=2, replication_factor=1, copies=True)
    assert mirror_rows([ORDERS, own], NUMBERS) == []


def commit(topic_id: str, offset: int, at_ns: int, outcome: str = "ok") -> Row:
    place = {"topic_id": topic_id, "partition": 0, "group": "g", "outcome": outcome}
    return place | {"offset": offset, "invoke_ns": at_ns, "complete_ns": at_ns + 1}


def translated(tmp_path: Path, commits: list[Row], reads: list[Row]) -> list[tuple[int, int]]:
    for table, rows in {"commits": commits, "commit_reads": reads}.items():
        evidence.write_rows(tmp_path / "evidence" / table, SCHEMAS[table], rows)
    rows = translation_rows(tmp_path, PAIR, NUMBERS)
    return [(row["position"], row["processed"]) for row in rows]


def test_translation_is_compared_with_earlier_commits(tmp_path: Path) -> None:
    commits = [commit("o", 5, 10), commit("o", 9, 20), commit("o", 99, 15, "fail")]
    reads = [commit("m", 4, 12), commit("m", 4, 30), commit("m", 8, 30), commit("m", 2, 5)]
    assert translated(tmp_path, commits, reads) == [(2, 0), (4, 5), (8, 9)]


def test_own_commits_in_the_mirror_are_no_translations(tmp_path: Path) -> None:
    commits = [commit("o", 5, 10), commit("m", 7, 40)]
    reads = [commit("m", 4, 12), commit("m", 7, 45), commit("m", -1, 12), commit("o", 5, 12)]
    assert translated(tmp_path, commits, reads) == [(4, 5)]
