"""Run every complete command of the pages, page by page.

It takes half an hour and a container engine: `tox run -e docs-played`, or after a nightly hunt.
Left out are the lines with placeholders (`RUN`, `[--seed N]`) and those that need a machine of the
reader's own (`spark1.example`).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.named import PAGES, ROOT, blocks, calls, complete
from urteil.harness.dependencies.docker_compose import docker_compose

pytestmark = pytest.mark.played

PRODUCING = [
    "urteil cluster up",
    "timeout 900 urteil tool kafka-producer-perf-test --topic orders --num-records 27000"
    " --record-size 100 --throughput 30 --producer-props acks=all client.id=orders-app"
    " >producer.log 2>&1 &",
]
"""A cluster and a producer, which ends with it."""
PREPARED = {
    "explain.md": ["urteil run demo --engine duckdb"],
    "faults.md": PRODUCING,
    "jepsen.md": [
        "urteil run demo --engine duckdb",
        "urteil export latest --to store/latest/history.edn",
    ],
    "states.md": [
        "urteil run demo --engine duckdb",
        "urteil run demo --engine duckdb --target kafka",
    ],
    "tools.md": PRODUCING,
}
"""Commands that a page assumes to have run before."""
FAILING = re.compile(
    r"urteil run .*(--mutant |--option variant=)|import .*histories/broken|hold .*--api EndTxn"
    r"|simulate .*--(mutant|schedule) "
)
"""Commands that end with exit code 1: seeded bugs, and a fault without its message."""
SHORTER = {
    "--hours 8 --targets urteil,kafka": "--hours 0.02",
    "--hours 1 --suite": "--reruns 0 --hours 0.05 --suite",
    "--shrink-minutes 12": "--shrink-minutes 0",
    "p2/1869": "p2/18",
    "--bugs 300 --seed 1 --budget 360": "--bugs 2",
    "--bugs 40": "--bugs 2",
    "--bugs 60": "--bugs 2",
}
"""Shorter nights and campaigns, and a record that runs of any length have."""
CLUSTERS = ("default", "play", "mix-a", "course", "racks", "locked", "box")
ANOTHER = re.compile(r"urteil cluster up --name (\S+)")
"""Several commands of a page start a cluster of one name: its reader types one of them."""
ELSEWHERE = ("spark1.example", "/mnt/bucket", "hosts.toml")
"""Machines of the reader's own: the tests have a Spark cluster and hosts of theirs."""
ELSEWHERE_TYPED = "urteil tool "
"""suites/courses plays Kafka's tools, with the records that they read and write."""
UP = "docker compose -f compose/compose.yaml up --wait"
DOWN = "docker compose -f compose/compose.yaml down"


def commands(page: Path) -> list[str]:
    """Those of the lab and of Docker Compose, in the page's order."""
    named = [
        f"{program} {call}"
        for line in blocks(page)
        for program in ("urteil", "docker")
        for call in calls([line], program)
        if (program == "urteil" or call.startswith("compose")) and complete(call)
    ]
    here = [line for line in named if not line.startswith(ELSEWHERE_TYPED)]
    here = [line for line in here if not any(place in line for place in ELSEWHERE)]
    for long, short in SHORTER.items():
        here = [line.replace(long, short) for line in here]
    if any("external:compose" in line for line in here):
        return ["urteil images build", UP, *(line for line in here if line not in (UP, DOWN)), DOWN]
    return here


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder to type in, with what the pages name in the checkout, and a program to judge."""
    (tmp_path / "compose").symlink_to(ROOT / "compose")
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "known_bugs").symlink_to(ROOT / "harness" / "known_bugs")
    shutil.copy(ROOT / "harness" / "clients" / "copy_app.py", tmp_path / "my_app.py")
    (tmp_path / "store" / "latest").mkdir(parents=True)
    return tmp_path


def type_in(desk: Path, line: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "XDG_STATE_HOME": str(desk / "state")}
    line = line.replace("docker compose", shlex.join(docker_compose()))
    return subprocess.run(
        line, shell=True, cwd=desk, env=os.environ | own, capture_output=True, text=True
    )


def codes(line: str) -> set[int]:
    """A shrinking's minutes may be over before it is done."""
    if line.startswith("urteil shrink"):
        return {0, 2}
    return {1} if FAILING.search(line) else {0}


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: str(page.name)
)
def test_commands_of_a_page_run(page: Path, desk: Path) -> None:
    try:
        for line in [*PREPARED.get(page.name, []), *commands(page)]:
            if up := ANOTHER.match(line):
                type_in(desk, f"urteil cluster down --name {up[1]}")
            done = type_in(desk, line)
            assert done.returncode in codes(line), f"{line}\n{done.stdout}\n{done.stderr}"
            assert "urteil shrink" not in line or "kept" in done.stdout, done.stdout
            assert "Traceback" not in done.stderr
    finally:
        for name in CLUSTERS:
            type_in(desk, f"urteil cluster down --name {name}")
