"""When fixtures that several tests share are set up again, and when they end.

A plugin, since pytest calls the hooks of a conftest.py below the root for no fixture of the whole
session.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from urteil.harness.dependencies.installation import MissingDependency

SHARING = {
    "tests/conformance/": "two clusters",
    "tests/clients/": "two clusters",
    "tests/harness/runtimes/containers/": "an engine",
    "tests/urteil/test_containers_cli.py": "an engine",
    "tests/reports/test_page_in_browser.py": "a browser",
    "tests/reports/web/test_web.py": "a browser",
}
"""The group of tests that share something expensive. One process runs them one after the other."""

OF_ONE_GROUP = ("pair", "guarded", "sasl", "engine", "browser")
"""The fixtures that a group shares, in the order of their use."""

_SET_UP: list[tuple[pytest.FixtureDef[Any], Any]] = []
"""Those of them that are set up, each with its request."""


def group(nodeid: str) -> str | None:
    """The group of this test, if any."""
    return next((name for begin, name in SHARING.items() if nodeid.startswith(begin)), None)


_LAST_USES: dict[str, str] = {}
"""The last test that uses a fixture of these, by its name."""


def first_use(item: pytest.Item) -> int:
    """The position of the first shared fixture that a test uses; past the end for none."""
    names = getattr(item, "fixturenames", ())
    uses = (position for position, name in enumerate(OF_ONE_GROUP) if name in names)
    return next(uses, len(OF_ONE_GROUP))


def pytest_collection_finish(session: pytest.Session) -> None:
    for item in session.items:
        if group(item.nodeid):
            _LAST_USES.update(dict.fromkeys(getattr(item, "fixturenames", ()), item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: Any
) -> Generator[None, Any, Any]:
    """A fixture that lacked a dependency is set up again for the next test. Without this, pytest
    repeats the error for the whole session."""
    if fixturedef.argname in OF_ONE_GROUP and fixturedef.scope in ("session", "package"):
        _SET_UP.append((fixturedef, request))
    try:
        return (yield)
    except MissingDependency:
        fixturedef.finish(request)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, Any, None]:
    """A shared fixture ends with the last test that uses it, at the latest with its group:
    clusters use processor time as long as they stand."""
    yield
    ends_group = nextitem is None or group(item.nodeid) != group(nextitem.nodeid)
    for fixturedef, request in reversed(_SET_UP[:]):
        if ends_group or _LAST_USES.get(fixturedef.argname) == item.nodeid:
            _SET_UP.remove((fixturedef, request))
            fixturedef.finish(request)
