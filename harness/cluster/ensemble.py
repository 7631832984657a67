"""ZooKeeper servers: their files and their command line."""

from __future__ import annotations

from pathlib import Path

from urteil.chaos.topology import Plan
from urteil.harness.dependencies.java import QUICK_START
from urteil.harness.dependencies.zookeeper import MAIN
from urteil.harness.runtimes.runtime import Programs
from urteil.harness.targets.target import render

TICK_MS = 500
LOGGING = """rootLogger.level=info
rootLogger.appenderRef.stdout.ref=stdout
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %c{1} %m%n
logger.environment.name=org.apache.zookeeper.Environment
logger.environment.level=warn
"""
JVM = ("-Xms64m", "-Xmx256m", *QUICK_START, "-XX:-UsePerfData")


def write_zookeeper(plan: Plan, node: str, directory: Path, home: Path) -> None:
    """Write `zoo.cfg`, `hosts` and `myid` of one server, which sees `directory` as `home`.

    Transaction logs are never purged: they are evidence. `initLimit` is short because the proxy
    accepts and then closes a follower's connection to a leader that does not listen yet. The
    follower looks for another leader, and the first one must give up soon too.
    """
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    settings = {
        "tickTime": TICK_MS,
        "initLimit": 8,
        "syncLimit": 6,
        "minSessionTimeout": 2 * TICK_MS,
        "maxSessionTimeout": 60_000,
        "maxClientCnxns": 0,
        "dataDir": home / "data",
        "clientPort": plan.ports_at(node).zookeeper,
        "clientPortAddress": plan.address(node),
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
        "autopurge.purgeInterval": 0,
    }
    if len(plan.zookeepers) > 1:
        ports = {name: plan.ports_at(name) for name in plan.zookeepers}
        settings |= {
            f"server.{name[2:]}": f"{name}:{its.peer}:{its.election}" for name, its in ports.items()
        }
    (directory / "zoo.cfg").write_text(
        render({name: str(setting) for name, setting in settings.items()})
    )
    (data / "myid").write_text(node[2:] + "\n")
    (directory / "hosts").write_text(plan.hosts_file(node))
    (directory / "log4j2.properties").write_text(LOGGING)


def zookeeper_argv(programs: Programs, home: Path) -> list[str]:
    """The command line of the server with its files in `home`. It does not call fsync: the lab
    kills processes, not the machine, and the page cache survives those."""
    return [
        programs.java(),
        *JVM,
        *programs.zookeeper_classes(),
        f"-Djdk.net.hosts.file={home / 'hosts'}",
        f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
        "-Dzookeeper.forceSync=no",
        "-Dzookeeper.preAllocSize=1024",
        "-Dzookeeper.fastleader.maxNotificationInterval=1000",
        "-cp",
        programs.zookeeper_classpath(),
        MAIN,
        str(home / "zoo.cfg"),
    ]
