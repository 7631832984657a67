"""The API versions that the brokers of a cluster serve, by ApiVersions 0."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import closing

from urteil.chaos.capabilities import Versions
from urteil.chaos.observations import LabFailure
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import ResponseReader, encode_request

API_VERSIONS = (18, 0)
ANSWER_S = 10.0


def read_served_versions(connection: Connection) -> Versions:
    """By API key, the highest version that the broker of a connection serves."""
    answer = ResponseReader(connection.call(encode_request(API_VERSIONS, 1, b"")))
    answer.read(">h")
    versions = {}
    for _ in range(answer.read(">i")):
        key, _, highest = (answer.read(">h") for _ in range(3))
        versions[key] = highest
    return versions


def highest_version(api: tuple[int, int], versions: Versions) -> tuple[int, int]:
    """The API in the version that it names, or the highest one below that the broker serves; -1
    without the API."""
    key, version = api
    return key, min(version, versions.get(key, -1))


def common_versions(addresses: Iterable[str]) -> Versions:
    """By API key, the highest version that all brokers at these addresses serve.

    Raises LabFailure for a broker that does not answer.
    """
    common: dict[int, int] | None = None
    for address in addresses:
        try:
            with closing(Connection(address, ANSWER_S)) as connection:
                versions = read_served_versions(connection)
        except (OSError, struct.error) as failure:
            raise LabFailure(f"{address} does not answer ApiVersions: {failure}") from failure
        if common is None:
            common = dict(versions)
        else:
            both = common.keys() & versions.keys()
            common = {key: min(common[key], versions[key]) for key in both}
    return common or {}
