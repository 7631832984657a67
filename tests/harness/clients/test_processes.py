"""Exit codes of clients that were stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.waiting import until
from urteil.harness.clients.processes import Clients, spawn_process


@pytest.mark.parametrize(("code", "good"), [(0, True), (143, True), (1, False)])
def test_stopped_program_may_exit_like_a_jvm(tmp_path: Path, code: int, good: bool) -> None:
    clients = Clients(tmp_path, spawn_process)
    ends = f"trap 'exit {code}' TERM; echo up; while :; do sleep 0.05; done"
    clients.run("a1", ["/bin/sh", "-c", ends])
    until((tmp_path / "logs" / "client-a1.log").read_text)
    assert clients.terminate(["a1"], 10.0) == []
    assert (clients.failures() == []) is good
