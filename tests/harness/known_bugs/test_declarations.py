"""Each declared bug names what exists: scenario, guarantee, sub-kinds and two releases."""

from __future__ import annotations

import pytest

from urteil.harness.known_bugs import KNOWN_BUGS, KnownBug
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.targets import parse_target
from urteil.harness.verify.guarantees import GUARANTEES


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


@pytest.mark.parametrize("bug", KNOWN_BUGS.values(), ids=list(KNOWN_BUGS))
def test_declared_bug_names_existing_parts(bug: KnownBug) -> None:
    guarantee = GUARANTEES[bug.guarantee]
    assert bug.scenario in SCENARIOS
    assert bug.sub_kinds
    assert set(bug.sub_kinds) <= set(guarantee.sub_kinds)
    assert set(bug.also) <= set(GUARANTEES)
    for shown in bug.or_shown_by:
        name, _, kind = shown.partition("/")
        assert kind in GUARANTEES[name].sub_kinds
    assert numbers(bug.broken) < numbers(bug.fixed)
    assert [parse_target(target).version for target in (bug.broken_target, bug.fixed_target)] == [
        bug.broken, bug.fixed,
    ]  # fmt: skip


@pytest.mark.parametrize("bug", KNOWN_BUGS.values(), ids=list(KNOWN_BUGS))
def test_broken_release_lies_below_the_one_that_fixed_it(bug: KnownBug) -> None:
    first_fixed = min(numbers(release.strip()) for release in bug.fixed_in.split(","))
    assert numbers(bug.broken) < first_fixed <= numbers(bug.fixed)
