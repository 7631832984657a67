"""Produce, consume, join a group and describe the cluster with kcat."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

KCAT, BOOTSTRAP, PREFIX = sys.argv[1:]
TOPIC, GROUP = f"{PREFIX}-data", f"{PREFIX}-group"
WAIT_S = 60


def kcat(*args: str, given: str = "") -> str:
    argv = [KCAT, "-b", BOOTSTRAP, "-q", *args]
    done = subprocess.run(
        argv, input=given, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, (argv, done.stderr)
    return done.stdout


def administration() -> dict[str, Any]:
    """It makes no topics; the broker does, as it is asked of one."""
    kcat("-L", "-t", TOPIC, "-X", "allow.auto.create.topics=true")
    return {"brokers": sorted(broker["id"] for broker in json.loads(kcat("-L", "-J"))["brokers"])}


def produce() -> dict[str, Any]:
    for n in range(30):
        argv = ["-P", "-t", TOPIC, "-p", "0", "-K", "\t", "-H", f"n={n}", "-z", "snappy"]
        kcat(*argv, "-X", "enable.idempotence=true", given=f"key {n}\tvalue {n}\n")
    return {"end": kcat("-Q", "-t", f"{TOPIC}:0:-1").split()[-1]}


def consume() -> dict[str, Any]:
    output = kcat("-C", "-t", TOPIC, "-p", "0", "-o", "beginning", "-e", "-J")
    messages = [json.loads(line) for line in output.splitlines()]
    return {
        "records": [
            [message["payload"], message["key"], message["headers"][1]] for message in messages
        ]
    }


def group() -> dict[str, Any]:
    """Twice: the second member begins where the first has committed."""
    settings = ("-X", "auto.offset.reset=earliest", "-e", "-f", "%s\n")
    return {"read": [len(kcat("-G", GROUP, *settings, TOPIC).splitlines()) for _ in range(2)]}


if __name__ == "__main__":
    STEPS = (administration, produce, consume, group)
    print(json.dumps({part.__name__: part() for part in STEPS}))
