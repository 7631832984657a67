"""The format of a KRaft node's log directory, from files kept in the cache.

Kafka's StorageTool formats a directory once a release and machine. A node's directory is a copy of
it with the node's own `meta.properties`, so that no start of a cluster needs a JVM for it. The
other files set the release's features: metadata.version, and from 4.0 on those of groups,
transactions, share groups and eligible leader replicas.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.dependencies.java import QUICK_START, java

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
META = "meta.properties"
TIMEOUT_S = 120
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
log.dirs={data}
"""


def write_formatted(classpath: str, folder: Path) -> None:
    """Format a directory by the release's own tool into the new `folder`, without
    `meta.properties`. Raises MissingDependency with the tool's last line."""
    with tempfile.TemporaryDirectory() as scratch:
        settings = Path(scratch) / "server.properties"
        settings.write_text(SETTINGS.format(data=folder))
        tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(settings)]
        argv = [java(), *QUICK_START, "-cp", classpath, *tool]
        process = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    if process.returncode:
        output = (process.stdout + process.stderr).strip().splitlines()
        raise MissingDependency("kafka", f"StorageTool format failed: {output[-1:]}")
    (folder / META).unlink()


def format_directory(log_dir: Path, formatted: Path | None, *, node_id: int, name: str) -> None:
    """Format a log directory that has no `meta.properties`, with the files of `formatted`.

    `name` identifies the directory in its cluster.
    """
    if (log_dir / META).exists():
        return
    log_dir.mkdir(parents=True, exist_ok=True)
    if formatted is not None:
        shutil.copytree(formatted, log_dir, dirs_exist_ok=True)
    lines = [
        "version=1",
        f"cluster.id={CLUSTER_ID}",
        f"node.id={node_id}",
        f"directory.id={directory_id(name)}",
    ]
    (log_dir / META).write_text("\n".join(lines) + "\n")


def directory_id(name: str) -> str:
    """The id of the log directory with this name, as Kafka prints it."""
    return urlsafe_b64encode(uuid.uuid5(uuid.NAMESPACE_OID, name).bytes).decode().rstrip("=")
