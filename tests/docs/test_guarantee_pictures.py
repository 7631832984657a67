"""Every guarantee has a scene and its picture."""

from __future__ import annotations

import pytest

from tests.docs.guarantee_pictures import Scene
from tests.docs.named import ROOT
from tests.docs.scenes import SCENES
from urteil.harness.verify.guarantees import GUARANTEES

REMEDY = "write its scene in tests/docs/scenes.py and run `python -m tests.docs.guarantee_pictures`"


def test_every_guarantee_has_a_picture() -> None:
    folder = ROOT / "docs" / "pictures" / "guarantees"
    missing = [name for name in GUARANTEES if not (folder / f"{name}.svg").exists()]
    assert missing == [], REMEDY


@pytest.mark.parametrize("name", SCENES)
def test_scene_can_be_drawn_and_shows_a_violation(name: str) -> None:
    assert "*" in SCENES[name]
    assert Scene(SCENES[name]).plot.renderers


def test_unknown_lane_is_rejected() -> None:
    with pytest.raises(ValueError, match="empty"):
        Scene("b1, b2\n1 b3 leads")
