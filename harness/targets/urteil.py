"""Our own broker, and its mutants."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from urteil.chaos.observations import LabFailure
from urteil.harness.runtimes.runtime import Programs
from urteil.harness.targets.target import PROTOCOL, BrokerNode, Check

CHECK_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class UrteilTarget:
    """`python -m urteil.broker`, or a launcher that changes the broker before it starts."""

    version: str = metadata.version("urteil")
    name: str = "urteil"
    image: str = "broker"
    waits_for_own_znode: bool = False
    lost_session: str = ""
    shows_metrics: bool = True
    has_zookeeper: bool = True

    def format(self, node: BrokerNode, log_dir: Path, *, former_starts: int) -> None:
        """Does nothing: the broker starts with an empty directory."""

    def knows_setting(self, setting: str) -> bool:
        return True

    def lowest_value(self, setting: str) -> int | None:
        return None

    def topic_setting(self, setting: str, value: str) -> str:
        return setting

    def translate_class(self, value: str) -> str:
        return value

    def previous_release(self) -> UrteilTarget:
        """This target: an upgrade of our broker changes only the protocol between brokers."""
        return self

    def older_protocol(self) -> dict[str, str]:
        return {PROTOCOL: "3.8"}

    def features(self) -> dict[str, int]:
        return {}

    def argv(self, node: BrokerNode, programs: Programs, launcher: Sequence[str]) -> list[str]:
        python = [programs.python(), "-P", "-u", "-m"]
        program = [*launcher, "--"] if launcher else ["urteil.broker"]
        return [*python, *program, str(node.properties_file)]

    def env(self, node: BrokerNode) -> dict[str, str]:
        return {}

    def properties(self, node: BrokerNode) -> dict[str, str]:
        return {
            "urteil.hosts.file": str(node.hosts_file),
            "urteil.metrics.listener": "{}:{}".format(*node.metrics),
        }

    def check(self, node: BrokerNode, programs: Programs) -> Check:
        argv = [
            programs.python(),
            "-P",
            "-m",
            "urteil.broker",
            "--check",
            str(node.properties_file),
        ]
        process = subprocess.run(argv, capture_output=True, text=True, timeout=CHECK_S, check=False)
        if process.returncode not in (0, 1):
            raise LabFailure(f"the broker cannot check settings: {process.stderr.strip()[-500:]}")
        refusal = process.stderr.strip() if process.returncode else ""
        return Check(refusal=refusal, known=frozenset(process.stdout.split()))

    def files(self, node: BrokerNode) -> dict[str, str]:
        return {}
