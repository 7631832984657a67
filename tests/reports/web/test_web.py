"""The web view: pages in a real browser, and requests that must be rejected."""

from __future__ import annotations

import fcntl
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from tests.reports import example_run
from tests.reports.browser import Browser
from urteil.harness.verify.result import Verdict
from urteil.reports.web.app import LOOPBACK, make_app

HOSTILE = "<script>document.title='owned'</script>"
FAULT = (
    """{"fault": "pause", "targets": "[\\"b2\\"]", "begin_ns": 5, "end_ns": 6, "healed_ns": null,
 "proof": "<b>pid 7</b> is stopped", "acted": true}""".replace("\n", "")
    + "\n"
)
SEND = '["send",{n},{at},"urteil",0,"k",1,false]\n["ok",{n},{at},null,1,false,0,1,1,1,0,1,1]\n'


@contextmanager
def served(root: Path, token: str | None = None) -> Iterator[int]:
    """The port of a view on loopback."""
    app = make_app(root, token=token, hosts=LOOPBACK)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
    listener = config.bind_socket()
    listener.listen()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A FAIL, a PASS whose names are hostile, a run without a verdict, and a secret beside."""
    beside = tmp_path_factory.mktemp("beside")
    (beside / "secret.txt").write_text("secret")
    root = beside / "runs"
    root.mkdir()
    example_run.run(root / "one")
    (root / "one" / "report.html").write_text("<!doctype html><title>drawn</title>")
    example_run.run(root / "two", verdict=Verdict.PASS, reasons=[], scenario=f"demo{HOSTILE}")
    (root / "two" / "logs" / "b2.log").symlink_to(beside / "secret.txt")
    (root / "out").symlink_to(beside)
    example_run.run(root / "three")
    (root / "three" / "result.json").unlink()
    return root


@pytest.fixture(scope="module")
def port(root: Path) -> Iterator[int]:
    with served(root) as address:
        yield address


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text


@pytest.mark.parametrize(
    "path",
    ["/run/../../secret.txt", "/run/%2e%2e/secret.txt", "/run/out",
     "/run/one/file/../../../secret.txt", "/run/one/file/logs/..%2f..%2f..%2fsecret.txt",
     "/run/two/file/logs/b2.log", "/run/one/file/evidence/sends/part-0.parquet", "/run/%00",
     "/run/.", "/live/../data", "/compare?a=one&b=../secret.txt", "/run/" + "a/" * 3000],
)  # fmt: skip
def test_paths_outside_the_store_are_not_served(port: int, path: str) -> None:
    status, text = ask(port, path)
    assert status in (404, 431, 400)
    assert "secret" not in text.replace("secret.txt", "")


def test_only_reads_with_the_own_host_name_are_served(port: int) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert ask(port, "/", method)[0] == 405
    assert ask(port, "/", Host="evil.example")[0] == 421
    assert ask(port, "/run/one/file/result.json")[0] == 200
    assert ask(port, "/run/one")[1].endswith("<title>drawn</title>")
    assert "mutants" in ask(port, "/matrix")[1]


def test_unknown_page_links_to_the_list(port: int) -> None:
    status, text = ask(port, "/nowhere")
    assert status == 404
    assert "there is no such page here" in text
    assert '<a href="/">runs</a>' in text


def test_requests_without_the_token_are_rejected(root: Path) -> None:
    with served(root, token="right") as port:
        assert ask(port, "/")[0] == 401
        assert ask(port, "/run/one?token=wrong")[0] == 401
        assert ask(port, "/", Cookie="urteil=wrong")[0] == 401
        assert ask(port, "/?token=right")[0] == 200
        assert ask(port, "/", Cookie="urteil=right")[0] == 200
        assert ask(port, "/", Authorization="Bearer right")[0] == 200


def test_runs_are_filtered_and_two_are_compared(browser: Browser, port: int) -> None:
    browser.open(f"http://127.0.0.1:{port}/")
    rows = "return document.querySelectorAll('#runs tbody tr').length"
    assert browser.run(rows) == 3
    assert browser.run("return document.title") == "Urteil: runs"
    browser.open(f"http://127.0.0.1:{port}/?guarantee=lost_write&verdict=FAIL")
    assert browser.run(rows) == 1
    browser.open(f"http://127.0.0.1:{port}/?since=2999-01-01")
    assert "No run matches" in browser.run("return document.body.textContent")
    browser.open(f"http://127.0.0.1:{port}/")
    browser.run("document.querySelector('input[name=a][value=one]').checked = true; "
                "document.querySelector('input[name=b][value=two]').checked = true; "
                "document.querySelector('form[action=\"/compare\"] button').click()")  # fmt: skip
    browser.until("location.pathname === '/compare' && document.readyState === 'complete'")
    text = browser.run("return document.body.innerText")
    assert all(part in text for part in ("unavailability", "latency p99", "verdict", HOSTILE))
    assert browser.run("return document.title") == "Urteil: two runs"
    assert browser.errors() == []


def test_trends_are_drawn(browser: Browser, port: int) -> None:
    browser.open(f"http://127.0.0.1:{port}/trends?scenario=demo&target=urteil")
    browser.until("window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle")
    assert browser.run("return document.querySelector('.plots').offsetHeight") > 400
    assert browser.run("return document.title") == "Urteil: trends"
    assert browser.errors() == []


def test_curve_of_a_running_run_grows(browser: Browser, root: Path, port: int) -> None:
    run = root / "three"
    (run / "journal").mkdir()
    journal = run / "journal" / "p1.jsonl"
    journal.write_text("".join(SEND.format(n=n, at=n * 10**8) for n in range(50)) + '["send",99')
    with (run / "lab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        browser.open(f"http://127.0.0.1:{port}/")
        assert "goes on" in browser.run("return document.querySelector('#runs').innerText")
        browser.open(f"http://127.0.0.1:{port}/live/three")
        points = ("Bokeh.documents[0].all_models.size && [...Bokeh.documents[0].all_models]"
                  ".find(m => m.type === 'AjaxDataSource').data.at.length")  # fmt: skip
        browser.until(f"window.Bokeh && Bokeh.documents.length && {points} === 4")
        journal.write_text("".join(SEND.format(n=n, at=n * 10**8) for n in range(95)))
        browser.until(f"{points} === 9")
        faults = "document.getElementById('faults').innerText"
        browser.until(f"{faults} === 'none'")
        (run / "faults.jsonl").write_text(FAULT)
        browser.until(f"{faults} === 'pause on b2: <b>pid 7</b> is stopped (acts)'")
        assert browser.run("return document.getElementById('report').hidden") is True
    browser.until("document.getElementById('state').innerText === 'is over'")
    assert browser.run("return document.getElementById('report').hidden") is False
    assert browser.errors() == []
    assert json.loads(ask(port, "/live/three/data")[1])["ok"][0] == 10


LONG_NAME = "20261127-044217-test_orders_survive_the_crash_of_their_leader_and_of_a_follower-81000"
OUTSIDE = """
const right = document.documentElement.clientWidth;
return [...document.querySelectorAll('form *, table a')]
  .filter((one) => one.getBoundingClientRect().right > right + 1
    || (one.tagName !== 'SELECT' && one.scrollWidth > right))  // its options are cut, not shown
  .map((one) => one.outerHTML.slice(0, 80));
"""
FILTER_BOTTOMS = """
return [...new Set([...document.querySelectorAll('.filters > div, .filters > button')]
  .map((one) => Math.round(one.getBoundingClientRect().bottom)))];
"""


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a view on runs with long names."""
    root = tmp_path_factory.mktemp("long") / "runs"
    root.mkdir()
    example_run.run(root / LONG_NAME)
    example_run.run(root / f"{LONG_NAME}2")
    with served(root) as port:
        yield port


@pytest.mark.parametrize(
    "width", [360, *(pytest.param(width, marks=pytest.mark.thorough) for width in (390, 768)), 1200]
)
@pytest.mark.parametrize("page", ["", "compare", f"run/{LONG_NAME}", "trends", "matrix"])
def test_page_fits_the_width_of_the_screen(
    browser: Browser, long_names: int, page: str, width: int
) -> None:
    browser.open(f"http://127.0.0.1:{long_names}/{page}", width=width)
    assert browser.run(OUTSIDE) == []
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_filters_of_runs_fit_on_one_line(browser: Browser, long_names: int) -> None:
    browser.open(f"http://127.0.0.1:{long_names}/", width=1200)
    assert len(browser.run(FILTER_BOTTOMS)) == 1
