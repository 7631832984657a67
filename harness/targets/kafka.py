"""Apache Kafka in ZooKeeper mode, started from its jars."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from urteil.harness.dependencies.java import QUICK_START
from urteil.harness.dependencies.kafka import VERSION
from urteil.harness.dependencies.kafka_logging import kafka_logging
from urteil.harness.dependencies.kafka_releases import (
    knows_setting,
    line_before,
    lowest_value,
    parse_version,
    release_line,
    topic_setting,
)
from urteil.harness.runtimes.runtime import Programs
from urteil.harness.targets.target import PROTOCOL, BrokerNode, Check

FORMAT_FOLLOWS_PROTOCOL = (3, 0)
"""From this release on, the message format follows the protocol version (KIP-724)."""
CHECK_S = 120
SETTING = re.compile(r'(?:<a id="(?:brokerconfigs_)?|<tr>\n<td>)([\w.]+)["<]')
"""A setting in the HTML of `kafka.server.KafkaConfig`: since 2.6 in a list with prefixed anchors,
in 2.4 and 2.5 without the prefix, before that in a table."""
REFUSAL = re.compile(r'Exception in thread "main" (?:[\w.$]+): (.*)')
HEAP = ("-Xms128m", "-Xmx512m")
LOCALE = ("-Duser.language=en", "-Duser.country=US")
"""Brokers write the names of segments in the digits of the JVM's locale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTarget:
    """`jvm` are the JVM's options. The default starts fast; benchmarks set their own."""

    version: str = VERSION
    jvm: tuple[str, ...] = field(default=(*HEAP, *QUICK_START))
    name: str = "kafka"
    waits_for_own_znode: bool = True
    lost_session: str = "KeeperException$SessionExpiredException"
    shows_metrics: bool = False
    has_zookeeper: bool = True

    @property
    def image(self) -> str:
        return f"kafka:{self.version}"

    def __post_init__(self) -> None:
        line = release_line(self.version)
        if self.has_zookeeper and not line.has_zookeeper:
            raise ValueError(f"Apache Kafka {self.version} has no ZooKeeper mode")

    def knows_setting(self, setting: str) -> bool:
        return knows_setting(self.version, setting)

    def lowest_value(self, setting: str) -> int | None:
        return lowest_value(self.version, setting)

    def topic_setting(self, setting: str, value: str) -> str:
        return topic_setting(self.version, setting, value)

    def translate_class(self, value: str) -> str:
        return value

    def previous_release(self) -> KafkaTarget:
        return replace(self, version=line_before(self.version).versions[0])

    def older_protocol(self) -> dict[str, str]:
        line = line_before(self.version)
        settings = {PROTOCOL: line.name}
        if parse_version(self.version) < FORMAT_FOLLOWS_PROTOCOL:
            settings["log.message.format.version"] = line.name
        return settings

    def features(self) -> dict[str, int]:
        return {}

    def argv(self, node: BrokerNode, programs: Programs, launcher: Sequence[str]) -> list[str]:
        if launcher:
            raise ValueError("a launcher changes the target urteil; Apache Kafka has none")
        logging = kafka_logging(self.version)
        return [
            programs.java(),
            *self.jvm,
            *LOCALE,
            *programs.kafka_classes(self.version),
            "-XX:-UsePerfData",
            "-Djava.awt.headless=true",
            f"-Djdk.net.hosts.file={node.hosts_file}",
            f"-Djava.io.tmpdir={node.temporary}",
            logging.jvm_option(node.home / logging.broker_file),
            "-cp",
            programs.kafka_classpath(self.version),
            "kafka.Kafka",
            str(node.properties_file),
        ]

    def env(self, node: BrokerNode) -> dict[str, str]:
        return {}

    def properties(self, node: BrokerNode) -> dict[str, str]:
        settings = {"num.recovery.threads.per.data.dir": "1", "log.cleaner.threads": "1"}
        return {**settings, **(release_line(self.version).settings or {})}

    def check(self, node: BrokerNode, programs: Programs) -> Check:
        """Run two of Kafka's programs: StorageTool parses the file as a broker does, KafkaConfig
        lists the settings."""
        reads = ["kafka.tools.StorageTool", "info", "--config", str(node.properties_file)]
        output = self._tool_output(programs, *reads)
        refusal = REFUSAL.search(output)
        settings = SETTING.findall(self._tool_output(programs, "kafka.server.KafkaConfig"))
        return Check(refusal=refusal[1].strip() if refusal else "", known=frozenset(settings))

    def _tool_output(self, programs: Programs, *tool: str) -> str:
        classes = programs.kafka_classpath(self.version)
        argv = [programs.java(), *QUICK_START, "-cp", classes, *tool]
        process = subprocess.run(argv, capture_output=True, text=True, timeout=CHECK_S, check=False)
        return process.stdout + process.stderr

    def format(self, node: BrokerNode, log_dir: Path, *, former_starts: int) -> None:
        """Does nothing: a broker with ZooKeeper starts with an empty directory."""

    def files(self, node: BrokerNode) -> dict[str, str]:
        logging = kafka_logging(self.version)
        return {logging.broker_file: logging.broker}
