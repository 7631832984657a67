"""The report in a real browser: plots, zoom, tooltips, and escaping of names."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.reports import example_run
from tests.reports.browser import Browser
from urteil.reports import write_reports

HOSTILE = (
    "<img src=x onerror=document.title='owned'></script><script>document.title='owned'</script>"
)
PLOT = "Object.values(Bokeh.index)[0]"
DRAWN = "window.Bokeh && Bokeh.documents.length && Bokeh.documents.every(d => d.is_idle)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = example_run.run(tmp_path_factory.mktemp("run"), hostile=HOSTILE)
    write_reports(run_dir, {"lost_write": ["ack_before_replication"]})
    return run_dir / "report.html"


def test_page_draws_without_errors_and_runs_no_foreign_markup(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    browser.until(DRAWN)
    assert browser.errors() == []
    assert browser.run("return document.title").startswith("FAIL · demo")
    assert browser.run("return document.querySelectorAll('img, iframe, link').length") == 0
    text = browser.run("return document.body.textContent")
    for shown in ("onerror", "ack_before_replication", "urteil run demo --seed 7"):
        assert shown in text


def test_dragging_zooms_all_plots_and_pointing_shows_values(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri(), height=1400)
    browser.until(DRAWN)
    frame = browser.run(
        "document.querySelector('.plots').scrollIntoView(); "
        "const r = document.querySelector('.plots').getBoundingClientRect(); "
        "return [r.left, r.top, r.width, r.height]"
    )
    y = int(frame[1]) + 230
    browser.pointer(("move", int(frame[0] + frame[2] * 0.5), y))
    browser.until(
        "(function deep(n) { return [...n.querySelectorAll('*')].some(e => e.shadowRoot && "
        "(/second/.test(e.shadowRoot.textContent) && /unknown/.test(e.shadowRoot.textContent) "
        "|| deep(e.shadowRoot))) })(document)"
    )
    end = browser.run(f"return {PLOT}.model.children[0].x_range.end")
    browser.pointer(
        ("move", int(frame[0] + frame[2] * 0.4), y), ("down", 0, 0),
        ("move", int(frame[0] + frame[2] * 0.5), y), ("move", int(frame[0] + frame[2] * 0.6), y),
        ("up", 0, 0),
    )  # fmt: skip
    browser.until(f"{PLOT}.model.children.every(p => p.x_range.end < {end * 0.9})")


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1200, True)])
def test_page_fits_a_phone_and_a_dark_screen(
    browser: Browser, page: Path, tmp_path: Path, width: int, dark: bool
) -> None:
    browser.open(page.as_uri(), width=width, dark=dark)
    browser.until(DRAWN)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    picture = Image.open(browser.picture(tmp_path / "page.png")).convert("L")
    paper = picture.getpixel((2, 2))
    assert (paper < 60) if dark else (paper > 200)
    assert len(set(picture.get_flattened_data())) > 50, "a blank page"
