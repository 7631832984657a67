"""Scenes: evidence that no generated history (`tests/harness/verify/histories`) has."""

from __future__ import annotations

from tests.harness.verify.scenes import (
    answers,
    applications,
    availability,
    files,
    logs,
    quorum,
    rights,
    share_groups,
)
from tests.harness.verify.scenes.scene import Draw

SCENES: dict[Draw, tuple[str, ...]] = {
    **files.SCENES,
    **answers.SCENES,
    **rights.SCENES,
    **availability.SCENES,
    **applications.SCENES,
    **logs.SCENES,
    **quorum.SCENES,
    **share_groups.SCENES,
}
"""How a scene is drawn, to the guarantees that judge it."""
