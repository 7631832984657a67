"""ApiVersions at every version and beyond; APIs and versions that nobody serves."""

from __future__ import annotations

import struct
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from urteil.broker.api.registry import SERVED, load_handlers
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import ApiVersionsRequest

VERSIONS = Subject("ApiVersions", ApiKey.API_VERSIONS)

load_handlers()


def _api_versions(software: str = "urteil") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=software, client_software_version="1.0")


@VERSIONS.question("which versions", versions=range(5))
def served_apis(asker: Asker) -> Any:
    """Of the APIs that ours serves; the page lists those that it does not serve."""
    answer = asker.ask(_api_versions())
    answer["api_keys"] = [row for row in answer["api_keys"] if row["api_key"] in SERVED]
    return answer


SOFTWARE = {name or "empty": name for name in ("", "bad name", "-x", "ok-1.2", "ok-", "x" * 300)}


@VERSIONS.each("client software", SOFTWARE, since=3)
def software(asker: Asker, name: str) -> Any:
    answer = asker.ask(_api_versions(name))
    return answer["error_code"], bool(answer["api_keys"])


@VERSIONS.each("unknown version", {str(n): n for n in (5, 99, 32767, -1)}, versions=(0,))
def unknown_version(asker: Asker, version: int) -> Any:
    return asker.side.raw(frame(ApiKey.API_VERSIONS, version, b"x"))


@VERSIONS.each("a key that nobody knows", {str(n): n for n in (-1, 88, 9999, 32767)}, versions=(0,))
def unknown_key(asker: Asker, key: int) -> Any:
    return asker.side.raw(frame(key, 0, b"x\0\0\0\0\0\0\0\0"))


KRAFT = {api.name: api for api in ApiKey if 52 <= api <= 55 or api in (59, 62, 63, 64, 70, 75)}


@VERSIONS.each("an API of KRaft", KRAFT, versions=(0,))
def of_kraft(asker: Asker, key: int) -> Any:
    return asker.side.raw(frame(key, 0, b"x" + bytes(40)))


BEYOND = {
    f"{ApiKey(key).name} {version}": (key, version)
    for key, served in sorted(SERVED.items())
    if key != ApiKey.API_VERSIONS
    for version in (served.min_version - 1, served.max_version + 1)
}


@VERSIONS.each("beyond the range", BEYOND, versions=(0,))
def beyond(asker: Asker, given: tuple[int, int]) -> Any:
    return asker.side.raw(frame(*given, b"x" + bytes(40)))


def frame(key: int, version: int, rest: bytes) -> bytes:
    """A request with a client id of one letter, which is the first of `rest`."""
    body = struct.pack(">hhih", key, version, 5, 1) + rest
    return struct.pack(">i", len(body)) + body
