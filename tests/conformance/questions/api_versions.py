"""ApiVersions at every version and beyond; APIs and versions that nobody serves."""

from __future__ import annotations

import struct
from typing import Any

from tests.conformance.questions.registry import Asked, Subject
from urteil.broker.api.registry import SERVED, load_handlers
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import ApiVersionsRequest

VERSIONS = Subject("ApiVersions", ApiKey.API_VERSIONS)

load_handlers()


def _api_versions(software: str = "urteil") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=software, client_software_version="1.0")


@VERSIONS.question("which versions", versions=range(5))
def served_apis(it: Asked) -> Any:
    """Of the APIs that ours serves; the page lists those that it does not serve."""
    answer = it.ask(_api_versions())
    answer["api_keys"] = [one for one in answer["api_keys"] if one["api_key"] in SERVED]
    return answer


SOFTWARE = {one or "empty": one for one in ("", "bad name", "-x", "ok-1.2", "ok-", "x" * 300)}


@VERSIONS.each("client software", SOFTWARE, since=3)
def software(it: Asked, name: str) -> Any:
    answer = it.ask(_api_versions(name))
    return answer["error_code"], bool(answer["api_keys"])


@VERSIONS.each("unknown version", {str(n): n for n in (5, 99, 32767, -1)}, versions=(0,))
def unknown_version(it: Asked, version: int) -> Any:
    return it.side.raw(frame(ApiKey.API_VERSIONS, version, b"x"))


@VERSIONS.each("a key that nobody knows", {str(n): n for n in (-1, 88, 9999, 32767)}, versions=(0,))
def unknown_key(it: Asked, key: int) -> Any:
    return it.side.raw(frame(key, 0, b"x\0\0\0\0\0\0\0\0"))


KRAFT = {one.name: one for one in ApiKey if 52 <= one <= 55 or one in (59, 62, 63, 64, 70, 75)}


@VERSIONS.each("an API of KRaft", KRAFT, versions=(0,))
def of_kraft(it: Asked, key: int) -> Any:
    return it.side.raw(frame(key, 0, b"x" + bytes(40)))


BEYOND = {
    f"{ApiKey(key).name} {version}": (key, version)
    for key, served in sorted(SERVED.items())
    if key != ApiKey.API_VERSIONS
    for version in (served.min_version - 1, served.max_version + 1)
}


@VERSIONS.each("beyond the range", BEYOND, versions=(0,))
def beyond(it: Asked, given: tuple[int, int]) -> Any:
    return it.side.raw(frame(*given, b"x" + bytes(40)))


def frame(key: int, version: int, rest: bytes) -> bytes:
    """A request with a client id of one letter, which is the first of `rest`."""
    body = struct.pack(">hhih", key, version, 5, 1) + rest
    return struct.pack(">i", len(body)) + body
