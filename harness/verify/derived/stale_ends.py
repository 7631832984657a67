"""Last stable offsets at a record of a complete transaction: rows of `stale_ends`.

When a coordinator accepts the next transaction of a producer, the markers of the previous one are
replicated. So a transaction is known to be complete at the first acknowledgement in a later one of
its client's session, whether it was committed or aborted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from urteil.harness.verify.derived.cycles import ORDER
from urteil.harness.verify.derived.dependency_graph import Txn, transaction_rows
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import CLOCK_SLACK_NS, FOREVER_NS

LOOKUP = "last stable offset"
"""The name of a lookup in a cycle."""
SINCE_VERSION = 5
"""From this version of ListOffsets on, a leader that does not know its end yet returns an error
(KIP-207)."""
Slot = tuple[int, int]


def stale_end_rows(
    run_dir: Path,
    answers: Sequence[Row],
    spans: Mapping[int, Sequence[Span]],
    numbers: Mapping[tuple[str, int], int],
    names: Mapping[int, str],
) -> list[Row]:
    """Rows of `stale_ends`, from rows of `answers`; `numbers` and `names` are those of
    partitions."""
    ends: dict[Slot, list[Row]] = defaultdict(list)
    for answer in answers:
        if _is_judged(answer):
            ends[answer["p"], answer["offset"]].append(answer)
    if not ends:
        return []
    owners, complete = _transactions(run_dir, ends, numbers)
    rows = []
    for (p, off), txn in sorted(owners.items()):
        known_ns = complete.get(txn, FOREVER_NS)
        epoch = _epoch_at(spans.get(p, ()), known_ns)
        for answer in ends[p, off]:
            is_later = answer["invoke_ns"] > known_ns
            if epoch is not None and is_later and answer["leader_epoch"] >= epoch:
                rows.append(_row(txn, p, off, answer, known_ns, names))
    return rows


def _is_judged(answer: Row) -> bool:
    version, epoch = answer["api_version"], answer["leader_epoch"]
    return bool(
        answer["kind"] == "stable"
        and answer["error"] is None
        and answer["offset"] is not None
        and (version is None or version >= SINCE_VERSION)
        and epoch is not None
        and epoch >= 0
    )


def _transactions(
    run_dir: Path, ends: Mapping[Slot, object], numbers: Mapping[tuple[str, int], int]
) -> tuple[dict[Slot, Txn], dict[Txn, int]]:
    """The transactions of the records at these ends, and the time at which each transaction was
    complete."""
    owners: dict[Slot, Txn] = {}
    acked: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    columns = ("outcome", "complete_ns")
    for txn, partition, offset, _, outcome, complete_ns in transaction_rows(
        run_dir, "sends", *columns
    ):
        if outcome != "ok" or complete_ns is None:
            continue
        times = acked[txn[:2]]
        times[txn[2]] = min(complete_ns, times.get(txn[2], complete_ns))
        slot = (numbers.get(partition, -1), offset)
        if slot in ends:
            owners[slot] = txn
    complete: dict[Txn, int] = {}
    for (client, session), times in acked.items():
        known_ns = FOREVER_NS
        for number in sorted(times, reverse=True):
            complete[client, session, number] = known_ns
            known_ns = min(known_ns, times[number])
    return owners, complete


def _epoch_at(spans: Sequence[Span], at_ns: int) -> int | None:
    """The newest leader epoch that may have begun by then; None if no state is known."""
    begun = [span.leader_epoch for span in spans if span.begin_ns <= at_ns + CLOCK_SLACK_NS]
    return max(begun, default=None)


def _row(txn: Txn, p: int, off: int, answer: Row, known_ns: int, names: Mapping[int, str]) -> Row:
    client, session, number = txn
    name = f"{client}/{number}"
    return {
        "p": p,
        "off": off,
        "at_ns": answer["invoke_ns"],
        "until_ns": answer["complete_ns"],
        "node": answer["node"],
        "leader_epoch": answer["leader_epoch"],
        "known_ns": known_ns,
        "client": client,
        "session": session,
        "txn": number,
        "txns": f"{name} -> {LOOKUP} -> {name}",
        "edges": f"{ORDER}, rw {names.get(p, p)}@{off}",
    }
