"""Nodes equal those of Apache Kafka 3.9.1 byte for byte (reference/README.md)."""

from __future__ import annotations

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.znodes import BrokerEndpoint, BrokerInfo

BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.11:9092"],"rack":"r1","jmx_port":-1,"port":9092,'
    b'"host":"127.0.0.11","version":5,"timestamp":"1795224006738"}'
)
TOPIC = (
    b'{"partitions":{"0":[1,2,3],"1":[3,2,1],"2":[2,1,3]},"topic_id":"jyBLnm1AQHafQvz2OHjKhg",'
    b'"adding_replicas":{},"removing_replicas":{},"version":3}'
)
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'
CONTROLLER = b'{"version":2,"brokerid":2,"timestamp":"1795224006576","kraftControllerEpoch":-1}'
CONFIG = (
    b'{"version":1,"config":{"compression.type":"producer","cleanup.policy":"compact",'
    b'"segment.bytes":"104857600"}}'
)
BLOCK = b'{"version":1,"broker":3,"block_start":"0","block_end":"999"}'


def test_broker_node() -> None:
    endpoint = BrokerEndpoint(listener="PLAINTEXT", host="127.0.0.11", port=9092)
    info = BrokerInfo(id=1, endpoints=(endpoint,), rack="r1", epoch=77)
    assert znodes.encode_broker(info, 1795224006738) == BROKER
    assert znodes.decode_broker(1, BROKER, 77) == info


def test_broker_node_with_two_listeners_and_no_rack() -> None:
    info = BrokerInfo(
        id=4,
        endpoints=(
            BrokerEndpoint(listener="INTERNAL", host="b4", port=1),
            BrokerEndpoint(listener="CLIENT", host="::1", port=2),
        ),
    )
    written = znodes.encode_broker(info, 5)
    assert b'"rack"' not in written
    assert b'"host":"b4"' in written
    again = znodes.decode_broker(4, written.replace(b"//::1:2", b"//[::1]:2"), -1)
    assert again == info


def test_topic_node() -> None:
    topic = znodes.decode_topic(TOPIC)
    assert topic.partitions == {0: (1, 2, 3), 1: (3, 2, 1), 2: (2, 1, 3)}
    assert topic.topic_id is not None
    assert znodes.encode_topic(topic) == TOPIC


def test_topic_node_of_older_tools_has_no_id() -> None:
    topic = znodes.decode_topic(b'{"version":1,"partitions":{"10":[1],"9":[2]}}')
    assert topic.topic_id is None
    assert list(topic.partitions) == [9, 10]


def test_partition_state_node() -> None:
    state = znodes.decode_state(STATE, 4)
    assert state.partition_epoch == 4
    assert znodes.encode_state(state) == STATE
    recovering = STATE.replace(b"}", b',"leader_recovery_state":1}')
    assert znodes.encode_state(znodes.decode_state(recovering, 0)) == recovering


def test_other_nodes() -> None:
    assert znodes.encode_controller(2, 1795224006576) == CONTROLLER
    assert znodes.decode_controller(CONTROLLER) == 2
    assert znodes.encode_config(znodes.decode_config(CONFIG)) == CONFIG
    assert znodes.decode_config(b"") == {}
    assert znodes.encode_producer_id_block(3, 0, 999) == BLOCK
    assert znodes.decode_producer_id_block(BLOCK) == (0, 999)
    cluster = b'{"version":"1","id":"fwLArVdlRFGht4jJyhrD0Q"}'
    assert znodes.encode_cluster_id(znodes.decode_cluster_id(cluster)) == cluster
    assert znodes.encode_feature() == b'{"features":{},"version":2,"status":1}'
    change = znodes.encode_config_change("topics/orders")
    assert change == b'{"version":2,"entity_path":"topics/orders"}'
    assert znodes.decode_config_change(change) == ("topics", "orders")
    old = b'{"version":1,"entity_type":"topics","entity_name":"orders"}'
    assert znodes.decode_config_change(old) == ("topics", "orders")
