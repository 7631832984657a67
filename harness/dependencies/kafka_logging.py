"""Logging of Apache Kafka's brokers and tools: log4j until 3.9, Log4j 2 from 4.0 on (KIP-653)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from urteil.harness.dependencies.kafka_releases import FIRST_OF_LOG4J2, parse_version


class Logging(NamedTuple):
    """The files of a logger: for a broker to standard output, for a tool to standard error."""

    option: str
    broker_file: str
    broker: str
    tool_file: str
    tool: str

    def jvm_option(self, file: Path) -> str:
        """The JVM option that names the file."""
        return f"{self.option}={file.as_uri()}"


LOG4J = Logging(
    option="-Dlog4j.configuration",
    broker_file="log4j.properties",
    broker="""log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %c{1} %m%n
log4j.logger.org.apache.zookeeper=WARN
log4j.logger.kafka=INFO
log4j.logger.kafka.log=WARN
""",
    tool_file="tool-log4j.properties",
    tool="""log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n
""",
)
LOG4J2 = Logging(
    option="-Dlog4j2.configurationFile",
    broker_file="log4j2.properties",
    broker="""appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %c{1} %m%n
rootLogger=INFO, stdout
logger.log.name=org.apache.kafka.storage.internals.log
logger.log.level=WARN
""",
    tool_file="tool-log4j2.properties",
    tool="""appender.stderr.type=Console
appender.stderr.name=stderr
appender.stderr.target=SYSTEM_ERR
appender.stderr.layout.type=PatternLayout
appender.stderr.layout.pattern=%d{ISO8601} %p %c{1} %m%n
rootLogger=WARN, stderr
""",
)


def kafka_logging(version: str) -> Logging:
    """The logger of a release."""
    return LOG4J2 if parse_version(version) >= FIRST_OF_LOG4J2 else LOG4J
