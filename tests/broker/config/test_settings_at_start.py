"""Dynamic settings apply from a broker's first response, also those made while it was down."""

from __future__ import annotations

import json
from pathlib import Path

from tests.broker.nodes import Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.conformance.configs import BROKER, SET, TOPIC, change, values
from tests.conformance.side import Side
from tests.waiting import until
from urteil.broker.wire.messages import MetadataRequest

KEYS = ("message.max.bytes", "log.retention.ms", "log.segment.bytes")


def test_stored_settings_apply_from_the_first_response(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str
) -> None:
    with Nodes(tmp_path, zookeeper, chroot, 1, log_segment_bytes="5000") as nodes:
        side = Side("ours", nodes.bootstrap)
        until(lambda: _knows(side, "t"), "a topic is made by asking")
        assert change(side, BROKER, "", ("message.max.bytes", SET, "1000"))[0][2] == "NONE"
        assert change(side, TOPIC, "t", ("segment.ms", SET, "9999"))[0][2] == "NONE"
        nodes.kill(1)
        by_hand = {"version": 1, "config": {"log.retention.ms": "7000"}}
        nodes.zk.create("/config/brokers/1", json.dumps(by_hand).encode())
        side.close()
        nodes.start(1)
        until(lambda: _listens(side), "the broker listens")
        overrides = {"message.max.bytes": "1000", "log.retention.ms": "7000"}
        assert values(side, BROKER, "1", *KEYS) == {**overrides, "log.segment.bytes": "5000"}
        until(lambda: _knows(side, "t"), "the topic is known again")
        keys = ("max.message.bytes", "retention.ms", "segment.ms")
        assert list(values(side, TOPIC, "t", *keys).values()) == ["1000", "7000", "9999"]
        side.close()


def _knows(side: Side, topic: str) -> bool:
    asked = MetadataRequest.MetadataRequestTopic(name=topic)
    answer = side.get(MetadataRequest(topics=[asked], allow_auto_topic_creation=True), 4)
    return bool(answer.topics[0].error_code == 0)


def _listens(side: Side) -> bool:
    try:
        side.connect(1).close()
    except ConnectionError:
        return False
    return True
