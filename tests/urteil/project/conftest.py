"""A user's project: settings of the cluster that the tests of a session share."""

import pytest


@pytest.fixture(scope="session")
def urteil_session_settings():
    return {"brokers": 1, "topics": {"shared": {"partitions": 2}}}
