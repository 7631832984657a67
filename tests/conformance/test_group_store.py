"""Groups whose offsets topic rejects writes or has unreadable batches: the members' answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance.configs import TOPIC, change
from tests.conformance.groups import (
    Assignment,
    Protocol,
    beat,
    commit,
    join,
    member_of,
    offset_fetch,
    sync,
)
from tests.conformance.guarded import MAX_MEMBERS, Guarded, GuardedPair, guarded_pair
from tests.conformance.questions.registry import RUN
from tests.conformance.records import produce
from tests.conformance.side import CLOSED, Side
from urteil.broker.groups.records import GroupMetadataKey, GroupMetadataValue, encode
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode
from urteil.chaos.log_directories import batches, segments

OFFSETS = "__consumer_offsets"
BOX = {"group_instance_id": "box"}
FIRST_RECORD_AT = 61
LONG = "x" * 2000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedPair]:
    """An own pair: the groups that remain here differ between the sides."""
    with guarded_pair(tmp_path_factory.mktemp("store")) as both:
        yield both


@pytest.mark.thorough
def test_oversized_group_records_are_rejected_alike(guarded: GuardedPair) -> None:
    """Oversized records: offsets, a static member's return, an assignment."""
    guarded.run_on_both(lambda guarded_side: guarded_side.admin.create(f"store-{RUN}"))

    def ask(guarded_side: Guarded) -> list[Any]:
        side, group, other = guarded_side.admin, f"refused-{RUN}", f"refused-too-{RUN}"
        side.coordinator(group)
        old, generation = member_of(side, group, instance="box", at=1)
        given = [Assignment(member_id=old, assignment=b"all")]
        side.get(sync(group, old, generation, assignments=given, **BOX), 3)
        newer, newest = member_of(side, other, instance=None, at=1)
        with _small_records(side):
            position = [(f"store-{RUN}", 0, 1)]
            answers = [side.ask(commit(group, position, metadata=LONG), 2)]
            large = [Protocol(name=name, metadata=LONG.encode()) for name in ("range", "other")]
            answers += [side.ask(join(group, protocols=large, **BOX), at) for at in (5, 9)]
            answers.append(side.ask(beat(group, old, generation, **BOX), 3))
            given = [Assignment(member_id=newer, assignment=LONG.encode())]
            answers.append(side.ask(sync(other, newer, newest, assignments=given), 3))
            answers.append(side.ask(beat(other, newer, newest), 3))
        return answers

    answers = guarded.assert_same(ask)
    assert [answer["error_code"] for answer in answers[1:3]] == ["UNKNOWN_SERVER_ERROR"] * 2


@contextmanager
def _small_records(side: Side) -> Iterator[None]:
    """The offsets topic takes no large ones."""

    def refused() -> bool:
        answer = side.get(commit(f"heard-{RUN}", [(f"store-{RUN}", 0, 1)], metadata=LONG), 2)
        error: int = answer.topics[0].partitions[0].error_code
        return error == ErrorCode.INVALID_COMMIT_OFFSET_SIZE

    change(side, TOPIC, OFFSETS, ("max.message.bytes", 0, "1000"))
    side.until(refused)
    yield
    change(side, TOPIC, OFFSETS, ("max.message.bytes", 1, None))
    side.until(lambda: not refused())


@pytest.mark.thorough
def test_members_above_the_maximum_group_size_must_rejoin(guarded: GuardedPair) -> None:
    """They were stored under a higher limit: all must rejoin."""
    group = f"large-{RUN}"
    members = [
        GroupMetadataValue.MemberMetadata(
            member_id=f"m{number}", client_id="c", client_host="/h", rebalance_timeout=60_000,
            session_timeout=30_000, subscription=b"", assignment=b"",
        )
        for number in range(MAX_MEMBERS + 1)
    ]  # fmt: skip
    value = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="m0", members=members
    )
    record = (encode(2, GroupMetadataKey(group=group)), encode(3, value), (), 0)

    def ask(guarded_side: Guarded) -> Any:
        guarded_side.admin.coordinator(group)
        stored = guarded_side.admin.get(
            produce(OFFSETS, build_batch([record])), 9, client="__admin_client"
        )
        assert stored.responses[0].partition_responses[0].error_code == 0, stored
        with _restart(guarded_side):
            pass
        return guarded_side.admin.ask(beat(group, "m0", 4), 3)

    assert guarded.assert_same(ask)["error_code"] == "REBALANCE_IN_PROGRESS"


@pytest.mark.thorough
def test_unreadable_batch_does_not_stop_its_coordinator(guarded: GuardedPair) -> None:
    """The partition's groups still have a coordinator."""
    guarded.run_on_both(lambda guarded_side: guarded_side.admin.create(f"rotten-{RUN}"))

    def ask(guarded_side: Guarded) -> Any:
        group, position = f"rotten-{RUN}", [(f"rotten-{RUN}", 0, 1)]
        guarded_side.admin.coordinator(group)
        guarded_side.admin.get(commit(group, position), 2)
        with _restart(guarded_side):
            (folder,) = guarded_side.cluster.log_dirs("b1")
            active = segments(folder / f"{OFFSETS}-0")[-1]
            last = list(batches(active))[-1]
            with active.open("r+b") as file:
                file.seek(last.position + FIRST_RECORD_AT)
                file.write(b"\x01")  # a record of -1 bytes
        return guarded_side.admin.ask(commit(group, position), 2)

    answers = guarded.assert_same(ask)
    assert answers["topics"][0]["partitions"][0]["error_code"] == "NONE"


@contextmanager
def _restart(guarded_side: Guarded) -> Iterator[None]:
    """In order; then its groups are loaded."""
    guarded_side.close()
    controls = guarded_side.cluster.controls()
    controls.stop("b1")
    yield
    controls.start("b1")
    guarded_side.admin.until(lambda: _is_loaded(guarded_side.admin))


def _is_loaded(side: Side) -> bool:
    """Whether positions are returned; while the coordinator loads, none is."""
    answer = side.get(offset_fetch(2, (f"loaded-{RUN}", [])), 2)
    return bool(answer != CLOSED and answer.error_code == ErrorCode.NONE)
