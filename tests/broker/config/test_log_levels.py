"""Loggers under the names that administrators of Apache Kafka use."""

from __future__ import annotations

import json
import subprocess
import sys

TELLS = """
import json, logging
from urteil.broker.config.incremental_changes import Change, Operation
from urteil.broker.config.log_levels import alter_levels, join_families, levels
from urteil.broker.zookeeper import session
names = ("groups", "controller", "urteil.broker.log.cleaner", "control", "zookeeper", "asyncio")
for name in names:
    logging.getLogger(name)
logging.root.setLevel("INFO")
join_families()
def read_levels():
    return {name: level for name, level in levels().items() if name in names}
seen = [read_levels()]
for name, level in (("kafka", "DEBUG"), ("kafka.log", "WARN"), ("state.change.logger", "ERROR")):
    change = Change(name=name, operation=Operation.SET, value=level)
    alter_levels("1", [change], 1, validate_only=False)
    seen.append(read_levels())
print(json.dumps(seen))
"""


def test_loggers_inherit_levels_by_apache_kafkas_names() -> None:
    """Runs in a process of its own, because loggers are global."""
    argv = [sys.executable, "-c", TELLS]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=240)
    first, everything, log, changes = json.loads(done.stdout)
    assert set(first.values()) == {"INFO"}
    of_kafka = ("groups", "controller", "urteil.broker.log.cleaner")
    assert everything == first | dict.fromkeys(of_kafka, "DEBUG")
    assert log == everything | {"urteil.broker.log.cleaner": "WARN"}
    assert changes == log | {"control": "ERROR"}
