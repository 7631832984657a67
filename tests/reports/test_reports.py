"""The reports of a synthetic run: contents, and treatment of hostile names."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from tests.reports import example_run
from urteil.harness.scenario import save
from urteil.harness.verify.rare_states.counts import StateCounts
from urteil.harness.verify.result import Verdict
from urteil.reports import write_reports
from urteil.reports.evidence_views import open_evidence
from urteil.reports.markdown import summary
from urteil.reports.page import sentence
from urteil.reports.time_series import load_series
from urteil.reports.timeline_plots import log_ticks
from urteil.reports.timeline_tracks import tracks


def test_page_shows_the_verdict_and_how_to_run_again(tmp_path: Path) -> None:
    write_reports(example_run.run(tmp_path))
    page = (tmp_path / "report.html").read_text()
    for text in ("FAIL", "urteil run demo --seed 7", "r/p1/17", "pid 7 is gone", "119 more"):
        assert text in page
    assert "<script>alert(1)" not in page


def test_page_loads_nothing_from_the_network(tmp_path: Path) -> None:
    write_reports(example_run.run(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)\s*=", page)
    assert "default-src 'none'" in page
    assert len(page) < 3_000_000


def test_page_and_summary_name_the_rare_states_reached(tmp_path: Path) -> None:
    run = example_run.run(tmp_path)
    counts = StateCounts(reached={"unclean_election": 2, "isr_of_one_lost_leader": 0})
    save(run / "states.json", counts)
    write_reports(run)
    page = (run / "report.html").read_text()
    assert "Rare states that this run reached: 1 of 2 that it could reach" in page
    assert "<p>unclean_election (2)</p>" in page
    assert "Rare states reached: 1 of 2\n" in summary(run)


def test_run_without_evidence_has_a_page(tmp_path: Path) -> None:
    save(tmp_path / "result.json", example_run.result(verdict=Verdict.UNKNOWN, faults=[]))
    write_reports(tmp_path)
    assert "there is nothing to draw" in (tmp_path / "report.html").read_text()


def test_folder_without_a_run_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no run"):
        write_reports(tmp_path)


def test_incomplete_run_shows_its_parts_and_names_missing_ones(tmp_path: Path) -> None:
    run = example_run.run(tmp_path)
    (run / "result.json").write_text('{"verdict": "FA')
    part = next((run / "evidence" / "states").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    assert [page.name for page in write_reports(run)] == ["report.html"]
    page = (run / "report.html").read_text()
    for text in ("UNKNOWN", "result.json cannot be read", "has not been judged", "How long sends"):
        assert text in page
    assert "evidence/states/part-0.parquet cannot be read" in page


def test_hung_run_shows_stacks_of_its_processes(tmp_path: Path) -> None:
    run = example_run.run(tmp_path)
    write_reports(run)
    assert "Stacks of the processes" not in (run / "report.html").read_text()
    (run / "stacks").mkdir()
    text = "the run hung\npid 7\nTask b<script>alert(1)</script>:\n" + "  File x\n" * 1000
    (run / "stacks" / "b1.txt").write_text(text)
    write_reports(run)
    page = (run / "report.html").read_text()
    assert "Stacks of the processes" in page
    assert "b1: 1,003 lines" in page
    assert "Task b&lt;script&gt;" in page
    assert page.count("  File x") <= 400


def test_log_excerpts_surround_faults(tmp_path: Path) -> None:
    write_reports(example_run.run(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "INFO second 10\n" in page
    assert "and a second line" in page
    assert "INFO second 2\n" not in page


def test_lanes_show_leaders_absent_brokers_and_faults(tmp_path: Path) -> None:
    with open_evidence(example_run.run(tmp_path)) as evidence:
        faults = example_run.result().faults
        series = load_series(evidence, faults)
        assert series is not None
        bands = {
            band.lane: [] for track in tracks(evidence, series, faults) for band in track.bands
        }
        for track in tracks(evidence, series, faults):
            for band in track.bands:
                bands[band.lane].append(band)
    shrunk = [band for band in bands["urteil-0"] if "isr 2,3" in band.text]
    assert [(round(b.begin_s, 3), round(b.end_s, 3)) for b in shrunk] == [(11, 20)]
    assert {band.shade for band in bands["b1"]} == {"up", "gone", "fault"}
    assert bands["1. crash"][-1].detail == "healthy 1.5 s after its healing"
    assert {"p1", "c1"} <= set(bands)


def test_time_series_count_sends(tmp_path: Path) -> None:
    with open_evidence(example_run.run(tmp_path)) as evidence:
        series = load_series(evidence)
    assert series is not None
    sent = [series.throughput[name] for name in ("ok", "fail", "info")]
    assert round(sum(map(sum, sent)) * series.bucket_s) == 2000
    assert series.throughput["ok"][int(11.5 / series.bucket_s)] == 0
    assert series.stall is not None
    assert series.stall.length_s == pytest.approx(3, abs=0.2)
    assert set(series.latency_ms["sends"]) == {"p50", "p99", "p99.9", "max"}
    assert max(value or 0 for value in series.lag["g"]) > 300


def test_junit_unknown_is_an_error_never_a_skip(tmp_path: Path) -> None:
    run = example_run.run(tmp_path, verdict=Verdict.UNKNOWN)
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
        (
            Verdict.FAIL,
            "Broken under 1 fault (crash): an acknowledged record is missing at the end "
            "(lost_write, 120 times).",
        ),
        (Verdict.PASS, "2 guarantees held over 2,000 sends under 1 fault (crash)."),
        (Verdict.UNKNOWN, "Nothing can be said: lost_write: 120 violations."),
    ],
)
def test_verdict_is_one_sentence(verdict: Verdict, text: str) -> None:
    assert sentence(example_run.result(verdict)) == text


def test_many_faults_and_reasons_are_counted() -> None:
    kinds = ("crash", "pause", "crash", "reset", "ring")
    faults = [replace(example_run.result(Verdict.PASS).faults[0], fault=kind) for kind in kinds]
    text = sentence(example_run.result(Verdict.PASS, faults=faults))
    assert text.endswith("under 5 faults (crash, pause, reset, …).")
    text = sentence(
        example_run.result(Verdict.UNKNOWN, reasons=["no sends", "no reads", "no logs"])
    )
    assert text == "Nothing can be said: no sends, and 2 more reasons."


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([3.0, 90.0, None], [1, 2, 5, 10, 20, 50, 100, 200, 500]),
        ([0.4, 9000.0], [0.1, 1, 10, 100, 1000, 10_000]),
        ([None, 0.0], [1]),
    ],
)
def test_ticks_of_a_logarithmic_axis_do_not_overlap(
    values: list[float | None], ticks: list[float]
) -> None:
    assert log_ticks([values]) == pytest.approx(ticks)


def test_timeline_has_the_messages_on_which_faults_acted(tmp_path: Path) -> None:
    example_run.run(tmp_path)
    with open_evidence(tmp_path) as evidence:
        series = load_series(evidence, example_run.result().faults)
        assert series is not None
        at_ns = series.origin_ns + 1_000_000_000
    event = {"at_ns": at_ns, "fault": "lose_answer", "link": "client->b1", "direction": "answer",
             "api": "EndTxn", "version": 3, "correlation_id": 7, "client_id": "t1", "act": "drop",
             "occurrence": 1, "detail": None}  # fmt: skip
    example_run.write_table(tmp_path, "link_events", [event])
    with open_evidence(tmp_path) as evidence:
        drawn = tracks(evidence, series, example_run.result().faults)
    (track,) = [track for track in drawn if track.title.startswith("Requests and answers")]
    (band,) = track.bands
    assert (band.lane, band.begin_s) == ("lose_answer EndTxn", 1.0)
    assert band.detail == "drop: answer EndTxn v3, id 7 of t1, on client->b1"
