"""The archive of nights: known signatures, survival of kills, and the disk budget."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.harness.hunt.rows import row
from tests.harness.hunt.test_night import LONG, Killed, hunted, night, player
from tests.reports import example_run
from urteil.harness.hunt.archive import Archive
from urteil.harness.hunt.disk_budget import prune_to
from urteil.harness.hunt.job import Job, Row, row_of
from urteil.harness.scenario import Phase, RunFacts

LOST = "lost_write/tail under crash in urteil"
WRITER = """
import sys
from pathlib import Path
from tests.harness.hunt.rows import row
from msgspec.structs import replace
from urteil.harness.hunt.archive import Archive
history = Archive(Path(sys.argv[1]))
for seed in range(100_000):
    history.add(replace(row(seed=seed), signatures=["a", "b"]))
    print(seed, flush=True)
"""


def test_a_finding_has_a_signature() -> None:
    facts = RunFacts(run="r", seed=7, scenario="demo", target="urteil", runtime="process",
                     boot_id="b", command="")  # fmt: skip
    row = row_of(Job(scenario="demo", seed=7), example_run.result(), facts, seconds=1.0, at="now",
                   run=Path("x"))  # fmt: skip
    assert row.signatures == [LOST]


@pytest.mark.parametrize(("phase_begins_s", "first_s"), [(-7, 7.0), (0.5, 0.0)])
def test_first_finding_is_timed_from_the_begin_of_the_load(
    phase_begins_s: float, first_s: float
) -> None:
    """A finding while clients started was found at once."""
    result = example_run.result()
    (at_ns,) = {finding.at_ns for g in result.guarantees for finding in g.findings}
    begin_ns = at_ns + round(phase_begins_s * 1e9)
    load = Phase(name="before", begin_ns=begin_ns, end_ns=begin_ns + 1)
    facts = RunFacts(run="r", seed=7, scenario="demo", target="urteil", runtime="process",
                     boot_id="b", command="", phases=[load])  # fmt: skip
    job = Job(scenario="demo", seed=7)
    row = row_of(job, result, facts, seconds=1.0, at="now", run=Path("x"))
    assert row.first_s == {"lost_write": first_s}


def test_signature_ignores_the_run_in_topic_names() -> None:
    def signatures(run: str) -> list[str]:
        known_counts = example_run.result()
        known_counts.guarantees = [
            replace(g, findings=[replace(finding, topic=f"urteil-{run}") for finding in g.findings])
            for g in known_counts.guarantees
        ]
        facts = RunFacts(run=run, seed=7, scenario="demo", target="external:x", runtime="external",
                         boot_id="b", command="")  # fmt: skip
        job = Job(scenario="demo", seed=7)
        return row_of(job, known_counts, facts, seconds=1.0, at="now", run=Path("x")).signatures

    assert signatures("331af807") == signatures("9f00c1d2") == [LOST]


def test_known_signature_is_recognised(tmp_path: Path) -> None:
    history = Archive(tmp_path / "history.db")
    first = replace(row("kill", 3, "FAIL"), signatures=[LOST])
    assert history.add(first) == []
    again = replace(row("other", 4, "FAIL"), at="2026-01-03 00:00:00", signatures=[LOST, "new"])
    (known,) = Archive(tmp_path / "history.db").add(again)
    assert (known.signature, known.times, known.scenario, known.seed) == (LOST, 1, "kill", 3)
    assert known.first_at == first.at
    assert history.last_played(again.job) == "2026-01-03 00:00:00"
    assert history.last_played(Job(scenario="never", seed=1)) == ""


def test_run_is_stored_once(tmp_path: Path) -> None:
    history = Archive(tmp_path / "history.db")
    runs = [
        replace(row("kill", seed, "FAIL"), at=f"2026-01-0{seed} 00:00:00", signatures=[LOST])
        for seed in (1, 2, 3)
    ]
    known_counts = [[known.times for known in history.add(run)] for run in (*runs, *runs)]
    assert known_counts == [[], [1], [2]] * 2


def test_continued_night_stores_runs_missing_after_a_kill(tmp_path: Path) -> None:
    hunted(tmp_path, 3, verdict="FAIL")
    again = night(tmp_path, player(0))
    again.history = Archive(tmp_path / "history.db")
    with pytest.raises(Killed):
        again.hunt(time.monotonic() + LONG)
    for played in again.ledger.rows:
        assert again.history.last_played(played.job) == played.at


def test_night_reports_known_signatures(tmp_path: Path) -> None:
    known_counts = []

    def play(job: Job, out: Path) -> Row:
        return replace(player(1, verdict="FAIL")(job, out), signatures=[LOST],
                       at=f"2026-01-02 03:04:{len(known_counts) + job.seed:02}")  # fmt: skip

    hunt = night(tmp_path, play)
    hunt.history = Archive(tmp_path / "history.db")
    hunt.on_known_signature = known_counts.append
    jobs = [
        Job(scenario="kill", seed=7),
        Job(scenario="calm", seed=7),
        Job(scenario="kill", seed=8),
    ]
    for job in [*jobs, Job(scenario="kill", seed=8, target="kafka")]:
        hunt._remember(play(job, tmp_path / "runs"))
    assert [known.times for known in known_counts] == [1, 2], "another target's is another one"


def test_archive_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    for last in (3, 17, 40):
        argv = [sys.executable, "-c", WRITER, str(path)]
        root = Path(__file__).parents[3]
        writer = subprocess.Popen(argv, text=True, stdout=subprocess.PIPE, cwd=root)
        assert writer.stdout is not None
        written = -1
        while written < last:
            written = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        with sqlite3.connect(path) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            rows, signatures = (db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
                                for t in ("runs", "signatures"))  # fmt: skip
        assert rows > written
        assert signatures == 2 * rows, "a run is there whole or not at all"


def test_failures_are_removed_last(tmp_path: Path) -> None:
    def kept(name: str, verdict: str, at: str) -> Row:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "data").write_bytes(bytes(1000))
        return replace(row(verdict=verdict, run=folder), at=at)

    rows = [kept("old-failure", "FAIL", "1"), kept("known-failure", "FAIL", "4"),
            kept("new-failure", "FAIL", "3"), kept("unknown", "UNKNOWN", "9")]  # fmt: skip
    known = frozenset({str(tmp_path / "known-failure")})
    assert prune_to(rows, 4000, known) == []
    assert [path.name for path in prune_to(rows, 2500, known)] == ["unknown", "known-failure"]
    assert [path.name for path in prune_to(rows, 1000, known)] == ["old-failure"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new-failure"]


def test_longest_unplayed_candidate_comes_first(tmp_path: Path) -> None:
    hunt = night(tmp_path, player(9))
    hunt.history = Archive(tmp_path / "history.db")
    for at, scenario, target, mutant in (
        ("4", "calm", "urteil", None),
        ("1", "kill", "urteil", None),
        ("2", "calm", "kafka", None),
        ("3", "kill", "urteil", "loser"),
    ):
        at = f"2026-01-02 03:00:0{at}"
        hunt.history.add(replace(row(scenario, target=target, mutant=mutant), at=at))
    jobs = []
    for _ in range(5):
        job = hunt.next_job()
        assert job is not None
        jobs.append((job.scenario, job.target, job.mutant))
        hunt.ledger.add(replace(row(), job=job, at="2026-01-02 04:00:00"))
    assert jobs == [("kill", "kafka", None), ("kill", "urteil", None), ("calm", "kafka", None),
                     ("kill", "urteil", "loser"), ("calm", "urteil", None)]  # fmt: skip
