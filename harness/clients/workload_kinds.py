"""The kinds of workloads: which clients a scenario's `WorkloadSpec.kind` starts.

Each client kind declares how many of its clients a scenario starts (`harness/clients/kind.py`).
This module has the numbers that several client kinds use.
"""

from __future__ import annotations

import msgspec

from urteil.chaos.similar_names import suggest
from urteil.harness.clients.options import CopierOptions, GroupOptions
from urteil.harness.scenario import WorkloadSpec


class WorkloadKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of workload: what its producers send and what consumes the records. With
    `has_tombstones` producers send tombstones to compacted topics; if it `is_transactional`, every
    producer writes in transactions."""

    name: str
    producers: str
    consumers: str
    has_tombstones: bool = False
    is_transactional: bool = False


PIPELINE, APPLICATION = "pipeline", "application"
WITH_APPLICATION = (PIPELINE, APPLICATION)
"""The kinds whose records an application processes: they have no headers."""

READERS = "readers of every partition from its start"

WORKLOAD_KINDS = {
    kind.name: kind
    for kind in (
        WorkloadKind(
            name="append", producers="records over all partitions at a rate", consumers=READERS
        ),
        WorkloadKind(
            name="group",
            producers="records over all partitions at a rate",
            consumers="members of one consumer group",
        ),
        WorkloadKind(
            name="compacted",
            producers="updates and deletions of keys",
            consumers=READERS,
            has_tombstones=True,
        ),
        WorkloadKind(name="bulk", producers="a number of records at full speed", consumers=READERS),
        WorkloadKind(
            name="pipeline",
            producers="records into an application's input",
            consumers="the application, and readers of input and output",
        ),
        WorkloadKind(
            name="application",
            producers="records into the inputs of a declared application",
            consumers="the application, and readers of inputs and copies",
        ),
        WorkloadKind(
            name="transactions",
            producers="records and reads in transactions",
            consumers="readers of committed records, and with a second topic a copying group",
            is_transactional=True,
        ),
        WorkloadKind(
            name="list-append",
            producers="appends to several partitions and reads of several, in transactions",
            consumers="the same transactions, and readers of committed records",
            is_transactional=True,
        ),
        WorkloadKind(
            name="commits",
            producers="records over all partitions at a rate",
            consumers="clients that commit and fetch offsets of two groups without members",
        ),
        WorkloadKind(
            name="share",
            producers="records over all partitions at a rate",
            consumers="members of one share group",
        ),
        WorkloadKind(
            name="mixed",
            producers="records, and deletions in compacted topics",
            consumers="readers, and a consumer group",
            has_tombstones=True,
        ),
    )
}


def has_tombstones(kind: str) -> bool:
    """Whether producers of this kind of workload send tombstones; False for an unknown kind."""
    return kind in WORKLOAD_KINDS and WORKLOAD_KINDS[kind].has_tombstones


def is_transactional(kind: str) -> bool:
    """Whether every producer of this kind of workload writes in transactions."""
    return kind in WORKLOAD_KINDS and WORKLOAD_KINDS[kind].is_transactional


def check_workload_kind(kind: str) -> None:
    """Raise ValueError for a kind that does not exist."""
    if kind not in WORKLOAD_KINDS:
        hint = suggest(kind, WORKLOAD_KINDS)
        raise ValueError(f"workload kind {kind!r} does not exist; {hint}")


def member_count(load: WorkloadSpec) -> int:
    """The number of group members at the start."""
    if load.kind == "mixed":
        return GroupOptions.of(load).members
    if load.kind == "application":
        return GroupOptions.of(load).members if "members" in load.options else 0
    return load.consumers if load.kind == "group" else 0


def share_member_count(load: WorkloadSpec) -> int:
    """The number of share group members at the start."""
    return load.consumers if load.kind == "share" else 0


def copier_count(load: WorkloadSpec) -> int:
    """The number of copiers, which need a second topic."""
    has_sink = load.kind == "transactions" and len(load.topics) > 1
    return CopierOptions.of(load).copiers if has_sink else 0


def committer_count(load: WorkloadSpec) -> int:
    """The number of committers."""
    return load.consumers if load.kind == "commits" else 0
