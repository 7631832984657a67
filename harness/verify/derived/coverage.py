"""The offsets of a partition that its logs and final passes cover, and the floors of the partition:
below a floor no fault and no unclean election lost a record."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from urteil.harness.verify.derived.coordinators import GRACE_NS
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, has_only
from urteil.harness.verify.derived.harm import Harm, losses, with_losses
from urteil.harness.verify.derived.lineage import agreed_end
from urteil.harness.verify.derived.lost_epochs import first_offsets, lost_epochs
from urteil.harness.verify.derived.state_spans import Span, floors
from urteil.harness.verify.evidence import Row, links_of, targets_of
from urteil.harness.verify.limits import FOREVER_NS, NO_OFFSET


def floor_rows(
    run_dir: Path,
    part: Row,
    spans: list[Span],
    logs: list[Row],
    harms: list[Harm],
    faults: list[Row],
) -> list[Row]:
    """The rows of `floors` for a partition. Sets the columns of `part` that describe losses in the
    whole run."""
    leader = next((row for row in logs if row["broker"] == part["final_leader"]), None)
    starts = _unmoved_starts(leader) if leader else {}
    ended_epochs = lost_epochs(spans, starts) if leader else []
    first_lost_offsets = first_offsets(run_dir, part["topic_id"], part["partition"], ended_epochs)
    fault_losses = losses(spans, harms)
    log_end = leader["log_end"] if leader else 0
    partition_floors = with_losses(floors(spans, starts, log_end, first_lost_offsets), fault_losses)
    epoch_begins_ns = [span.begin_ns for span in spans if span.begins_epoch]
    unclean_floor = min((floor.unclean_floor for floor in partition_floors), default=NO_OFFSET)
    losses_ns = [loss.at_ns for loss in fault_losses]
    if part["unclean_on"]:
        losses_ns += [span.begin_ns for span in spans if span.unclean]
    part |= {
        "unclean_on": int(part["unclean_on"] and unclean_floor < NO_OFFSET),
        "unclean_floor": unclean_floor,
        "last_epoch_ns": max(epoch_begins_ns[1:], default=None),
        "lost_floor": min((loss.floor for loss in fault_losses), default=None),
        "losses_ns": max((propagated_ns(at_ns, faults) for at_ns in losses_ns), default=None),
    }
    return [{"p": part["p"]} | floor.row() for floor in partition_floors]


def propagated_ns(at_ns: int, faults: list[Row]) -> int:
    """The time from which former leaders and readers must see the effects of an event at `at_ns`.

    That is `GRACE_NS` later, and at least `GRACE_NS` after the end of each fault that is active in
    between. Faults that only stop nodes are excepted: they delay no update to live nodes.
    """
    seen_ns = at_ns + GRACE_NS
    for fault in sorted(faults, key=lambda fault: int(fault["begin_ns"])):
        end_ns = fault["healed_ns"] or fault["end_ns"] or FOREVER_NS
        is_meanwhile = fault["begin_ns"] < seen_ns and end_ns > at_ns
        if is_meanwhile and not has_only(fault, ENDS_NODES):
            seen_ns = max(seen_ns, end_ns + GRACE_NS)
    return seen_ns


def cover_rows(p: int, logs: list[Row], passes: list[tuple[int, Row]]) -> list[Row]:
    """Disjoint ranges of offsets. Each has the number of logs, and the bits of the final passes,
    that cover it."""
    ranges = [(row["log_start"] or 0, row["log_end"] or 0, 1, 0, 0) for row in logs]
    for bit, row in passes:
        committed = row["isolation"] == "read_committed"
        reach = (row["from_offset"] or 0, row["to_offset"] or 0)
        ranges.append((*reach, 0, 0 if committed else bit, bit if committed else 0))
    edges = sorted({edge for low, high, *_ in ranges for edge in (low, high)})
    rows = []
    for low, high in pairwise(edges):
        covering = [entry for entry in ranges if entry[0] <= low and high <= entry[1]]
        copies, mask_ru, mask_rc = (sum(entry[i] for entry in covering) for i in (2, 3, 4))
        row = {"p": p, "lo": low, "hi": high, "copies": copies}
        rows.append(row | {"mask_ru": mask_ru, "mask_rc": mask_rc})
    return rows


def read_ranges(p: int, passes: list[Row]) -> list[Row]:
    """Maximal ranges of offsets that complete final passes cover without a gap."""
    ranges: list[Row] = []
    for low, high in sorted((row["from_offset"] or 0, row["to_offset"] or 0) for row in passes):
        if ranges and low <= ranges[-1]["hi"]:
            ranges[-1]["hi"] = max(high, ranges[-1]["hi"])
        else:
            ranges.append({"p": p, "lo": low, "hi": high})
    return ranges


def log_rows(p: int, spans: list[Span], logs: list[Row]) -> list[Row]:
    """Start and end of each log, whether its broker is in the final ISR, and whether its leader
    epochs are known."""
    final_isr = next((span.isr for span in reversed(spans) if span.leader >= 0), ())
    names = ("broker", "log_start", "log_end", "high_watermark", "recovery_point")
    return [
        {"p": p, "in_isr": int(row["broker"] in final_isr)}
        | {"epochs_known": int(row["epochs"] is not None)}
        | {name: row[name] for name in names}
        for row in logs
    ]


def epoch_rows(p: int, logs: list[Row]) -> list[Row]:
    """The start offset of each leader epoch in each log's leader epoch checkpoint."""
    return [
        {"p": p, "broker": row["broker"], "epoch": epoch, "start": start}
        | {"log_start": row["log_start"] or 0}
        for row in logs
        for epoch, start in _epoch_starts(row).items()
    ]


def _epoch_starts(row: Row) -> dict[int, int]:
    return {int(epoch): int(start) for epoch, start in json.loads(row["epochs"] or "{}").items()}


def _unmoved_starts(row: Row) -> dict[int, int]:
    """The start offset of each epoch; 0 for an epoch that may have begun below the log's start.

    DeleteRecords moves the start of the epoch at the new log start to that offset, and removes all
    earlier epochs.
    """
    start = row["log_start"] or 0
    return {epoch: at if at > start else 0 for epoch, at in _epoch_starts(row).items()}


def divergence_floor(logs: list[Row], leader: int | None) -> int:
    """The offset from which replicas may differ in a cluster that was never healed: a replica that
    could not reach the leader has not truncated its log yet."""
    leader_logs = [row for row in logs if row["broker"] == leader]
    ends = [
        agreed_end(_epoch_starts(log), log["log_end"] or 0, _epoch_starts(row), row["log_end"] or 0)
        for log in leader_logs
        for row in logs
    ]
    return min(ends, default=NO_OFFSET)


def uninformed_ns(span: Span, faults: list[Row]) -> int:
    """The begin of the first fault that may keep ZooKeeper's state from the leader: it pauses the
    leader, or cuts links. From then on the leader may use the last ISR that it read."""
    begins = [FOREVER_NS]
    for fault in faults:
        end_ns = fault["healed_ns"] or fault["end_ns"] or FOREVER_NS
        if fault["begin_ns"] >= span.end_ns or end_ns <= span.begin_ns:
            continue
        if links_of(fault) or f"b{span.leader}" in targets_of(fault):
            begins.append(fault["begin_ns"])
    return min(begins)
