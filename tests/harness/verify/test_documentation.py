"""docs/reference/guarantees.md lists every guarantee, and each declaration is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.harness.verify.guarantees import GUARANTEES, Guarantee

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "guarantees.md"


@pytest.mark.parametrize("one", GUARANTEES.values(), ids=lambda one: one.name)
def test_a_guarantee_is_documented_and_whole(one: Guarantee) -> None:
    assert f"| `{one.name}` |" in PAGE.read_text()
    assert one.about
    assert one.promise.endswith(".")
    assert one.source
    assert "://" not in one.source
    assert one.sub_kinds
