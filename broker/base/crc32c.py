"""CRC-32C of batches and snapshots, from the C extension of the package crc32c.

The package itself reads its version from the metadata of installed packages, which takes a twelfth
of the imports of a broker. So its extension is loaded without it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_Checksum = Callable[[bytes | bytearray | memoryview], int]


def _load() -> _Checksum:
    package = PathFinder.find_spec("crc32c")
    places = package and package.submodule_search_locations
    extension = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if extension is None or extension.loader is None:  # missing, or laid out in another way
        module = import_module("crc32c")
    else:
        module = module_from_spec(extension)
        extension.loader.exec_module(module)
    checksum: _Checksum = module.crc32c
    return checksum


crc32c: _Checksum = _load()
