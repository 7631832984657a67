"""CRC-32C without the imports of its package."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest

from urteil.broker.base.crc32c import crc32c

STARTED = (
    "import sys, urteil.broker.__main__\n"
    "print(*sorted({'crc32c', 'importlib.metadata', 'email', 'argparse'} & sys.modules.keys()))"
)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_checksum_is_that_of_the_package(kind: type) -> None:
    assert crc32c(kind(b"123456789")) == 0xE3069283  # RFC 3720, B.4
    assert crc32c(kind(b"\x00" * 5_000)) == package.crc32c(bytes(5_000))


def test_broker_starts_without_reading_metadata_of_packages() -> None:
    started = subprocess.run(
        [sys.executable, "-P", "-c", STARTED], capture_output=True, text=True, check=True
    )
    assert started.stdout == "\n"
