"""The declaration of each guarantee is complete; docs/reference is generated from it."""

from __future__ import annotations

import re

import pytest

from urteil.harness.verify.guarantees import GUARANTEES, Guarantee


@pytest.mark.parametrize("one", GUARANTEES.values(), ids=lambda one: one.name)
def test_declaration_of_a_guarantee_is_complete(one: Guarantee) -> None:
    assert one.about
    assert one.promise.endswith(".")
    assert one.source
    assert "://" not in one.source
    assert one.sub_kinds


@pytest.mark.parametrize("one", GUARANTEES.values(), ids=lambda one: one.name)
def test_details_explain_existing_sub_kinds(one: Guarantee) -> None:
    heads = [kind for text in one.details for kind in re.findall(r"`([^`]+)`: ", text)]
    assert set(heads) <= one.sub_kinds.keys()
