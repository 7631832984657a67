"""Cases of `rare_states/cleaning.py`."""

from __future__ import annotations

from tests.harness.verify.rare_states.made import Case, Made

ALL = [1, 2, 3]


def held(*offsets: int, epochs: dict[int, int] | None = None, log_start: int = 0) -> Made:
    """The records of broker 1, whose log ends at offset 10."""
    made = Made().log(1, epochs or {0: 0}, log_start=log_start)
    for offset in offsets:
        made.stored(offset)
    return made


def two_logs(*offsets: int) -> Made:
    """Records 0 to 2 on broker 1, and these on broker 2."""
    made = held(0, 1, 2).log(2, {0: 0})
    for offset in offsets:
        made.stored(offset, broker=2)
    return made


def deleted(at_s: float) -> Made:
    """An election at 5 s, and a deletion of records that was requested at a time."""
    made = Made().led(0, 1, ALL).led(5, 2, ALL)
    return made.add("admin_ops", act="delete records", invoke_s=at_s, complete_s=at_s + 0.1)


CASES: dict[str, Case] = {
    "cleaned_over_epoch_start": (
        held(0, 9, epochs={0: 0, 1: 5}),
        held(0, 5, 9, epochs={0: 0, 1: 5}),
    ),
    "epoch_cleaned_away": (
        held(0, 9, epochs={0: 0, 1: 5}),
        held(0, 9, epochs={0: 0, 1: 10}),
    ),
    "leader_changed_in_cleaned_log": (
        held(0, 9).led(0, 1, ALL).led(5, 2, ALL),
        held(0, 1).led(0, 1, ALL).led(5, 2, ALL),
    ),
    "replicas_cleaned_differently": (two_logs(0, 2), two_logs(0, 1, 2)),
    "tombstone_removed": (
        held(1).send(1, tombstone=True),
        held(0).send(1, tombstone=True),
    ),
    "marker_without_records": (
        Made().marker(1, "commit"),
        Made().stored(0, transactional=True).marker(1, "commit"),
    ),
    "log_starts_differ": (
        Made().log(1, {}, log_start=0).log(2, {}, log_start=5),
        Made().log(1, {}, log_start=5).log(2, {}, log_start=5),
    ),
    "segments_differ": (
        two_logs(0).stored(1, broker=2, segment_base=1),
        two_logs(0).stored(1, broker=2),
    ),
    "log_emptied": (Made().log(1, {}, log_start=10), Made().log(1, {}, log_start=9)),
    "epoch_removed": (
        Made().led(0, 1, ALL).led(5, 2, ALL).log(1, {1: 7}, log_start=7),
        Made().led(0, 1, ALL).led(5, 2, ALL).log(1, {0: 7, 1: 9}, log_start=7),
    ),
    "reader_fell_out_of_log": (
        Made().add("polls", poll=1, event="reset", position_before=3, position_after=7),
        Made().add("polls", poll=1, event="reset", position_before=7, position_after=3),
    ),
    "records_deleted_at_election": (deleted(5.5), deleted(6.5)),
}
