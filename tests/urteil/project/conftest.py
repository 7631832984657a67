"""A project of its own: the cluster that its session shares."""

import pytest


@pytest.fixture(scope="session")
def urteil_session_settings():
    return {"brokers": 1, "topics": {"shared": {"partitions": 2}}}
