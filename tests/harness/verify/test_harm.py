"""Power cuts and lost disks permit only the loss of records that no in-sync replica still had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import alone, healthy, judged, named
from urteil.harness.verify.derived.harm import Harm, losses, with_losses
from urteil.harness.verify.derived.state_spans import Floor, Span
from urteil.harness.verify.limits import FOREVER_NS, NO_OFFSET
from urteil.harness.verify.result import Status, Verdict
from urteil.harness.verify.synthetic import CRASH_NS, LED_NS, S

FLOOR = 200
"""The start of the synthetic run's second epoch."""

LONG_AGO = -FOREVER_NS


def span(at: int, leader: int, *isr: int) -> Span:
    return Span(
        version=at,
        begin_ns=at,
        end_ns=at + 1,
        leader=leader,
        leader_epoch=at,
        controller_epoch=1,
        isr=isr,
        topic="t",
        path="",
        previous=None,
    )


def cut(at: int, broker: int, low: int, high: int = NO_OFFSET) -> Harm:
    return Harm(broker=broker, at_ns=at, until_ns=at + 5, low=low, high=high)


ALL = span(1, 1, 1, 2, 3)


@pytest.mark.parametrize(
    ("spans", "hurt", "floors"),
    [
        ([ALL], [], []),
        ([ALL], [cut(2, 1, 50)], []),
        ([ALL], [cut(2, 1, 50), cut(2, 2, 60)], []),
        ([ALL], [cut(2, 1, 50), cut(2, 2, 60), cut(2, 3, 40)], [40]),
        ([ALL], [cut(2, 1, 50), cut(3, 2, 60), cut(4, 3, 70)], [50]),
        ([ALL], [cut(2, 1, 50, 60), cut(2, 2, 60, 70), cut(2, 3, 40, 50)], []),
        # The first one is out of the ISR when the last one is cut: its end counts no more.
        (
            [ALL, span(3, 2, 2, 3), span(5, 3, 3)],
            [cut(2, 1, 50), cut(4, 2, 60), cut(6, 3, 70)],
            [70],
        ),
        # The first one returned, and has all records of its leader.
        (
            [ALL, span(3, 2, 2, 3), span(5, 2, 1, 2, 3)],
            [cut(2, 1, 50), cut(6, 2, 60), cut(6, 3, 70)],
            [],
        ),
        # Its leader had lost the same before, and both have the records written since.
        (
            [ALL, span(3, 2, 2), span(6, 2, 1, 2)],
            [cut(2, 1, 50), cut(5, 2, 60), cut(7, 1, 80)],
            [60],
        ),
        (
            [ALL, span(3, 2, 2), span(6, 2, 1, 2)],
            [cut(2, 1, 50), cut(5, 2, 60), cut(7, 1, 80), cut(8, 2, 90)],
            [60, 80],
        ),
        ([span(1, 1, 1)], [cut(2, 2, 10)], []),
        ([span(1, 1, 1)], [cut(2, 1, 10)], [10]),
        ([], [cut(2, 1, 10)], []),
    ],
)  # fmt: skip
def test_a_loss_is_where_every_in_sync_replica_was_hurt(
    spans: list[Span], hurt: list[Harm], floors: list[int]
) -> None:
    assert [loss.floor for loss in losses(spans, hurt)] == floors


def test_loss_concerns_earlier_sends() -> None:
    floor = Floor(from_ns=LONG_AGO, to_ns=FOREVER_NS, any_floor=0, unclean_floor=NO_OFFSET)
    early, late = losses([span(1, 1, 1)], [cut(2, 1, 30), cut(9, 1, 20)])
    spans = with_losses([floor], [early, late])
    assert [(span.from_ns, span.to_ns, span.lost_floor) for span in spans] == [
        (LONG_AGO, 2, 20),
        (2, 9, 20),
        (9, FOREVER_NS, NO_OFFSET),
    ]


def _sent_and_lost(
    tables: example_runs.Tables, offset: int, at_ns: int = CRASH_NS - S // 100
) -> None:
    """A send that was acknowledged at an offset which another record has at the end."""
    value = {"value_id": f"r/p0/{100_000 + offset}", "op": 100_000 + offset, "client": "p0"}
    row = tables["sends"][offset] | value | {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
    tables["sends"].append(row | {"node": 1 if at_ns < LED_NS else 2})


def _cut(tables: example_runs.Tables, *brokers: int, low: int = FLOOR) -> None:
    """A power cut on these brokers in the middle of the load; the ISR did not change."""
    logs = {f"b{broker}": {"urteil-0": [low, None]} for broker in brokers}
    (fault,) = tables["faults"]
    fault["harm"] = json.dumps({"at_ns": CRASH_NS, "brokers": logs})


def test_power_cut_on_all_permits_loss_of_the_unflushed_suffix(tmp_path: Path) -> None:
    tables = healthy()
    _cut(tables, 1, 2, 3)
    _sent_and_lost(tables, FLOOR + 3)
    result = judged(tmp_path, tables)
    lost = named(result, "lost_write")
    assert (lost.status, lost.permitted, lost.violations) == (Status.PERMITTED, 1, 0)
    assert lost.findings[0].permitted == "a fault destroyed it on every replica that was in sync"
    assert named(result, "inconsistent_offset").status is Status.PERMITTED
    assert result.verdict is Verdict.PASS, result.reasons


def test_power_cut_permits_no_loss_of_flushed_or_later_records(tmp_path: Path) -> None:
    tables = healthy()
    _cut(tables, 1, 2, 3)
    _sent_and_lost(tables, FLOOR - 1)
    _sent_and_lost(tables, FLOOR + 3, at_ns=LED_NS + S)
    assert alone("lost_write", tmp_path, tables).violations == 2


def test_power_cut_with_a_live_isr_member_permits_no_loss(tmp_path: Path) -> None:
    tables = healthy()
    _cut(tables, 1, 2)
    _sent_and_lost(tables, FLOOR + 3)
    result = judged(tmp_path, tables)
    assert named(result, "lost_write").status is Status.VIOLATED
    assert named(result, "inconsistent_offset").status is Status.VIOLATED


def test_vanished_read_is_permitted_only_before_the_power_cut(
    tmp_path: Path,
) -> None:
    for number, cut_low in enumerate((FLOOR, FLOOR + 100)):
        tables = healthy()
        _cut(tables, 1, 2, 3, low=cut_low)
        gone = {"value_id": "r/p0/100206", "read_ns": CRASH_NS - S, "offset": 206}
        _sent_and_lost(tables, 206, at_ns=CRASH_NS - 2 * S)
        row = next(r for r in tables["reads"] if r["client"] == "c0" and r["offset"] == 206)
        row |= gone
        result = judged(tmp_path / str(number), tables)
        expected = Status.PERMITTED if cut_low == FLOOR else Status.VIOLATED
        assert named(result, "vanished_read").status is expected
        assert named(result, "lost_write").status is expected


@pytest.mark.parametrize("cut", [(1, 2, 3), (1, 2)])
def test_ends_fall_where_all_lost_them(tmp_path: Path, cut: tuple[int, ...]) -> None:
    tables = healthy()
    _cut(tables, *cut)
    tables["faults"][0] |= {"end_ns": CRASH_NS + S, "healed_ns": CRASH_NS + S}
    _sent_and_lost(tables, FLOOR + 3)
    (before,) = [row for row in tables["offset_answers"] if row["invoke_ns"] < CRASH_NS
                 and row["query"] == "latest"]  # fmt: skip
    after = {"invoke_ns": LED_NS - 1, "complete_ns": LED_NS, "leader_epoch": 1}
    tables["offset_answers"].append(before | after | {"offset": FLOOR})
    before["offset"] = FLOOR + 4
    result = judged(tmp_path, tables)
    expected = Status.PERMITTED if len(cut) == 3 else Status.VIOLATED
    for name in ("latest_went_back", "end_below_ack"):
        assert named(result, name).status is expected, name


def test_epoch_missing_in_one_log_is_found(tmp_path: Path) -> None:
    tables = healthy()
    (log,) = [row for row in tables["logs"] if row["broker"] == 2]
    log["epochs"] = json.dumps({k: v for k, v in json.loads(log["epochs"]).items() if k != "0"})
    result = alone("epoch_lineage", tmp_path, tables)
    assert [(finding.sub_kind, finding.offset) for finding in result.findings] == [("forgotten", 0)]
    assert (
        "broker 2, whose log holds that offset, knows nothing of it" in result.findings[0].sentence
    )
