"""Which offsets of a partition its logs and final passes cover, and below which none are lost."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from urteil.harness.verify.derived.coordinators import GRACE_NS
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, has_only
from urteil.harness.verify.derived.harm import Harm, losses, with_losses
from urteil.harness.verify.derived.lineage import agreed_end
from urteil.harness.verify.derived.lost_epochs import first_offsets, lost_epochs
from urteil.harness.verify.derived.state_spans import FOREVER_NS, NO_OFFSET, Span, floors
from urteil.harness.verify.evidence import Row, links_of, targets_of


def lay_floors(
    run_dir: Path,
    part: Row,
    spans: list[Span],
    logs: list[Row],
    hurt: list[Harm],
    faults: list[Row],
) -> list[Row]:
    """Rows of `floors`; what they say of the whole run goes into the partition's row `part`."""
    leader = next((row for row in logs if row["broker"] == part["final_leader"]), None)
    starts = _starts_ever(leader) if leader else {}
    reigns = lost_epochs(spans, starts) if leader else []
    taken = first_offsets(run_dir, part["topic_id"], part["partition"], reigns)
    lost = losses(spans, hurt)
    log_end = leader["log_end"] if leader else 0
    found = with_losses(floors(spans, starts, log_end, taken), lost)
    begun = [span.begin_ns for span in spans if span.begins_epoch]
    unclean_floor = min((floor.unclean_floor for floor in found), default=NO_OFFSET)
    spoilt = [one.at_ns for one in lost]
    if part["unclean_on"]:
        spoilt += [span.begin_ns for span in spans if span.unclean]
    part |= {
        "unclean_on": int(part["unclean_on"] and unclean_floor < NO_OFFSET),
        "unclean_floor": unclean_floor,
        "last_epoch_ns": max(begun[1:], default=None),
        "lost_floor": min((one.floor for one in lost), default=None),
        "spoilt_ns": max((propagated_ns(at_ns, faults) for at_ns in spoilt), default=None),
    }
    return [{"p": part["p"]} | floor.row() for floor in found]


def propagated_ns(at_ns: int, faults: list[Row]) -> int:
    """When everybody knows of what was done at `at_ns`: who led before, and who had read it. The
    death of a broker keeps that from nobody."""
    heard_ns = at_ns + GRACE_NS
    for fault in sorted(faults, key=lambda fault: int(fault["begin_ns"])):
        end_ns = fault["healed_ns"] or fault["end_ns"] or FOREVER_NS
        is_meanwhile = fault["begin_ns"] < heard_ns and end_ns > at_ns
        if is_meanwhile and not has_only(fault, ENDS_NODES):
            heard_ns = max(heard_ns, end_ns + GRACE_NS)
    return heard_ns


def cover_rows(p: int, logs: list[Row], passes: list[tuple[int, Row]]) -> list[Row]:
    """Disjoint ranges of offsets, each with the number of logs and the final passes (one bit each)
    that cover it."""
    ranges = [(row["log_start"] or 0, row["log_end"] or 0, 1, 0, 0) for row in logs]
    for bit, row in passes:
        committed = row["isolation"] == "read_committed"
        reach = (row["from_offset"] or 0, row["to_offset"] or 0)
        ranges.append((*reach, 0, 0 if committed else bit, bit if committed else 0))
    edges = sorted({edge for low, high, *_ in ranges for edge in (low, high)})
    found = []
    for low, high in pairwise(edges):
        over = [entry for entry in ranges if entry[0] <= low and high <= entry[1]]
        copies, mask_ru, mask_rc = (sum(entry[i] for entry in over) for i in (2, 3, 4))
        row = {"p": p, "lo": low, "hi": high, "copies": copies}
        found.append(row | {"mask_ru": mask_ru, "mask_rc": mask_rc})
    return found


def stretch_rows(p: int, passes: list[Row]) -> list[Row]:
    """Maximal ranges of offsets that complete final passes went over without a gap."""
    found: list[Row] = []
    for low, high in sorted((row["from_offset"] or 0, row["to_offset"] or 0) for row in passes):
        if found and low <= found[-1]["hi"]:
            found[-1]["hi"] = max(high, found[-1]["hi"])
        else:
            found.append({"p": p, "lo": low, "hi": high})
    return found


def log_rows(p: int, spans: list[Span], logs: list[Row]) -> list[Row]:
    """Where each log starts and ends, whether its broker was in sync at the end, and whether the
    log states its epochs."""
    final_isr = next((span.isr for span in reversed(spans) if span.leader >= 0), ())
    names = ("broker", "log_start", "log_end", "high_watermark", "recovery_point")
    return [
        {"p": p, "in_isr": int(row["broker"] in final_isr)}
        | {"epochs_known": int(row["epochs"] is not None)}
        | {name: row[name] for name in names}
        for row in logs
    ]


def epoch_rows(p: int, logs: list[Row]) -> list[Row]:
    """Where each log says that each epoch began."""
    return [
        {"p": p, "broker": row["broker"], "epoch": epoch, "start": start}
        | {"log_start": row["log_start"] or 0}
        for row in logs
        for epoch, start in _epoch_starts(row).items()
    ]


def _epoch_starts(row: Row) -> dict[int, int]:
    return {int(epoch): int(start) for epoch, start in json.loads(row["epochs"] or "{}").items()}


def _starts_ever(row: Row) -> dict[int, int]:
    """Where epochs began; 0 for what may have begun below a log's start. Who deletes records sets
    the start of the epoch that they end in to where the log begins, and forgets those before it."""
    start = row["log_start"] or 0
    return {epoch: at if at > start else 0 for epoch, at in _epoch_starts(row).items()}


def divergence_floor(logs: list[Row], leader: int | None) -> int:
    """From where on replicas may differ in a cluster that was never healed: one that could not ask
    the leader has not truncated yet."""
    led = [row for row in logs if row["broker"] == leader]
    ends = [
        agreed_end(_epoch_starts(one), one["log_end"] or 0, _epoch_starts(row), row["log_end"] or 0)
        for one in led
        for row in logs
    ]
    return min(ends, default=NO_OFFSET)


def blind_ns(span: Span, faults: list[Row]) -> int:
    """From when on a fault could keep ZooKeeper's state from the leader: it is paused, or links are
    cut. Such a leader keeps the ISR it last knew, and is right to. What came before is judged.
    """
    begins = [FOREVER_NS]
    for fault in faults:
        end_ns = fault["healed_ns"] or fault["end_ns"] or FOREVER_NS
        if fault["begin_ns"] >= span.end_ns or end_ns <= span.begin_ns:
            continue
        if links_of(fault) or f"b{span.leader}" in targets_of(fault):
            begins.append(fault["begin_ns"])
    return min(begins)
