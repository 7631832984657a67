"""Questions about settings: precedence, rejected values, and validate_only."""

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
    BrokerAnswer,
    Brokers,
    Question,
    await_value,
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
    read_configs,
)

OF_ONE, BY_ONE, BY_ALL = "log.index.interval.bytes", 2, 3
MUTATIONS = "controller_mutation_rate"
OVER_QUOTA, FEW = "ThrottlingQuotaExceeded", 0.01
"""The latter in partitions a second."""


def _alter_error(brokers: Brokers, node: int, kind: int, name: str, key: str, value: str) -> int:
    kinds: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = kinds.AlterableConfig(name=key, config_operation=SET, value=value)
    entry_request = kinds(resource_type=kind, resource_name=name, configs=[change])
    request = IncrementalAlterConfigsRequest[0](resources=[entry_request], validate_only=False)
    return int(brokers.send(node, request).responses[0].error_code)


def _alter_invalid(brokers: Brokers, name: str) -> BrokerAnswer:
    """An invalid value, an unknown name, a missing topic, and a broker setting that needs a
    restart."""
    brokers.create(name, [[brokers.nodes[0]]])
    node = brokers.controller
    results = [
        _alter_error(brokers, node, OF_TOPIC, name, "retention.ms", "long"),
        _alter_error(brokers, node, OF_TOPIC, name, "unheard.of", "1"),
        _alter_error(brokers, node, OF_TOPIC, f"{name}-never", "retention.ms", "1000"),
        _alter_error(brokers, node, OF_BROKER, str(node), "log.dirs", "elsewhere"),
    ]
    return node, names(results)


def _replace_configs(brokers: Brokers, name: str) -> BrokerAnswer:
    """AlterConfigs resets the settings that it does not name; with validate_only it changes
    nothing."""
    brokers.create(name, [brokers.nodes], retention_ms="123456", max_message_bytes="54321")
    kinds: Any = AlterConfigsRequest.AlterConfigsResource
    entry_request = kinds(
        resource_type=OF_TOPIC, resource_name=name,
        configs=[kinds.AlterableConfig(name="retention.ms", value="234567")],
    )  # fmt: skip

    def observe(node: int) -> str:
        first = read_configs(brokers, node, OF_TOPIC, name, ["retention.ms"])
        return f"{first}, {read_configs(brokers, node, OF_TOPIC, name, ['max.message.bytes'])[-1]}"

    results = []
    for tried, answer in ((True, TRIED), (False, DONE)):
        request = AlterConfigsRequest[1](resources=[entry_request], validate_only=tried)
        check("AlterConfigs", brokers.send(brokers.controller, request).responses[0].error_code)
        node, result = by_all(brokers, observe, answer)
        results.append(result)
    return node, "; ".join(results)


TRIED = f"123456 by {BY_TOPIC}, {BY_TOPIC}"
DONE = f"234567 by {BY_TOPIC}, {BY_DEFAULT}"


def _compare_precedence(brokers: Brokers, name: str) -> BrokerAnswer:
    """A broker's own setting takes precedence over the default of all brokers, until it
    is removed."""
    node = brokers.nodes[0]

    def observe() -> str:
        return read_configs(brokers, node, OF_BROKER, str(node), [OF_ONE])

    try:
        alter(brokers, "", (OF_ONE, SET, "5000"), kind=OF_BROKER)
        error = _alter_error(brokers, node, OF_BROKER, str(node), OF_ONE, "6000")
        check("IncrementalAlterConfigs", error)
        own = await_value(brokers, observe, f"6000 by {BY_ONE}")
        _delete_own(brokers, node)
        of_all = await_value(brokers, observe, f"5000 by {BY_ALL}")
    finally:
        alter(brokers, "", (OF_ONE, DELETE, None), kind=OF_BROKER)
    return node, f"{own}, {of_all}"


def _delete_own(brokers: Brokers, node: int) -> None:
    kinds: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = kinds.AlterableConfig(name=OF_ONE, config_operation=DELETE, value=None)
    entry_request = kinds(resource_type=OF_BROKER, resource_name=str(node), configs=[change])
    request = IncrementalAlterConfigsRequest[0](resources=[entry_request], validate_only=False)
    check("IncrementalAlterConfigs", brokers.send(node, request).responses[0].error_code)


def _validate_partitions(brokers: Brokers, name: str) -> BrokerAnswer:
    brokers.create(name, [[brokers.nodes[0]]])
    kinds = CreatePartitionsRequest.CreatePartitionsTopic
    results = []
    for number, tried in ((3, True), (2, False)):
        request = CreatePartitionsRequest[1](
            topics=[kinds(name=name, count=number, assignments=None)],
            timeout_ms=5_000, validate_only=tried,
        )  # fmt: skip
        results.append(brokers.send(brokers.controller, request).results[0].error_code)

    def observe_count(node: int) -> str:
        return str(len(brokers.metadata(node, name).partitions))

    node, known_count = by_all(brokers, observe_count, "2")
    return node, f"{names(results)}, {known_count}"


def _create_with_defaults(brokers: Brokers, name: str) -> BrokerAnswer:
    """A topic without given numbers gets the brokers' defaults (KIP-464)."""
    check("CreateTopics", brokers.create_errors(name)[0])
    node = brokers.controller
    keys = ("num.partitions", "default.replication.factor")
    result = read_configs(brokers, node, OF_BROKER, str(node), keys)
    expected = [int(size.split()[0]) for size in result.split(", ")]

    def observe(node: int) -> str:
        partitions = brokers.metadata(node, name).partitions
        sizes = {len(partition.replica_nodes) for partition in partitions}
        return (
            "as set"
            if [len(partitions), *sizes] == expected
            else f"{len(partitions)} {sizes} for {expected}"
        )

    return by_all(brokers, observe, "as set")


def _throttle_mutations(brokers: Brokers, name: str) -> BrokerAnswer:
    """A client with a tiny controller mutation rate can create some partitions, and then gets an
    error (KIP-599)."""
    kinds: Any = AlterClientQuotasRequest.EntryData
    node, numbers = brokers.controller, count()

    def limit(*, remove: bool) -> None:
        entry_request = kinds(
            entity=[kinds.EntityData(entity_type="client-id", entity_name=name)],
            ops=[kinds.OpData(key=MUTATIONS, value=FEW, remove=remove)],
        )
        request = AlterClientQuotasRequest[0](entries=[entry_request], validate_only=False)
        check("AlterClientQuotas", brokers.send(node, request).entries[0].error_code)

    def create() -> str:
        new = CreateTopicsRequest.CreatableTopic(
            name=f"{name}-{next(numbers)}", num_partitions=2, replication_factor=1,
            assignments=[], configs=[],
        )  # fmt: skip
        request = CreateTopicsRequest[6](topics=[new], timeout_ms=5_000, validate_only=False)
        return name_of(brokers.send(node, request, name).topics[0].error_code)

    limit(remove=False)
    refused = await_value(brokers, create, OVER_QUOTA)
    limit(remove=True)
    return node, f"{refused}, {await_value(brokers, create, 'No')}"


SETTINGS = (
    Question(
        about="settings with an invalid value, an unknown name, of a missing topic, "
        "that need a restart",
        answer="InvalidConfiguration, InvalidConfiguration, UnknownTopicOrPartition, "
        "InvalidRequest",
        ask=_alter_invalid,
    ),
    Question(
        about="AlterConfigs of one of two settings, with validate_only and without",
        answer=f"{TRIED}; {DONE}",
        ask=_replace_configs,
    ),
    Question(
        about="a broker's own setting beside the default of all brokers",
        answer=f"6000 by {BY_ONE}, 5000 by {BY_ALL}",
        ask=_compare_precedence,
    ),
    Question(
        about="the partitions of a topic after validate_only for three and a request for two",
        answer="No, No, 2",
        ask=_validate_partitions,
    ),
    Question(
        about="the default numbers of partitions and replicas",
        answer="as set",
        ask=_create_with_defaults,
    ),
    Question(
        about="topics of a client with a tiny controller_mutation_rate, and without one",
        answer=f"{OVER_QUOTA}, No",
        ask=_throttle_mutations,
    ),
)
