"""Summaries and issues: their contents, and escaping of names."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.reports import example_run
from urteil.harness.verify.result import Finding, GuaranteeResult, Status
from urteil.reports.cycle_graphs import graphs
from urteil.reports.markdown import code, issue, summary
from urteil.reports.schema import result_schema, text


def test_summary_shows_violations_and_command(tmp_path: Path) -> None:
    markdown = summary(example_run.run(tmp_path))
    assert markdown.startswith(
        "### ❌ FAIL: Broken under 1 fault (crash): an acknowledged record is"
    )
    assert "(lost\\_write, 120 times)." in markdown
    assert "Again: `urteil run demo --seed 7`" in markdown
    assert "| lost_write | violated | 1,000 | 120 | 0 |" in markdown
    assert "| crash | b1 | yes | 3.2 s | 1.5 s |" in markdown
    assert "<script>" not in markdown


def test_issue_contains_the_smallest_schedule(tmp_path: Path) -> None:
    run = example_run.run(tmp_path / "run")
    (run / "schedule.json").write_text('{"whole": 1}')
    assert "not shrunk" in issue(run)
    (tmp_path / "shrink-run").mkdir()
    (tmp_path / "shrink-run" / "smallest.json").write_text('{"small": 1}')
    markdown = issue(run)
    assert '{"small": 1}' in markdown
    assert '{"whole": 1}' not in markdown
    assert "and 119 more" in markdown
    assert "<script>" not in markdown


def test_code_holds_backticks() -> None:
    assert code("a``b|c") == "``` a``b\\|c ```"


def test_published_schema_matches_results() -> None:
    published = Path(__file__).parents[2] / "docs" / "reference" / "result.schema.json"
    assert published.read_text() == text(), (
        "python -m urteil.reports.schema > docs/reference/result.schema.json"
    )
    fields = result_schema()["$defs"]["Result"]["properties"]
    assert set(fields) == set(example_run.result().__struct_fields__)


def test_each_cycle_is_drawn_once() -> None:
    def cycle(way: str) -> Finding:
        return Finding(guarantee="g1c", sentence=way, records=[{"txns": way}])

    findings = [cycle("t1/1 -> t2/1 -> t1/1"), cycle("t1/1 -> t2/1 -> t1/1"), cycle("t1/1 -> t2/2")]
    judged = GuaranteeResult(name="g1c", status=Status.VIOLATED, promise="", source="",
                             violations=3, findings=findings)  # fmt: skip
    drawn = graphs(replace(example_run.result(), guarantees=[judged]))
    assert list(drawn) == ["t1/1 -> t2/1 -> t1/1"]


def test_cycle_is_drawn_with_its_edges() -> None:
    ways = {"txns": "t1/1 -> t2/1 -> t1/1"}
    findings = [Finding(guarantee="g1c", sentence="", records=[ways | {"edges": edges}])
                for edges in ("wr p-0@1, wr p-0@2", "wr p-0@1, rt", "wr p-0@1")]  # fmt: skip
    judged = GuaranteeResult(name="g1c", status=Status.VIOLATED, promise="", source="",
                             violations=3, findings=findings)  # fmt: skip
    drawn = graphs(replace(example_run.result(), guarantees=[judged]))
    cycle = "t1/1 -> t2/1 -> t1/1"
    assert list(drawn) == [f"{cycle}, wr p-0@1, wr p-0@2", f"{cycle}, wr p-0@1, rt", cycle]
    assert "wr p-0@2" in drawn[f"{cycle}, wr p-0@1, wr p-0@2"][0]
