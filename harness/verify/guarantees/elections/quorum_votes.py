"""A controller of KRaft's quorum votes at most once an epoch, and a majority elects.

A controller that loses its vote, say in a crash, can elect two candidates in one epoch. So it
stores epoch and vote in its file `quorum-state` before it answers. The lab watches these files,
whose former versions leave no trace; it may miss a version of short duration. The votes that an
elected leader lists in the batch that begins its epoch are exact.

A controller that knows the epoch's leader may lose its vote: it grants no vote then. In a dynamic
quorum a controller that lost its disk is another voter: it has another directory id, and votes only
after it was added (KIP-853)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_GRANTED = "COUNT(DISTINCT CASE WHEN candidate = leader THEN broker END)"


def _explain(row: Mapping[str, Any]) -> str:
    sentences = {
        "voted twice": f"Controller {row['broker']} voted for {row['candidate']} and for "
        f"{row['other']} in epoch {row['epoch']} of the quorum.",
        "two leaders": f"In epoch {row['epoch']} of the quorum, controllers {row['candidate']} and "
        f"{row['other']} were both known as its leader.",
        "no majority": f"Controller {row['candidate']} became leader of the quorum in epoch "
        f"{row['epoch']} with the votes of {row['granted']} of {row['voters']} voters.",
        "epoch went back": f"The stored epoch of controller {row['broker']} fell from "
        f"{row['other']} to {row['epoch']}.",
    }
    return sentences[row["sub_kind"]]


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """One candidate for each epoch and voter, one leader for each epoch, more than half of the
    voters for it, and rising epochs in each file."""
    candidates: dict[tuple[int, int, str | None], set[int]] = defaultdict(set)
    leaders: dict[int, set[int]] = defaultdict(set)
    elections: dict[tuple[int, int | None], list[Row]] = defaultdict(list)
    files: dict[tuple[int, str | None], list[Row]] = defaultdict(list)
    for row in history.votes:
        if row.candidate is not None:
            candidates[row.epoch, row.broker, row.get("directory")].add(row.candidate)
        if row.leader is not None:
            leaders[row.epoch].add(row.leader)
        if row.voters is None:
            files[row.broker, row.get("directory")].append(row)
        else:
            elections[row.epoch, row.leader].append(row)
    for (epoch, voter, _), voted_for in candidates.items():
        if len(voted_for) > 1:
            yield Violation("voted twice", subject=subject_text(epoch, voter))
    for epoch, epoch_leaders in leaders.items():
        if len(epoch_leaders) > 1:
            yield Violation("two leaders", subject=subject_text(epoch, None))
    for (epoch, leader), votes in elections.items():
        granted = {
            vote.broker for vote in votes
            if vote.candidate is not None and vote.candidate == leader
        }  # fmt: skip
        if 2 * len(granted) <= max(vote.voters for vote in votes):
            yield Violation("no majority", subject=subject_text(epoch, None))
    for (voter, _), versions in files.items():
        for before, row in pairwise(sorted(versions, key=lambda row: int(row.position))):
            if row.epoch < before.epoch:
                yield Violation("epoch went back", subject=subject_text(row.epoch, voter))


GUARANTEE = Guarantee(
    name="quorum_votes",
    rank=66,
    about="a controller of a KRaft quorum votes twice, or a leader lacks a majority of votes",
    promise="A voter of the quorum votes for at most one candidate an epoch and never returns to "
    "an earlier epoch, and a majority of the voters elects the one leader of an epoch.",
    source="KIP-595; Raft: election safety",
    sub_kinds={
        "voted twice": "a controller voted for two candidates in one epoch",
        "two leaders": "controllers stored different leaders of one epoch",
        "no majority": "a leader lists the votes of half of the voters or less",
        "epoch went back": "the epoch in a controller's file falls",
    },
    details=(
        "Judged are clusters of the lab without ZooKeeper, whose controllers' disks it reads.",
        "The lab looks at the controllers' files every 20 ms and may miss a version that stood "
        "shorter.",
    ),
    occasion=Occasion.QUORUM,
    opportunities="SELECT COUNT(*) AS n FROM votes WHERE candidate IS NOT NULL",
    violations=f"""
SELECT 'voted twice' AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off,
  MIN(at_ns) AS at_ns, MAX(at_ns) AS until_ns, epoch, broker, MIN(candidate) AS candidate,
  MAX(candidate) AS other, CAST(NULL AS BIGINT) AS granted, CAST(NULL AS INT) AS voters
FROM votes WHERE candidate IS NOT NULL GROUP BY epoch, broker, directory
HAVING MIN(candidate) <> MAX(candidate)
UNION ALL
SELECT 'two leaders', NULL, NULL, MIN(at_ns), MAX(at_ns), epoch, NULL, MIN(leader), MAX(leader),
  NULL, NULL
FROM votes WHERE leader IS NOT NULL GROUP BY epoch HAVING MIN(leader) <> MAX(leader)
UNION ALL
SELECT 'no majority', NULL, NULL, MIN(at_ns), MAX(at_ns), epoch, NULL, leader, NULL, {_GRANTED},
  MAX(voters)
FROM votes WHERE voters IS NOT NULL GROUP BY epoch, leader HAVING 2 * {_GRANTED} <= MAX(voters)
UNION ALL
SELECT 'epoch went back', NULL, NULL, at_ns, at_ns, epoch, broker, NULL, former_epoch, NULL, NULL
FROM (SELECT *, LAG(epoch) OVER (PARTITION BY broker, directory ORDER BY position) AS former_epoch
      FROM votes WHERE voters IS NULL) versions
WHERE epoch < former_epoch""",
    explain=_explain,
    tie="finding.epoch, finding.broker, finding.candidate, finding.other",
    needs=("votes",),
    reads=("votes",),
    rests_on=("votes",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.epoch, violation.broker)",
)
