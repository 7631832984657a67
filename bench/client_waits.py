"""How long ApiVersions requests of one client wait while another client sends a large request.

`python bench/client_waits.py [--elements N] [--only WORD]` prints one line for each request: the
longest wait in ms and the growth of the broker's memory. One broker of ours on a real ZooKeeper.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

import click

from tests.broker.nodes import Nodes
from tests.broker.waits.bystander import Bystander, Client, framed
from tests.broker.waits.wide_requests import wide_requests
from tests.broker.zookeeper.server import ZooKeeperServer


@click.command()
@click.option("--elements", default=100_000, show_default=True)
@click.option("--only", default="", help="Requests with this word in their name.")
def main(elements: int, only: str) -> None:
    """Measure every wide request."""
    with tempfile.TemporaryDirectory(prefix="urteil-waits-") as name:
        folder = Path(name)
        zookeeper = ZooKeeperServer(folder)
        zookeeper.start()
        try:
            with Nodes(folder, zookeeper, "/waits", 1) as nodes:
                for row, key, version, request in wide_requests(elements):
                    if only.upper() in row.upper():
                        click.echo(measured(nodes, row, framed(key, version, request)))
        finally:
            zookeeper.kill()


def measured(nodes: Nodes, name: str, frame: bytes) -> str:
    """Send one request; return the longest wait of the other client."""
    bystander = Bystander(nodes.ports[1], nodes.processes[1].pid)
    began, answer = time.monotonic(), "no answer"
    with Client(nodes.ports[1], 60.0) as client, bystander.watching():
        with contextlib.suppress(ConnectionError, TimeoutError):
            answer = f"{len(client.exchange(frame)):,} B"
    took_ms = (time.monotonic() - began) * 1000
    return (
        f"{bystander.longest_wait_s * 1000:8.0f} ms waited, {took_ms:8.0f} ms in all, "
        f"{bystander.grown_bytes >> 20:5} MiB, {len(frame):11,} B -> {answer:>14}  {name}"
    )


if __name__ == "__main__":
    main()
