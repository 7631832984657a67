"""A compacted offsets topic has the same groups and offsets."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

from tests.broker.log.cleaner.helpers import COMPACTED, clean, pairs, put
from tests.broker.log.helpers import NOW_MS, close_logs, open_log
from urteil.broker.groups.records import (
    GROUP_KEY_VERSION,
    GROUP_VALUE_VERSION,
    OFFSET_KEY_VERSION,
    OFFSET_VALUE_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode,
)
from urteil.broker.groups.shard import Shard
from urteil.broker.groups.shard_loading import load_shard
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState

SMALL = replace(COMPACTED, segment_bytes=1500)


def _write(log: PartitionLog) -> None:
    rng = random.Random(5)
    for n in range(300):
        group = f"g{rng.randrange(5)}"
        commit = OffsetCommitKey(group=group, topic="t", partition=rng.randrange(4))
        value = OffsetCommitValue(offset=n, leader_epoch=1, metadata="", commit_timestamp=NOW_MS)
        key = encode(OFFSET_KEY_VERSION, commit)
        put(log, (key, None if n % 11 == 0 else encode(OFFSET_VALUE_VERSION, value)))
        if n % 7 == 0:
            state = GroupMetadataValue(
                protocol_type="consumer", generation=n, protocol=None, leader=None, members=[]
            )
            put(log, (encode(GROUP_KEY_VERSION, GroupMetadataKey(group=group)),
                      None if n % 13 == 0 else encode(GROUP_VALUE_VERSION, state)))  # fmt: skip


def _loaded(log: PartitionLog) -> tuple[object, object]:
    shard = Shard(0)
    asyncio.run(load_shard(shard, log, lambda: True))
    offsets = {group: known for group, known in shard.offsets.items() if known}
    return offsets, shard._stored_groups


def test_groups_load_from_a_compacted_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=SMALL)
    _write(log)
    before, count = _loaded(log), len(pairs(log))
    assert all(before)
    log.roll(NOW_MS)
    for n in range(3):  # tombstones go with the last one
        log.cleaned_to = None
        clean(log, NOW_MS + n * SMALL.delete_retention_ms)
        assert _loaded(log) == before
    assert len(pairs(log)) < count / 8
    log.close()
    again = open_log(tmp_path, config=SMALL, remembered=CheckpointedState(clean=True))
    assert _loaded(again) == before
    close_logs(again)
