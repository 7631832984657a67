"""Each published report, written as a history, is found by the guarantee that it violates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from urteil.harness.imports.jepsen.importer import load
from urteil.harness.known_bugs.published_histories import (
    FOLDER,
    PUBLISHED_HISTORIES,
    PublishedHistory,
)
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result, Verdict


def judged(path: Path, run: Path) -> Result:
    load(path, run, isolation="read_committed")
    return judge_run(run, engine="duckdb", master=None, session=None, canary=False)


def violations(result: Result) -> set[tuple[str, str, str]]:
    """Topic, guarantee and sub-kind of each finding."""
    return {
        (finding.topic or "", finding.guarantee, finding.sub_kind)
        for guarantee in result.guarantees
        for finding in guarantee.findings
        if finding.permitted is None
    }


def together(paths: Iterable[Path]) -> str:
    """One history of all operations: those of the N-th file have N before each key and process."""
    lines = []
    for number, path in enumerate(paths, start=100):
        for line in path.read_text().splitlines():
            text = re.sub(r":index \d+", f":index {len(lines)}", line)
            text = re.sub(r":process (\d+)", rf":process {number}0\1", text)
            text = re.sub(r":send (\d+)", rf":send {number}00\1", text)
            text = re.sub(r"([{,] ?)(\d+) (?=\[\[|{:end)", rf"\g<1>{number}00\2 ", text)
            if match := re.search(
                r":f :(assign|debug-topic-partitions), :value \[([\d ]+)\]", text
            ):
                keys = " ".join(f"{number}00{key}" for key in match[2].split())
                text = text.replace(f":value [{match[2]}]", f":value [{keys}]")
            lines.append(text)
    return "\n".join(lines)


def judged_together(paths: Iterable[Path], folder: Path) -> Result:
    path = folder / "history.edn"
    path.write_text(together(paths))
    return judged(path, folder / "run")


def expected(published_history: PublishedHistory) -> set[str]:
    return {published_history.guarantee, *published_history.also}


def test_each_published_finding_is_found(tmp_path: Path) -> None:
    result = judged_together((history.broken for history in PUBLISHED_HISTORIES), tmp_path)
    reported = violations(result)
    assert result.verdict is Verdict.FAIL
    for number, history in enumerate(PUBLISHED_HISTORIES, start=100):
        own = {(name, kind) for topic, name, kind in reported if topic.startswith(f"k{number}00")}
        assert (history.guarantee, history.sub_kind) in own, history.name
        assert {name for name, _ in own} == expected(history), history.name


def test_histories_without_the_bugs_pass(tmp_path: Path) -> None:
    result = judged_together((history.fixed_history for history in PUBLISHED_HISTORIES), tmp_path)
    assert (violations(result), result.verdict) == (set(), Verdict.PASS)


def test_each_history_of_the_folder_is_declared() -> None:
    files = set(FOLDER.rglob("history.edn"))
    assert files == {
        path for history in PUBLISHED_HISTORIES for path in (history.broken, history.fixed_history)
    }


@pytest.mark.thorough
@pytest.mark.parametrize("history", PUBLISHED_HISTORIES, ids=lambda history: history.name)
def test_a_published_history_alone_is_found_and_its_twin_passes(
    history: PublishedHistory, tmp_path: Path
) -> None:
    broken = judged(history.broken, tmp_path / "broken")
    assert {name for _, name, _ in violations(broken)} == expected(history)
    assert (history.guarantee, history.sub_kind) in {
        violation[1:] for violation in violations(broken)
    }
    assert judged(history.fixed_history, tmp_path / "fixed").verdict is Verdict.PASS
