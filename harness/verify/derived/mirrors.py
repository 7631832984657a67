"""Mirrors between two clusters: pairs of partitions, and translated committed offsets.

A topic with `copies` named `east.T` mirrors the topic `T` of the cluster `east`, partition by
partition (`DefaultReplicationPolicy` of MirrorMaker).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from urteil.harness.scenario import TopicFact
from urteil.harness.verify import evidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS

Key = tuple[str, int]


def mirror_rows(topics: Sequence[TopicFact], numbers: Mapping[Key, int]) -> list[Row]:
    """Rows of the table `mirrors`."""
    sources = {f"{topic.cluster}.{topic.name}": topic for topic in topics}
    return [
        {"p": numbers[topic.topic_id, n], "source_p": numbers[source.topic_id, n]}
        for topic in topics
        if topic.copies and (source := sources.get(topic.name)) is not None
        for n in range(min(topic.partitions, source.partitions))
    ]


def translation_rows(
    run_dir: Path, mirrors: Sequence[Row], numbers: Mapping[Key, int]
) -> list[Row]:
    """Rows of the table `translations`: each position of a group in a mirror that a read returned,
    at its first read, with the position up to which the group may have processed the source by
    then. Positions that the group itself commits in the mirror later are not translations."""
    source_of = {row["p"]: row["source_p"] for row in mirrors}
    if not source_of:
        return []
    commits: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in evidence.rows(run_dir, "commits"):
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None and row["outcome"] != "fail" and None not in (
            row["invoke_ns"], row["offset"]
        ):  # fmt: skip
            commits[row["group"], p].append((row["invoke_ns"], row["offset"]))
    first: dict[tuple[str, int, int], Row] = {}
    for row, p in _shown_positions(run_dir, source_of, numbers):
        own_ns = min((at_ns for at_ns, _ in commits[row["group"], p]), default=FOREVER_NS)
        if row["complete_ns"] < own_ns:
            key = row["group"], p, row["offset"]
            if key not in first or row["complete_ns"] < first[key]["complete_ns"]:
                first[key] = row
    return [
        {
            "grp": group, "p": p, "source_p": source_of[p], "position": position,
            "processed": max(
                (offset for at_ns, offset in commits[group, source_of[p]]
                 if at_ns <= row["complete_ns"]),
                default=0,
            ),
            "at_ns": row["invoke_ns"], "until_ns": row["complete_ns"],
        }
        for (group, p, position), row in sorted(first.items())
    ]  # fmt: skip


def _shown_positions(
    run_dir: Path, source_of: Mapping[int, int], numbers: Mapping[Key, int]
) -> Iterator[tuple[Row, int]]:
    """Reads that returned a committed offset of a mirror, each with its partition."""
    for row in evidence.rows(run_dir, "commit_reads"):
        p = numbers.get((row["topic_id"], row["partition"]))
        is_shown = row["outcome"] == "ok" and (row["offset"] or -1) >= 0
        if (
            p is not None
            and p in source_of
            and is_shown
            and None not in (row["invoke_ns"], row["complete_ns"])
        ):
            yield row, p
