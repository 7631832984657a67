"""Summaries and issues: what they say, and that nobody's name becomes markup."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.reports import made
from urteil.harness.verify.result import Finding, GuaranteeResult, Status
from urteil.reports.graphs import graphs
from urteil.reports.schema import result_schema, text
from urteil.reports.texts import code, issue, summary


def test_a_summary_says_what_broke_and_how_to_play_it_again(tmp_path: Path) -> None:
    told = summary(made.run(tmp_path))
    assert told.startswith("### ❌ FAIL: Broken under 1 fault (crash): an acknowledged record is")
    assert "(lost\\_write, 120 times)." in told
    assert "Again: `urteil run demo --seed 7`" in told
    assert "| lost_write | violated | 1,000 | 120 | 0 |" in told
    assert "| crash | b1 | yes | 3.2 s | 1.5 s |" in told
    assert "<script>" not in told


def test_an_issue_has_the_smallest_schedule_there_is(tmp_path: Path) -> None:
    run = made.run(tmp_path / "run")
    (run / "schedule.json").write_text('{"whole": 1}')
    assert "not shrunk" in issue(run)
    (tmp_path / "shrink-run").mkdir()
    (tmp_path / "shrink-run" / "smallest.json").write_text('{"small": 1}')
    told = issue(run)
    assert '{"small": 1}' in told
    assert '{"whole": 1}' not in told
    assert "and 119 more" in told
    assert "<script>" not in told


def test_code_holds_backticks() -> None:
    assert code("a``b|c") == "``` a``b\\|c ```"


def test_the_published_schema_is_that_of_the_results() -> None:
    published = Path(__file__).parents[2] / "docs" / "reference" / "result.schema.json"
    assert published.read_text() == text(), (
        "python -m urteil.reports.schema > docs/reference/result.schema.json"
    )
    fields = result_schema()["$defs"]["Result"]["properties"]
    assert set(fields) == set(made.result().__struct_fields__)


def test_cycles_are_drawn_once_each() -> None:
    def cycle(way: str) -> Finding:
        return Finding(guarantee="g1c", sentence=way, records=[{"txns": way}])

    found = [cycle("t1/1 -> t2/1 -> t1/1"), cycle("t1/1 -> t2/1 -> t1/1"), cycle("t1/1 -> t2/2")]
    judged = GuaranteeResult(name="g1c", status=Status.VIOLATED, promise="", source="",
                             violations=3, findings=found)  # fmt: skip
    drawn = graphs(replace(made.result(), guarantees=[judged]))
    assert list(drawn) == ["t1/1 -> t2/1 -> t1/1"]
