"""Rows of `votes`: the votes of the controllers of KRaft's quorum.

They have two sources. A controller's file `quorum-state` has its epoch, its vote and the leader
that it knows; it is replaced at every change, so the lab watches it during the run. And the batch
that begins an epoch lists the epoch's voters and those that voted for the leader. Sources: KIP-595,
KIP-853, `ElectionState`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from urteil.harness.evidence.readers.metadata_copies import directory_of
from urteil.harness.evidence.readers.metadata_log import LEADER_CHANGE, MetadataRecord
from urteil.harness.protocol.message_schema import encode_uuid

QUORUM_STATE = "quorum-state"
"""The file's name, in the folder of the metadata log."""
AFTER_RUN = 1 << 40
"""The position of the file's content after the run: behind all observed versions."""
_NONE = -1
_WITH_DIRECTORIES = 1
"""The version of the file that a dynamic quorum has."""
_NO_DIRECTORY = encode_uuid(uuid.UUID(int=0))

Row = dict[str, Any]


def read_quorum_state(file: Path) -> Row:
    """Epoch, candidate and leader in a controller's file; None for no vote and no known leader. In
    a dynamic quorum also the id of the log directory: a controller with another disk is another
    voter.

    Raises FileNotFoundError, and ValueError for a file that is no quorum state.
    """
    try:
        state = json.loads(file.read_bytes())
        epoch, leader = int(state["leaderEpoch"]), int(state["leaderId"])
        candidate = int(state["votedId"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{QUORUM_STATE} is damaged: {error!r}") from error
    row = {"epoch": epoch, "candidate": _known_node(candidate), "leader": _known_node(leader)}
    is_dynamic = state.get("data_version", 0) >= _WITH_DIRECTORIES
    return row | {"directory": directory_of(file.parent) or None if is_dynamic else None}


def granted_votes(record: MetadataRecord) -> Iterator[Row]:
    """The votes that a leader's first record lists; a row without a candidate if it lists none. No
    rows for another record. `wall_ms` is the leader's. Before 3.9 voters have no directory."""
    if record.name != LEADER_CHANGE:
        return
    leader = record.fields["LeaderId"]
    granted = record.fields["GrantingVoters"]
    common = {
        "position": record.offset,
        "epoch": record.epoch,
        "leader": leader,
        "voters": len(record.fields["Voters"]),
        "wall_ms": record.wall_ms,
    }
    for voter in granted:
        directory = voter.get("VoterDirectoryId", _NO_DIRECTORY)
        yield common | {
            "broker": voter["VoterId"],
            "candidate": leader,
            "directory": None if directory == _NO_DIRECTORY else directory,
        }
    if not granted:
        yield common | {"broker": leader, "candidate": None, "directory": None}


def read_watched(file: Path) -> Iterator[Row]:
    """The rows that the lab wrote during the run, up to an incomplete line of a killed lab."""
    if not file.exists():
        return
    for number, line in enumerate(file.read_text().splitlines(keepends=True)):
        if not line.endswith("\n"):
            return
        yield {"position": number, **json.loads(line)}


def _known_node(node: int) -> int | None:
    return None if node == _NONE else node
