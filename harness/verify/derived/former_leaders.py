"""Former leaders that remain in the ISR after the controller elected another leader."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from urteil.harness.verify.limits import SECOND_NS

Row = dict[str, Any]
Numbers = Mapping[tuple[str, int], int]
"""Topic id and partition to the partition's number."""

KIND = "kept in sync"
SETTLES_NS = 5 * SECOND_NS
_IDS = "/brokers/ids/"


def departed_leader_rows(states: Iterable[Row], numbers: Numbers, end_ns: int) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`, in ZooKeeper's order: one for each election after a leader
    whose registration no longer existed. It is late where the next ISR contains that leader.

    A row is left out where the controller's next epoch removes the former leader, or may have been
    about to: the controller then moved the leadership for another reason, and learned of the
    departure a moment later.
    """
    away: set[int] = set()
    last: dict[str, Row] = {}
    undecided: dict[str, Row] = {}
    for row in sorted(states, key=lambda row: int(row["zxid"])):
        path = str(row["path"])
        if path.startswith(_IDS):
            broker = int(path.removeprefix(_IDS))
            away = away | {broker} if row["version"] == -1 else away - {broker}
        elif row["partition"] is not None:
            before = last.get(path)
            if (departed := undecided.pop(path, None)) and not _raises(before, row):
                yield _row(numbers, departed, late=True)
            last[path] = row
            if before is None or not _raises(before, row) or before["leader"] not in away:
                continue
            if row["leader"] in (None, -1, before["leader"]):
                continue
            departed = row | {"departed": before["leader"]}
            if before["leader"] in json.loads(row["isr"] or "[]"):
                undecided[path] = departed
            else:
                yield _row(numbers, departed, late=False)
    for departed in undecided.values():
        yield _row(numbers, departed, late=departed["at_ns"] + SETTLES_NS < end_ns)


def _raises(before: Row | None, row: Row) -> bool:
    """Whether this version of a state begins another leader epoch. Only controllers do that."""
    epochs = (before["leader_epoch"] if before else None, row["leader_epoch"])
    return None not in epochs and bool(epochs[1] > epochs[0])


def _row(numbers: Numbers, row: Row, *, late: bool) -> Row:
    place = f"{row['topic']}-{row['partition']}"
    return {
        "kind": KIND, "p": numbers.get((row["topic_id"], row["partition"])),
        "from_ns": row["at_ns"], "to_ns": row["at_ns"],
        "task": f"Broker {row['departed']} had left, and broker {row['leader']} was elected to "
        f"lead {place} in epoch {row['leader_epoch']}",
        "shortfall": f"the ISR was still {row['isr']}" if late else None,
        "limit_s": 0.0, "late": int(late),
    }  # fmt: skip
