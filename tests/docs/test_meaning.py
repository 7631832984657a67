"""Every guarantee has a scene and its picture on the page."""

from __future__ import annotations

import pytest

from tests.docs.meaning import Scene
from tests.docs.named import ROOT
from tests.docs.scenes import SCENES
from urteil.harness.verify.guarantees import GUARANTEES

MEND = "write its scene in tests/docs/scenes.py and run `python -m tests.docs.meaning docs NAME`"


def test_page_shows_every_guarantee_with_its_picture() -> None:
    page = (ROOT / "docs" / "reference" / "meaning.md").read_text()
    missing = [
        name
        for name in GUARANTEES
        if f"## {name}\n" not in page
        or not (ROOT / "docs" / "pictures" / "guarantees" / f"{name}.svg").exists()
    ]
    assert missing == [], MEND


@pytest.mark.parametrize("name", SCENES)
def test_scene_can_be_drawn_and_shows_a_violation(name: str) -> None:
    assert "*" in SCENES[name]
    assert Scene(SCENES[name]).plot.renderers


def test_unknown_lane_is_rejected() -> None:
    with pytest.raises(ValueError, match="empty"):
        Scene("b1, b2\n1 b3 leads")
