"""Toxiproxy servers as nodes of a run."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.runtimes.runtime import NodeSpec, Runtime


class Toxiproxies:
    """Implements `chaos.links.Processes`; the server beside b1 is the node `toxiproxy-b1`."""

    def __init__(self, runtime: Runtime, run_dir: Path) -> None:
        self._runtime = runtime
        self._run_dir = run_dir

    def start_toxiproxy(self, node: str, host: str, port: int, config: str) -> None:
        folder = self._run_dir / "nodes" / _name(node)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "proxies.json").write_text(config)
        file = self._runtime.home(folder) / "proxies.json"
        toxiproxy = self._runtime.programs.toxiproxy()
        argv = [toxiproxy, "-host", host, "-port", str(port), "-config", str(file)]
        spec = NodeSpec(argv=argv, env={"LOG_LEVEL": "warn"}, cwd=folder)
        self._runtime.start(_name(node), spec)

    def kill_toxiproxy(self, node: str) -> None:
        self._runtime.kill(_name(node))

    def toxiproxy_alive(self, node: str) -> bool:
        return self._runtime.is_alive(_name(node))


def _name(node: str) -> str:
    return f"toxiproxy-{node}"
