"""The proxy's own tests: frames of every API and version, garbage, and each act of a rule."""

from __future__ import annotations

import pytest

from urteil.harness.dependencies.go import run_tests
from urteil.harness.dependencies.toxiproxy import SOURCE


@pytest.mark.thorough
def test_proxy_passes_its_own_tests() -> None:
    run_tests("proxy", SOURCE, how="modules come from the Go module proxy")
