"""Toxiproxy servers as processes of a run."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.parts import toxiproxy_binary
from urteil.harness.runtimes.process import ProcessRuntime


class Toxiproxies:
    """Implements `chaos.links.Processes`; the server beside b1 is the process `toxiproxy-b1`."""

    def __init__(self, runtime: ProcessRuntime, run_dir: Path) -> None:
        self._runtime = runtime
        self._folder = run_dir / "nodes" / "toxiproxy"

    def start_toxiproxy(self, node: str, host: str, port: int, config: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{node}.json"
        file.write_text(config)
        argv = [str(toxiproxy_binary()), "-host", host, "-port", str(port), "-config", str(file)]
        self._runtime.start(_name(node), argv, env={"LOG_LEVEL": "warn"})

    def kill_toxiproxy(self, node: str) -> None:
        self._runtime.kill(_name(node))

    def toxiproxy_alive(self, node: str) -> bool:
        return self._runtime.alive(_name(node))


def _name(node: str) -> str:
    return f"toxiproxy-{node}"
