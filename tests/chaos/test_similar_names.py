"""Names that a user may have meant."""

from __future__ import annotations

import pytest

from urteil.chaos.similar_names import similar_names, suggest

FAULTS = ("crash", "latency", "latency_burst", "pause", "partition")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("crsh", ["crash"]),
        ("CRASH", ["crash"]),
        ("latencie", ["latency", "latency_burst"]),
        ("lat", ["latency", "latency_burst"]),
        ("zookeeper", []),
        ("", []),
    ],
)
def test_similar_names_differ_by_little_or_begin_alike(name: str, expected: list[str]) -> None:
    assert similar_names(name, FAULTS) == expected


def test_at_most_three_names_are_similar() -> None:
    assert len(similar_names("fault", [f"fault_{number}" for number in range(9)])) == 3


@pytest.mark.parametrize(
    ("known", "otherwise", "expected"),
    [
        (FAULTS, None, "did you mean latency or latency_burst?"),
        (FAULTS, "see the list", "did you mean latency or latency_burst?"),
        (("pause", "crash"), None, "known: pause, crash"),
        (("pause", "crash"), "see the list", "see the list"),
        ((), None, "known: none"),
    ],
)
def test_suggestion_offers_similar_names_or_all(
    known: tuple[str, ...], otherwise: str | None, expected: str
) -> None:
    assert suggest("lateny", known, otherwise) == expected
