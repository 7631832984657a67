"""The pictures of the documentation, from real runs, by a real chromium:

    python -m tests.reports.pictures docs/pictures --passed RUN --failed RUN --unknown RUN
    python -m tests.reports.pictures docs/pictures --application RUN

The runs must be in one folder, which becomes the store of the web view. The picture of an
application has the name of its scenario. Look at the pictures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from PIL import Image

from tests.reports.browser import Browser, running_browser
from tests.reports.web.test_web import served
from urteil.report_drawing import draw

DRAWN = "window.Bokeh && Bokeh.documents.length && Bokeh.documents.every(d => d.is_idle)"
COLOURS = 256
WIDTH = 1100
VERDICTS, APPLICATION = {"passed", "failed", "unknown"}, "application"


def take(browser: Browser, address: str, path: Path, *, begin: str = "", height: int = 900,
         width: int = WIDTH, dark: bool = False) -> None:  # fmt: skip
    """A picture of a page from the element `begin` on, with few colours."""
    browser.open(address, width=width, height=height, dark=dark)
    if browser.run("return Boolean(window.Bokeh)"):
        browser.until(DRAWN)
    if begin:
        browser.run(f"document.querySelector('{begin}').scrollIntoView()")
    browser.picture(path)
    Image.open(path).convert("RGB").quantize(COLOURS, Image.Quantize.MEDIANCUT).save(
        path, optimize=True
    )
    print(path, path.stat().st_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name in (*VERDICTS, APPLICATION):
        parser.add_argument(f"--{name}", type=Path)
    options = parser.parse_args()
    runs = {
        name: getattr(options, name).resolve()
        for name in (*VERDICTS, APPLICATION)
        if getattr(options, name)
    }
    if not runs or VERDICTS & runs.keys() not in (set(), VERDICTS):
        parser.error(f"needs --{APPLICATION}, or all of {', '.join(sorted(VERDICTS))}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for run in runs.values():
        draw(run)
    log = Path(tempfile.gettempdir()) / "urteil-pictures-driver.log"
    with running_browser(log) as browser:
        if VERDICTS & runs.keys():
            _pages(browser, options.folder, runs)
        if APPLICATION in runs:
            run = runs[APPLICATION]
            scenario = json.loads((run / "run.json").read_text())["scenario"]
            take(browser, (run / "report.html").as_uri(), options.folder / f"{scenario}.png",
                 begin="header", height=1000)  # fmt: skip


def _pages(browser: Browser, folder: Path, runs: dict[str, Path]) -> None:
    pages = {name: (run / "report.html").as_uri() for name, run in runs.items()}
    take(browser, pages["passed"], folder / "report-pass.png", begin="header", height=1000)
    take(browser, pages["passed"], folder / "timeline.png", begin="#timeline", height=1450)
    take(browser, pages["failed"], folder / "report-fail.png", begin="header", height=760)
    take(browser, pages["failed"], folder / "lost-write.png", begin="#lost_write", height=470)
    take(browser, pages["unknown"], folder / "report-unknown.png", begin="header", height=420)
    take(browser, pages["failed"], folder / "report-phone-dark.png", begin="#timeline", width=390,
         height=800, dark=True)  # fmt: skip
    with served(runs["passed"].parent) as port:
        here = f"http://127.0.0.1:{port}"
        take(browser, here, folder / "web-runs.png", height=430)
        both = f"a={runs['passed'].name}&b={runs['failed'].name}"
        take(browser, f"{here}/compare?{both}", folder / "web-compare.png", height=900)
        take(browser, f"{here}/trends", folder / "web-trends.png", height=860)


if __name__ == "__main__":
    main()
