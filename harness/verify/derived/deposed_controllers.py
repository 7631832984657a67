"""Leaders of KRaft's quorum that go on after another one was elected.

A leader without requests from a majority of the voters for one and a half times
`controller.quorum.fetch.timeout.ms` must resign (KAFKA-15489), also where it cannot learn of its
successor. Its file `quorum-state` then names another epoch or no leader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from urteil.chaos.topology import node_name
from urteil.harness.scenario import Scenario
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import undisturbed_between
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.limits import SECOND_NS

SLACK_S = 10.0
"""For the election that a leader begins after it resigned, and for a slow host."""


def deposed_rows(votes: Sequence[Row], faults: Sequence[Row], scenario: Scenario) -> list[Row]:
    """Rows of the table `deposed_controllers`: for each leader that had a successor, the longest
    time from the successor's election to the next version of its own file in which no fault acted
    on it itself. A fault on links does not count as one."""
    versions = [vote for vote in votes if vote["voters"] is None]
    versions.sort(key=lambda vote: int(vote["position"]))
    files: dict[tuple[int, str | None], list[Row]] = defaultdict(list)
    for vote in versions:
        files[vote["broker"], vote.get("directory")].append(vote)
    timeout_ms = float(setting(None, scenario, "controller.quorum.fetch.timeout.ms"))
    limit_s = 1.5 * timeout_ms / 1000 + SLACK_S
    rows = []
    for (voter, _), own in files.items():
        for version, following in pairwise(own):
            elected = _next_election(version, versions) if version["leader"] == voter else None
            if elected is not None and elected["at_ns"] < following["at_ns"]:
                busy = (acting_interval(fault) for fault in _faults_on(node_name(voter), faults))
                parts = undisturbed_between(busy, elected["at_ns"], following["at_ns"])
                longest = max(parts, key=lambda part: part.end_ns - part.begin_ns, default=None)
                if longest is not None:
                    lasted_ns = longest.end_ns - longest.begin_ns
                    rows.append(
                        {"node": voter, "epoch": version["epoch"], "next_epoch": elected["epoch"]}
                        | {"next_leader": elected["leader"], "limit_s": limit_s}
                        | {"from_ns": longest.begin_ns, "to_ns": longest.end_ns}
                        | {"late": int(lasted_ns > limit_s * SECOND_NS)}
                    )
    return rows


def _next_election(version: Row, versions: Sequence[Row]) -> Row | None:
    """The first file that names another leader of a later epoch."""
    later = (
        vote
        for vote in versions
        if vote["epoch"] > version["epoch"] and vote["leader"] not in (None, version["leader"])
    )
    return min(later, key=lambda vote: int(vote["at_ns"]), default=None)


def _faults_on(node: str, faults: Sequence[Row]) -> Iterator[Row]:
    return (fault for fault in faults if fault["acted"] and node in targets_of(fault))
