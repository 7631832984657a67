"""Every guarantee has its scene, and the page shows it."""

from __future__ import annotations

import pytest

from tests.docs.meaning import Scene
from tests.docs.named import ROOT
from tests.docs.scenes import SCENES
from urteil.harness.verify.guarantees import GUARANTEES

MEND = "write its scene in tests/docs/scenes.py and run `python -m tests.docs.meaning docs NAME`"


def test_every_guarantee_is_on_the_page_with_its_picture() -> None:
    page = (ROOT / "docs" / "reference" / "meaning.md").read_text()
    missing = [
        name
        for name in GUARANTEES
        if f"## {name}\n" not in page
        or not (ROOT / "docs" / "pictures" / "guarantees" / f"{name}.svg").exists()
    ]
    assert missing == [], MEND


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_can_be_drawn_and_breaks_something(name: str) -> None:
    assert "*" in SCENES[name]
    assert Scene(SCENES[name]).plot.renderers


def test_a_lane_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        Scene("b1, b2\n1 b3 leads")
