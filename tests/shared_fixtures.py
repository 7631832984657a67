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
}
"""The group of tests that share something expensive. One process runs them one after the other."""

OF_ONE_GROUP = ("pair", "engine")
"""The fixtures that a group shares."""

_SET_UP: list[tuple[pytest.FixtureDef[Any], Any]] = []
"""Those of them that are set up, each with its request."""


def group(nodeid: str) -> str | None:
    """The group of this test, if any."""
    return next((name for begin, name in SHARING.items() if nodeid.startswith(begin)), None)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: Any
) -> Generator[None, Any, Any]:
    """A fixture that lacked a dependency is set up again for the next test. Without this, pytest
    repeats the error for the whole session."""
    if fixturedef.argname in OF_ONE_GROUP and fixturedef.scope == "session":
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
    """A group's clusters stop with its last test; otherwise they use processor time until the
    session ends."""
    yield
    if nextitem is None or group(item.nodeid) != group(nextitem.nodeid):
        while _SET_UP:
            fixturedef, request = _SET_UP.pop()
            fixturedef.finish(request)
