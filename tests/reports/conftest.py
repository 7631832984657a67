"""One browser for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reports.browser import Browser, running_browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real chromium; installed by the lab's own setup where it is missing."""
    with running_browser(tmp_path_factory.mktemp("browser") / "driver.log") as driver:
        yield driver
