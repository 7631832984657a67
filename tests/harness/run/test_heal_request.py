"""`urteil heal RUN` reaches the lab that plays the run, and detects a dead one."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from tests.waiting import until
from urteil.cli.main import exit_code
from urteil.harness.run.heal_request import LOCK, HealRequests, is_being_played, request_healing
from urteil.harness.scenario import Scenario, save


def answering(requests: HealRequests, why_not: str) -> threading.Thread:
    def answer() -> None:
        until(requests.is_pending)
        requests.answer(why_not)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


@pytest.mark.parametrize("why_not", ["", "a Toxiproxy died"])
def test_living_lab_answers_a_heal_request(tmp_path: Path, why_not: str) -> None:
    requests = HealRequests(tmp_path)
    with requests.accept():
        thread = answering(requests, why_not)
        assert is_being_played(tmp_path)
        assert request_healing(tmp_path, deadline_s=10) == why_not
        thread.join()
        assert not requests.is_pending()
    assert not is_being_played(tmp_path)


def test_lab_without_faults_does_not_answer(tmp_path: Path) -> None:
    with HealRequests(tmp_path).accept(), pytest.raises(TimeoutError, match="plays no faults"):
        request_healing(tmp_path, deadline_s=0.1)


def test_dead_lab_leaves_no_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "scenario.json", Scenario(name="x"))
    assert exit_code(["heal", str(tmp_path)]) == 0
    assert "its cluster ended with it" in capsys.readouterr().out


def test_client_of_a_heal_request_does_not_count_as_lab(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    with (tmp_path / LOCK).open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert not is_being_played(tmp_path)
