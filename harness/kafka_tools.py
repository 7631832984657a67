"""Apache Kafka's command-line tools: the scripts by name, and the address of a cluster filled in.

A script such as `kafka-topics` starts one class of Kafka's jars; the class and the option for the
cluster's address changed between releases. `TOOLS` declares both for the releases of `RELEASES`.
`tool_arguments` adds the address and the client configuration file that a command line lacks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

NEW, OLD = "3.9.1", "2.8.0"
RELEASES = (NEW, OLD)
"""The second one is the last whose tools write into ZooKeeper."""
NO_CLUSTER = ("--help", "--version")
SERVER = re.compile(r"[\w.\[\]:-]+:\d+(,\S+)?(/\S*)?")

Place = Literal["front", "back", "first argument", "-server"]


class Address(NamedTuple):
    """A cluster for tools. `config` is a property file of a Java client with `bootstrap.servers`;
    tools need it where `is_secured`."""

    bootstrap: str
    zookeeper: str
    config: str
    is_secured: bool = False

    def value(self, option: str) -> str:
        """The value of an address option."""
        if option == "--authorizer-properties":
            return f"zookeeper.connect={self.zookeeper}"
        return self.zookeeper if option == "--zookeeper" else self.bootstrap


class Call(NamedTuple):
    """A tool in one release.

    `addresses` are the options that name the cluster, the usual one first. `config` is the option
    for the client configuration file, empty without any. `place` is where both go. A tool without
    `addresses` finds the cluster in the file alone, or needs none.
    """

    main_class: str
    addresses: tuple[str, ...] = ("--bootstrap-server",)
    config: str = "--command-config"
    place: Place = "front"


class Tool(NamedTuple):
    """A script: its name, its purpose, and its call in each release that has it."""

    name: str
    purpose: str
    new: Call | None
    old: Call | None = None

    def call(self, release: str) -> Call | None:
        return self.new if release == NEW else self.old


BOOTSTRAP = "--bootstrap-server"
ZOOKEEPER = ("--zookeeper", BOOTSTRAP)
PRODUCE, CONSUME = "--producer.config", "--consumer.config"
TOOLS = {
    tool.name: tool
    for tool in (
        Tool("kafka-topics", "Create, list, describe, alter and delete topics.",
             Call("org.apache.kafka.tools.TopicCommand"),
             Call("kafka.admin.TopicCommand", ZOOKEEPER)),
        Tool("kafka-configs", "Describe and alter settings of topics, brokers, clients and users.",
             Call("kafka.admin.ConfigCommand",
                  (BOOTSTRAP, "--zookeeper", "--bootstrap-controller")),
             Call("kafka.admin.ConfigCommand", ZOOKEEPER)),
        Tool("kafka-console-producer", "Send lines of standard input as records.",
             Call("kafka.tools.ConsoleProducer", (BOOTSTRAP, "--broker-list"), PRODUCE),
             Call("kafka.tools.ConsoleProducer", (BOOTSTRAP, "--broker-list"), PRODUCE)),
        Tool("kafka-console-consumer", "Print the records of topics.",
             Call("org.apache.kafka.tools.consumer.ConsoleConsumer", config=CONSUME),
             Call("kafka.tools.ConsoleConsumer", config=CONSUME)),
        Tool("kafka-consumer-groups", "List, describe, reset and delete consumer groups.",
             Call("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"),
             Call("kafka.admin.ConsumerGroupCommand")),
        Tool("kafka-acls", "Add, list and remove ACLs.",
             Call("kafka.admin.AclCommand",
                  (BOOTSTRAP, "--authorizer-properties", "--bootstrap-controller")),
             Call("kafka.admin.AclCommand", (BOOTSTRAP, "--authorizer-properties"))),
        Tool("kafka-reassign-partitions", "Move replicas between brokers and log directories.",
             Call("org.apache.kafka.tools.reassign.ReassignPartitionsCommand"),
             Call("kafka.admin.ReassignPartitionsCommand", ZOOKEEPER)),
        Tool("kafka-leader-election", "Elect preferred or unclean leaders.",
             Call("org.apache.kafka.tools.LeaderElectionCommand", config="--admin.config"),
             Call("kafka.admin.LeaderElectionCommand", config="--admin.config")),
        Tool("kafka-preferred-replica-election", "Elect preferred leaders (2.8.0).", None,
             Call("kafka.admin.PreferredReplicaLeaderElectionCommand", ZOOKEEPER,
                  "--admin.config")),
        Tool("kafka-dump-log", "Print the segments of a replica log.",
             Call("kafka.tools.DumpLogSegments", (), ""),
             Call("kafka.tools.DumpLogSegments", (), "")),
        Tool("kafka-get-offsets", "Print the offsets of partitions by time.",
             Call("org.apache.kafka.tools.GetOffsetShell", (BOOTSTRAP, "--broker-list")),
             Call("kafka.tools.GetOffsetShell", ("--broker-list", BOOTSTRAP))),
        Tool("kafka-delete-records", "Delete the records before given offsets.",
             Call("org.apache.kafka.tools.DeleteRecordsCommand"),
             Call("kafka.admin.DeleteRecordsCommand")),
        Tool("kafka-log-dirs", "Describe the log directories of brokers.",
             Call("org.apache.kafka.tools.LogDirsCommand"), Call("kafka.admin.LogDirsCommand")),
        Tool("kafka-transactions", "List, describe and abort transactions.",
             Call("org.apache.kafka.tools.TransactionsCommand")),
        Tool("kafka-broker-api-versions", "Print the API versions of brokers.",
             Call("kafka.admin.BrokerApiVersionsCommand"),
             Call("kafka.admin.BrokerApiVersionsCommand")),
        Tool("kafka-cluster", "Print the id of the cluster.",
             Call("org.apache.kafka.tools.ClusterTool", config="--config", place="back"),
             Call("kafka.tools.ClusterTool", config="--config", place="back")),
        Tool("kafka-features", "Describe the features of the cluster.",
             Call("org.apache.kafka.tools.FeatureCommand"), Call("kafka.admin.FeatureCommand")),
        Tool("kafka-delegation-tokens", "Create, describe, renew and expire delegation tokens.",
             Call("org.apache.kafka.tools.DelegationTokenCommand"),
             Call("kafka.admin.DelegationTokenCommand")),
        Tool("kafka-producer-perf-test", "Measure the throughput of a producer.",
             Call("org.apache.kafka.tools.ProducerPerformance", (), PRODUCE),
             Call("org.apache.kafka.tools.ProducerPerformance", (), PRODUCE)),
        Tool("kafka-consumer-perf-test", "Measure the throughput of a consumer.",
             Call("org.apache.kafka.tools.ConsumerPerformance", (BOOTSTRAP, "--broker-list"),
                  CONSUME),
             Call("kafka.tools.ConsumerPerformance", (BOOTSTRAP, "--broker-list"), CONSUME)),
        Tool("kafka-e2e-latency", "Measure the time from a send to its read.",
             Call("org.apache.kafka.tools.EndToEndLatency", ("",), "", "first argument"),
             Call("kafka.tools.EndToEndLatency", ("",), "", "first argument")),
        Tool("kafka-verifiable-producer", "Send numbers and print each outcome as JSON.",
             Call("org.apache.kafka.tools.VerifiableProducer", (BOOTSTRAP, "--broker-list"),
                  PRODUCE),
             Call("org.apache.kafka.tools.VerifiableProducer", (BOOTSTRAP, "--broker-list"),
                  PRODUCE)),
        Tool("kafka-verifiable-consumer", "Read as a group member and print each event as JSON.",
             Call("org.apache.kafka.tools.VerifiableConsumer", (BOOTSTRAP, "--broker-list"),
                  CONSUME),
             Call("org.apache.kafka.tools.VerifiableConsumer", (BOOTSTRAP, "--broker-list"),
                  CONSUME)),
        Tool("kafka-replica-verification", "Compare the replicas of topics.",
             Call("org.apache.kafka.tools.ReplicaVerificationTool", ("--broker-list",), ""),
             Call("kafka.tools.ReplicaVerificationTool", ("--broker-list",), "")),
        Tool("kafka-streams-application-reset", "Reset the topics and offsets of a Kafka Streams "
             "application.",
             Call("org.apache.kafka.tools.StreamsResetter", (BOOTSTRAP, "--bootstrap-servers"),
                  "--config-file"),
             Call("kafka.tools.StreamsResetter", ("--bootstrap-servers",), "--config-file")),
        Tool("kafka-jmx", "Print metrics of a JVM.",
             Call("org.apache.kafka.tools.JmxTool", (), ""), Call("kafka.tools.JmxTool", (), "")),
        Tool("zookeeper-shell", "Look into the cluster's ZooKeeper.",
             Call("org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka", ("",), "", "-server"),
             Call("org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka", ("",), "",
                  "-server")),
    )
}  # fmt: skip


def tool_name(word: str) -> str:
    """The name of the tool that a user calls `word`: `.sh` at its end has no meaning."""
    return word.removesuffix(".sh")


def needs_cluster(call: Call, args: Sequence[str]) -> bool:
    """Whether the command line lacks the address of a cluster or its client configuration."""
    return bool(call.addresses or call.config) and not any(word in NO_CLUSTER for word in args)


def tool_arguments(call: Call, args: Sequence[str], address: Address | None) -> list[str]:
    """The arguments of the tool's class: those of the user, and what they lack.

    An address option without a value receives it. Without `address` nothing is added.
    """
    match call.place:
        case "-server":
            has_address = bool(args) and SERVER.fullmatch(args[0])
            server = [] if has_address or address is None else [address.zookeeper]
            return ["-server", *server, *args] if has_address or server else list(args)
        case "first argument":
            has_address = bool(args) and SERVER.fullmatch(args[0])
            return list(args) if has_address or address is None else [address.bootstrap, *args]
    if address is None:
        return list(args)
    filled, given = _fill_values(call, args, address)
    added = []
    if call.addresses and not given:
        given = call.addresses[0]
        added = [given, address.value(given)]
    is_config_needed = address.is_secured or not call.addresses
    if call.config and is_config_needed and given in ("", BOOTSTRAP, *_BROKER_OPTIONS):
        added += [] if _has_option(args, call.config) else [call.config, address.config]
    return [*added, *filled] if call.place == "front" else [*filled, *added]


_BROKER_OPTIONS = ("--broker-list", "--bootstrap-servers")


def _fill_values(call: Call, args: Sequence[str], address: Address) -> tuple[list[str], str]:
    """The arguments with the missing values of address options, and the option that was given."""
    filled: list[str] = []
    given = ""
    for at, word in enumerate(args):
        filled.append(word)
        option = next(
            (address for address in call.addresses if word.partition("=")[0] == address), ""
        )
        if not option:
            continue
        given = option
        has_value = "=" in word or (at + 1 < len(args) and not args[at + 1].startswith("--"))
        if not has_value:
            filled.append(address.value(option))
    return filled, given


def _has_option(args: Sequence[str], option: str) -> bool:
    return any(word.partition("=")[0] == option for word in args)
