"""The declaration of each guarantee is complete; docs/reference is generated from it."""

from __future__ import annotations

import re

import pytest

from urteil.harness.verify.guarantees import GUARANTEES, Guarantee


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=lambda guarantee: guarantee.name)
def test_declaration_of_a_guarantee_is_complete(guarantee: Guarantee) -> None:
    assert guarantee.about
    assert guarantee.promise.endswith(".")
    assert guarantee.source
    assert "://" not in guarantee.source
    assert guarantee.sub_kinds


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=lambda guarantee: guarantee.name)
def test_details_explain_existing_sub_kinds(guarantee: Guarantee) -> None:
    heads = [kind for text in guarantee.details for kind in re.findall(r"`([^`]+)`: ", text)]
    assert set(heads) <= guarantee.sub_kinds.keys()
