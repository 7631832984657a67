"""More questions about settings: which of several counts, what is refused, what was only tried."""

from __future__ import annotations

from itertools import count
from typing import Any

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
)

from urteil.harness.conformance.question import (
    Brokers,
    Question,
    awaited,
    by_all,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.topics import (
    BY_DEFAULT,
    BY_TOPIC,
    DELETE,
    OF_BROKER,
    OF_TOPIC,
    SET,
    alter,
    configs,
)

Told = tuple[int, str]
OF_ONE, BY_ONE, BY_ALL = "log.index.interval.bytes", 2, 3
MUTATIONS = "controller_mutation_rate"
OVER_QUOTA, FEW = "ThrottlingQuotaExceeded", 0.01
"""Partitions a second."""


def _error_of(brokers: Brokers, node: int, kind: int, name: str, key: str, value: str) -> int:
    kinds: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = kinds.AlterableConfig(name=key, config_operation=SET, value=value)
    asked = kinds(resource_type=kind, resource_name=name, configs=[change])
    request = IncrementalAlterConfigsRequest[0](resources=[asked], validate_only=False)
    return int(brokers.ask(node, request).responses[0].error_code)


def _refused(brokers: Brokers, name: str) -> Told:
    """No number, no setting, no topic; of a broker what needs a restart."""
    brokers.create(name, [[brokers.nodes[0]]])
    node = brokers.controller
    told = [
        _error_of(brokers, node, OF_TOPIC, name, "retention.ms", "long"),
        _error_of(brokers, node, OF_TOPIC, name, "unheard.of", "1"),
        _error_of(brokers, node, OF_TOPIC, f"{name}-never", "retention.ms", "1000"),
        _error_of(brokers, node, OF_BROKER, str(node), "log.dirs", "elsewhere"),
    ]
    return node, names(told)


def _replaced(brokers: Brokers, name: str) -> Told:
    """AlterConfigs, tried and then done: what it does not name is as nobody set it."""
    brokers.create(name, [brokers.nodes], retention_ms="123456", max_message_bytes="54321")
    kinds: Any = AlterConfigsRequest.AlterConfigsResource
    asked = kinds(
        resource_type=OF_TOPIC, resource_name=name,
        configs=[kinds.AlterableConfig(name="retention.ms", value="234567")],
    )  # fmt: skip

    def told(node: int) -> str:
        first = configs(brokers, node, OF_TOPIC, name, ["retention.ms"])
        return f"{first}, {configs(brokers, node, OF_TOPIC, name, ['max.message.bytes'])[-1]}"

    found = []
    for tried, answer in ((True, TRIED), (False, DONE)):
        request = AlterConfigsRequest[1](resources=[asked], validate_only=tried)
        check("AlterConfigs", brokers.ask(brokers.controller, request).responses[0].error_code)
        node, one = by_all(brokers, told, answer)
        found.append(one)
    return node, "; ".join(found)


TRIED = f"123456 by {BY_TOPIC}, {BY_TOPIC}"
DONE = f"234567 by {BY_TOPIC}, {BY_DEFAULT}"


def _own_first(brokers: Brokers, name: str) -> Told:
    """A broker's own setting counts before that of all, which counts when its own is over."""
    node = brokers.nodes[0]

    def told() -> str:
        return configs(brokers, node, OF_BROKER, str(node), [OF_ONE])

    try:
        alter(brokers, "", (OF_ONE, SET, "5000"), kind=OF_BROKER)
        error = _error_of(brokers, node, OF_BROKER, str(node), OF_ONE, "6000")
        check("IncrementalAlterConfigs", error)
        own = awaited(told, f"6000 by {BY_ONE}")
        _unset(brokers, node)
        of_all = awaited(told, f"5000 by {BY_ALL}")
    finally:
        alter(brokers, "", (OF_ONE, DELETE, None), kind=OF_BROKER)
    return node, f"{own}, {of_all}"


def _unset(brokers: Brokers, node: int) -> None:
    kinds: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = kinds.AlterableConfig(name=OF_ONE, config_operation=DELETE, value=None)
    asked = kinds(resource_type=OF_BROKER, resource_name=str(node), configs=[change])
    request = IncrementalAlterConfigsRequest[0](resources=[asked], validate_only=False)
    check("IncrementalAlterConfigs", brokers.ask(node, request).responses[0].error_code)


def _partitions_tried(brokers: Brokers, name: str) -> Told:
    brokers.create(name, [[brokers.nodes[0]]])
    kinds = CreatePartitionsRequest.CreatePartitionsTopic
    told = []
    for wanted, tried in ((3, True), (2, False)):
        request = CreatePartitionsRequest[1](
            topics=[kinds(name=name, count=wanted, assignments=None)],
            timeout_ms=5_000, validate_only=tried,
        )  # fmt: skip
        told.append(brokers.ask(brokers.controller, request).results[0].error_code)

    def counted(node: int) -> str:
        return str(len(brokers.metadata(node, name).partitions))

    node, count_told = by_all(brokers, counted, "2")
    return node, f"{names(told)}, {count_told}"


def _defaults(brokers: Brokers, name: str) -> Told:
    """A topic of no certain size has what the brokers are set to (KIP-464)."""
    check("CreateTopics", brokers.create_errors(name)[0])
    node = brokers.controller
    keys = ("num.partitions", "default.replication.factor")
    told = configs(brokers, node, OF_BROKER, str(node), keys)
    wanted = [int(one.split()[0]) for one in told.split(", ")]

    def found(node: int) -> str:
        parts = brokers.metadata(node, name).partitions
        sizes = {len(one.replica_nodes) for one in parts}
        return "as set" if [len(parts), *sizes] == wanted else f"{len(parts)} {sizes} for {wanted}"

    return by_all(brokers, found, "as set")


def _mutations(brokers: Brokers, name: str) -> Told:
    """Who may make next to no partition a second makes some, and is refused then (KIP-599)."""
    kinds: Any = AlterClientQuotasRequest.EntryData
    node, numbers = brokers.controller, count()

    def limit(*, remove: bool) -> None:
        asked = kinds(
            entity=[kinds.EntityData(entity_type="client-id", entity_name=name)],
            ops=[kinds.OpData(key=MUTATIONS, value=FEW, remove=remove)],
        )
        request = AlterClientQuotasRequest[0](entries=[asked], validate_only=False)
        check("AlterClientQuotas", brokers.ask(node, request).entries[0].error_code)

    def create() -> str:
        new = CreateTopicsRequest.CreatableTopic(
            name=f"{name}-{next(numbers)}", num_partitions=2, replication_factor=1,
            assignments=[], configs=[],
        )  # fmt: skip
        request = CreateTopicsRequest[6](topics=[new], timeout_ms=5_000, validate_only=False)
        return name_of(brokers.ask(node, request, name).topics[0].error_code)

    limit(remove=False)
    refused = awaited(create, OVER_QUOTA)
    limit(remove=True)
    return node, f"{refused}, {awaited(create, 'No')}"


SETTINGS = (
    Question(
        about="settings that are no number, that there are not, of no topic, that need a restart",
        answer="InvalidConfiguration, InvalidConfiguration, UnknownTopicOrPartition, "
        "InvalidRequest",
        ask=_refused,
    ),
    Question(
        about="AlterConfigs of one of two settings, tried, and done",
        answer=f"{TRIED}; {DONE}",
        ask=_replaced,
    ),
    Question(
        about="a broker's own setting beside that of all brokers",
        answer=f"6000 by {BY_ONE}, 5000 by {BY_ALL}",
        ask=_own_first,
    ),
    Question(
        about="how many partitions a topic has for which three were tried, and two asked for",
        answer="No, No, 2",
        ask=_partitions_tried,
    ),
    Question(
        about="how many partitions and replicas a topic has for which nobody said it",
        answer="as set",
        ask=_defaults,
    ),
    Question(
        about="topics of a client whose controller_mutation_rate is next to nothing, and is over",
        answer=f"{OVER_QUOTA}, No",
        ask=_mutations,
    ),
)
