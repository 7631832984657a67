"""Leader state: fencing, ISR, high watermark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.replication.plain import MAX_LAG_MS, Plain, records, state
from urteil.broker.wire.errors import ErrorCode


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    made = Plain(tmp_path / "t-0", min_isr=2)
    made.partition.become_leader(state(1, 0), 0.0)
    return made


def fetch(plain: Plain, broker: int, offset: int, now_ms: float = 0.0) -> None:
    plain.partition.record_follower_fetch(broker, offset, 0, now_ms)


def test_high_watermark_follows_the_slowest_member_of_the_isr(plain: Plain) -> None:
    plain.append(5)
    assert plain.log.high_watermark == 0
    fetch(plain, 2, 5)
    assert plain.log.high_watermark == 0, "3 has shown nothing yet"
    fetch(plain, 3, 3)
    assert plain.log.high_watermark == 3
    fetch(plain, 3, 5)
    assert plain.log.high_watermark == 5


def test_fetch_proves_only_records_below_its_offset(plain: Plain) -> None:
    plain.append(2)
    fetch(plain, 2, 0)
    fetch(plain, 3, 0)
    assert plain.log.high_watermark == 0


def test_append_is_acknowledged_after_the_high_watermark_passes(plain: Plain) -> None:
    plain.append(2)
    assert plain.partition.acknowledgement(2) is None
    fetch(plain, 2, 2)
    fetch(plain, 3, 2)
    assert plain.partition.acknowledgement(2) is ErrorCode.NONE


def test_lagging_follower_leaves_the_isr_after_the_controllers_response(plain: Plain) -> None:
    plain.append(4)
    fetch(plain, 2, 4, MAX_LAG_MS + 1.0)
    plain.partition.maybe_shrink(MAX_LAG_MS + 1.0)
    assert plain.proposed == [(1, 2)]
    assert plain.log.high_watermark == 0, "the maximal ISR counts until the answer"
    plain.partition.apply_altered_isr(0, 1, (1, 2), MAX_LAG_MS + 1.0)
    assert plain.log.high_watermark == 4


def test_only_one_proposal_is_in_flight(plain: Plain) -> None:
    plain.append(4)
    fetch(plain, 2, 4, 20_000.0)
    plain.partition.maybe_shrink(20_000.0)
    plain.partition.maybe_shrink(50_000.0)
    assert plain.proposed == [(1, 2)]


def test_high_watermark_does_not_rise_below_min_isr(plain: Plain) -> None:
    plain.append(3)
    plain.partition.apply_altered_isr(0, 1, (1,), 0.0)
    plain.partition.maybe_shrink(MAX_LAG_MS + 1.0)
    assert plain.log.high_watermark == 0
    assert plain.append(1, acks=-1) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert plain.append(1, acks=1) is ErrorCode.NONE
    assert plain.log.high_watermark == 0


def test_isr_below_min_isr_after_the_append_is_an_error(plain: Plain) -> None:
    plain.append(1)
    fetch(plain, 2, 1)
    fetch(plain, 3, 1)
    plain.partition.apply_altered_isr(0, 1, (1,), 0.0)
    assert plain.partition.acknowledgement(1) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_follower_joins_at_the_high_watermark_and_epoch_start(tmp_path: Path) -> None:
    plain = Plain(tmp_path / "t-0")
    plain.partition.become_leader(state(1, 0, (1,)), 0.0)
    plain.append(3)
    plain.partition.become_leader(state(1, 1, (1,)), 0.0)
    plain.append(2)
    assert plain.log.high_watermark == 5
    fetch(plain, 2, 4)
    assert plain.proposed == []
    fetch(plain, 2, 5)
    assert plain.proposed == [(1, 2)]
    plain.append(1)
    assert plain.log.high_watermark == 5, "a proposed member counts"


def test_dead_broker_is_not_proposed(tmp_path: Path) -> None:
    plain = Plain(tmp_path / "t-0")
    plain.partition.become_leader(state(1, 0, (1,)), 0.0)
    plain.alive.discard(2)
    fetch(plain, 2, 0)
    assert plain.proposed == []


def test_rejected_proposal_is_rolled_back_and_can_be_repeated(tmp_path: Path) -> None:
    plain = Plain(tmp_path / "t-0")
    plain.partition.become_leader(state(1, 0, (1,)), 0.0)
    fetch(plain, 2, 0)
    plain.partition.roll_back_isr(plain.partition.isr, 0.0)
    assert plain.partition.isr.committed == (1,)
    fetch(plain, 2, 0)
    assert plain.proposed == [(1, 2), (1, 2)]


def test_older_and_newer_epochs_are_fenced(plain: Plain) -> None:
    plain.partition.become_leader(state(1, 5), 0.0)
    check = plain.partition.check_leader
    assert check(-1) is ErrorCode.NONE
    assert check(5) is ErrorCode.NONE
    assert check(4) is ErrorCode.FENCED_LEADER_EPOCH
    assert check(6) is ErrorCode.UNKNOWN_LEADER_EPOCH
    plain.partition.become_follower(state(2, 6))
    assert check(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_older_partition_epoch_is_ignored(plain: Plain) -> None:
    plain.partition.apply_altered_isr(0, 3, (1, 2), 0.0)
    plain.partition.become_leader(state(1, 0, (1, 2, 3), partition_epoch=2), 0.0)
    assert plain.partition.isr.committed == (1, 2)
    plain.partition.apply_altered_isr(0, 2, (1, 2, 3), 0.0)
    assert plain.partition.isr.committed == (1, 2)


def test_repeated_state_does_not_cancel_a_proposal(tmp_path: Path) -> None:
    """A new controller repeats the state it found while AlterPartition is on its way to it."""
    plain = Plain(tmp_path / "t-0")
    plain.partition.become_leader(state(1, 0, (1,)), 0.0)
    fetch(plain, 2, 0)
    assert plain.proposed == [(1, 2)]
    proposed = plain.partition.isr
    plain.partition.become_leader(state(1, 0, (1,)), 0.0)
    assert plain.partition.isr is proposed
    plain.append(1, now_ms=2 * MAX_LAG_MS)
    assert plain.log.high_watermark == 0, "2 may be elected by now"
    plain.partition.become_leader(state(1, 0, (1, 2), partition_epoch=1), 0.0)
    assert plain.partition.isr.committed == (1, 2)
    assert not plain.partition.isr.is_in_flight


def test_stopped_joining_follower_does_not_delay_the_high_watermark(
    tmp_path: Path,
) -> None:
    plain = Plain(tmp_path / "t-0")
    plain.partition.become_leader(state(1, 0, (1,)), 0.0)
    fetch(plain, 2, 0)
    fetch(plain, 3, 0)
    plain.partition.roll_back_isr(plain.partition.isr, 0.0)
    plain.append(1)
    assert plain.log.high_watermark == 0, "2 and 3 are about to join"
    results: list[object] = []
    plain.partition.on_committed.add(lambda: results.append(plain.partition.acknowledgement(1)))
    plain.partition.maybe_shrink(MAX_LAG_MS + 1.0)
    assert results == [ErrorCode.NONE]


def test_response_to_an_older_epoch_is_ignored(plain: Plain) -> None:
    plain.partition.become_leader(state(1, 1), 0.0)
    plain.partition.apply_altered_isr(0, 9, (1,), 0.0)
    assert plain.partition.isr.committed == (1, 2, 3)


def test_delayed_operations_are_notified_of_lost_leadership(plain: Plain) -> None:
    plain.append(1)
    results: list[object] = []
    plain.partition.on_committed.add(lambda: results.append(plain.partition.acknowledgement(1)))
    plain.partition.become_follower(state(2, 1))
    assert results == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_new_leader_resets_follower_offsets(plain: Plain) -> None:
    plain.append(2)
    fetch(plain, 2, 2)
    fetch(plain, 3, 2)
    plain.partition.become_follower(state(2, 1))
    plain.log.append_as_follower(records(1, leader_epoch=1, base_offset=2), 0)
    plain.partition.become_leader(state(1, 2), 0.0)
    assert plain.log.high_watermark == 2
    fetch(plain, 2, 3)
    assert plain.log.high_watermark == 2, "3 may have less than it had before"


def test_min_isr_is_limited_by_the_number_of_replicas(tmp_path: Path) -> None:
    plain = Plain(tmp_path / "t-0", min_isr=2)
    plain.partition.become_leader(state(1, 0, (1,), replicas=(1,)), 0.0)
    assert plain.append(1, acks=-1) is ErrorCode.NONE
    assert plain.log.high_watermark == 1
