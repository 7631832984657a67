"""Transactions, their fates and times: rows of the derived tables `txn_p` and `group_positions`.

A transaction without a commit request was aborted, whatever happened to its client. A transaction
whose commit was not acknowledged is unknown: all of its records must be visible, or none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from urteil.chaos.effects import Effect
from urteil.chaos.observations import CLIENT
from urteil.harness.clients.spec import transaction_timeout_ms
from urteil.harness.scenario import Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.early_aborts import LATE_NS, early_aborts
from urteil.harness.verify.derived.fault_effects import has_any
from urteil.harness.verify.evidence import Row, links_of
from urteil.harness.verify.limits import FOREVER_NS

MS_NS = 1_000_000
ASLEEP = frozenset({Effect.PAUSES_NODES, Effect.STARVES_NODES})
CLEANUP = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
CLEANUP_MS = "10000"
SLACK_NS = 10_000 * MS_NS
REPEATED_NS = 900 * MS_NS


def txn_rows(run_dir: Path, faults: Sequence[Row], scenario: Scenario) -> list[Row]:
    """Rows of `txn_p`: a transaction with its fate.

    `fenced_ns` is when another producer fenced its producer. `early_abort` is CUT_SHORT where the
    coordinator aborted it before its timeout, and FORGOTTEN where the coordinator did not know the
    transactional id. `late` is 1 where the EndTxn of an earlier transaction may have ended this one
    (KAFKA-17754). `grp` is the group whose offsets it committed. `as_requested` is 1 where it ended
    as its client requested, without an error.
    """
    txns = evidence.rows(run_dir, "txns")
    groups = _groups(run_dir) if txns else {}
    inits = _inits(txns)
    held = [fault for fault in faults if _holds_back(fault)]
    late = _resent_ends(txns, held)
    short = early_aborts(txns, evidence.rows(run_dir, "clients"), faults, scenario) if txns else {}
    return [
        {
            "client": txn["client"],
            "session": txn["session"],
            "txn": txn["txn"],
            "tid": txn["transactional_id"],
            "begin_ns": txn["begin_ns"],
            "commit_ns": txn["commit_invoke_ns"],
            "end_ns": txn["end_ns"],
            "as_requested": int(
                txn["outcome"] in ("committed", "aborted") and txn["error"] is None
            ),
            "outcome": txn["outcome"],
            "fate": _fate(txn),
            "fenced_ns": _fenced_ns(txn, inits[txn["transactional_id"]]),
            "early_abort": short.get(_key(txn), 0),
            "late": int(txn["late_end_ns"] is not None or _key(txn) in late),
            "grp": groups.get(_key(txn), groups.get((*_key(txn)[:2], None))),
        }
        for txn in txns
    ]


def transactions_over_ns(
    scenario: Scenario, txns: Sequence[Row], faults: Sequence[Row]
) -> int | None:
    """The time from which no transaction may be open any more, by the transaction timeout and the
    interval of the coordinators' checks; None without transactions."""
    times = [txn[name] or 0 for txn in txns for name in ("begin_ns", "commit_ns", "end_ns")]
    times += [fault["healed_ns"] or fault["end_ns"] or FOREVER_NS for fault in faults]
    cleanup_ms = int(scenario.cluster.config.get(CLEANUP, CLEANUP_MS))
    allowed_ns = (transaction_timeout_ms(scenario.workload) + cleanup_ms) * MS_NS + SLACK_NS
    return min(FOREVER_NS, max(times) + allowed_ns) if txns else None


def group_position_rows(
    run_dir: Path, txns: Sequence[Row], numbers: Mapping[tuple[str, int], int]
) -> list[Row]:
    """Rows of `group_positions`: the committed offset of each group that commits in transactions,
    after the last of them ended. Offsets that no client fetched then have no row."""
    ends = {(txn["client"], txn["session"], txn["txn"]): txn["end_ns"] or 0 for txn in txns}
    moved: dict[str, int] = {}
    read: set[tuple[str, int]] = set()
    for row in evidence.rows(run_dir, "commits") if ends else ():
        end_ns, p = ends.get(_key(row)), numbers.get((row["topic_id"], row["partition"]))
        if end_ns is not None and p is not None:
            moved[row["group"]] = max(moved.get(row["group"], 0), end_ns)
            read.add((row["group"], p))
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for row in evidence.rows(run_dir, "commit_reads") if moved else ():
        key = (row["group"], numbers.get((row["topic_id"], row["partition"]), -1))
        if key in read and row["outcome"] == "ok" and row["invoke_ns"] > moved[key[0]]:
            commit = (row["invoke_ns"], row["offset"] or 0)
            last[key] = max(last.get(key, commit), commit)
    return [
        {"grp": grp, "p": p, "position": position, "fetched_ns": fetched_ns}
        for (grp, p), (fetched_ns, position) in sorted(last.items())
    ]


def _groups(run_dir: Path) -> dict[tuple[str, int, int | None], str]:
    """The group whose offsets each transaction committed; under the key None, the group of the
    client's settings."""
    groups: dict[tuple[str, int, int | None], str] = {}
    for row in evidence.rows(run_dir, "clients"):
        if row["group"] is not None:
            groups[row["client"], row["session"], None] = row["group"]
    for row in evidence.rows(run_dir, "commits"):
        if row["txn"] is not None and row["group"] is not None:
            groups[_key(row)] = row["group"]
    return groups


def _fate(txn: Row) -> str:
    if txn["outcome"] == "committed":
        return "committed"
    return "aborted" if txn["commit_invoke_ns"] is None else "unknown"


def _key(txn: Row) -> tuple[str, int, int]:
    return txn["client"], txn["session"], txn["txn"]


def _inits(txns: Sequence[Row]) -> dict[str, set[tuple[int, int]]]:
    """The begin and end of each initialisation of producers, by transactional id."""
    init_times: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for txn in txns:
        if txn["init_ns"] is not None and txn["init_invoke_ns"] is not None:
            init_times[txn["transactional_id"]].add((txn["init_invoke_ns"], txn["init_ns"]))
    return init_times


def _fenced_ns(txn: Row, inits: set[tuple[int, int]]) -> int | None:
    """The time by which another producer with the same id, begun later, had been initialised."""
    init_ns = txn["init_ns"]
    if init_ns is None:
        return None
    return min((end_ns for begin_ns, end_ns in inits if begin_ns > init_ns), default=None)


def _holds_back(fault: Row) -> bool:
    """Whether a fault may delay clients' requests: it acts on their links, or stalls a broker."""
    return has_any(fault, ASLEEP) or any(source == CLIENT for source, _ in links_of(fault))


def _resent_ends(txns: Sequence[Row], held: Sequence[Row]) -> set[tuple[str, int, int]]:
    """Transactions after one of the same producer whose EndTxn may have been sent twice while a
    fault delayed requests."""
    ends: set[tuple[str, int, int]] = set()
    if not held:
        return ends
    by_producer: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for txn in txns:
        by_producer[txn["client"], txn["session"], txn["init_ns"] or 0].append(txn)
    for producer_txns in by_producer.values():
        until_ns = -FOREVER_NS
        for txn in sorted(producer_txns, key=lambda row: int(row["txn"])):
            if txn["begin_ns"] < until_ns:
                ends.add(_key(txn))
            until_ns = max(until_ns, _may_arrive_until(txn, held))
    return ends


def _may_arrive_until(txn: Row, held: Sequence[Row]) -> int:
    """The time until which a repeated EndTxn of the transaction may arrive; -FOREVER_NS if it was
    not repeated."""
    requested_ns = txn["commit_invoke_ns"] or txn["begin_ns"]
    end_ns = txn["end_ns"] or FOREVER_NS
    if end_ns - requested_ns < REPEATED_NS:
        return -FOREVER_NS
    over = [
        (fault["healed_ns"] or FOREVER_NS - LATE_NS) + LATE_NS
        for fault in held
        if fault["begin_ns"] < end_ns and requested_ns < (fault["healed_ns"] or FOREVER_NS)
    ]
    return max(over, default=-FOREVER_NS)
