"""The reports of a run made by hand: what they must show, and what they must never do."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.reports import made
from urteil.harness.scenario import save
from urteil.harness.verify.result import Verdict
from urteil.reports import write_reports
from urteil.reports.page import sentence
from urteil.reports.series import load_series


def test_page_shows_the_verdict_and_how_to_run_again(tmp_path: Path) -> None:
    write_reports(made.run(tmp_path))
    page = (tmp_path / "report.html").read_text()
    for text in ("FAIL", "urteil run demo --seed 7", "r/p1/17", "pid 7 is gone", "119 more"):
        assert text in page
    assert "<script>alert(1)" not in page


def test_page_loads_nothing_from_the_network(tmp_path: Path) -> None:
    write_reports(made.run(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)\s*=", page)
    assert "default-src 'none'" in page
    assert len(page) < 3_000_000


def test_page_of_a_run_without_evidence_still_stands(tmp_path: Path) -> None:
    save(tmp_path / "result.json", made.result(verdict=Verdict.UNKNOWN, faults=[]))
    write_reports(tmp_path)
    assert "there is nothing to draw" in (tmp_path / "report.html").read_text()


def test_without_a_verdict_there_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_reports(tmp_path)


def test_series_count_what_was_sent(tmp_path: Path) -> None:
    series = load_series(made.run(tmp_path))
    assert series is not None
    counted = sum(sum(values) for values in series.throughput.values()) * series.bucket_s
    assert round(counted) == 2000
    crash = int(11.5 / series.bucket_s)
    assert series.throughput["ok"][crash] == 0
    assert {band.leader for band in series.bands} == {1, 2, 3}
    shrunk = [band for band in series.bands if band.isr == (2, 3)]
    assert len(shrunk) == 3
    assert all(b.begin_s == pytest.approx(11) and b.end_s == pytest.approx(20) for b in shrunk)


def test_junit_unknown_is_an_error_never_a_skip(tmp_path: Path) -> None:
    run = made.run(tmp_path, verdict=Verdict.UNKNOWN)
    write_reports(run)
    root = ElementTree.parse(run / "junit.xml").getroot()
    assert not root.findall(".//skipped")
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert cases["verdict"].find("error") is not None
    assert cases["unseen"].find("error") is not None
    assert cases["lost_write"].find("failure") is not None
    assert cases["duplicate"].find("failure") is None
    assert "poll_skip" not in cases
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors")) == ("1", "2")


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (Verdict.FAIL, "Broken under 1 fault: lost_write (120)."),
        (Verdict.PASS, "2 guarantees held over 2,000 sends under 1 fault."),
        (Verdict.UNKNOWN, "Nothing can be said: lost_write: 120 violations."),
    ],
)
def test_the_verdict_in_one_sentence(verdict: Verdict, text: str) -> None:
    assert sentence(made.result(verdict)) == text
