"""Folders of nodes as tar archives: on their way to a container or a host, and back."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

Owner = Callable[[tarfile.TarInfo], tarfile.TarInfo]


def pack_folder(folder: Path, home: str, owner: Owner, *, is_complete: bool) -> bytes:
    """An archive of the folder as `home`; not `is_complete`: only the files directly in it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        if is_complete:
            tar.add(folder, arcname=home, filter=owner)
        else:
            for file in sorted(path for path in folder.iterdir() if path.is_file()):
                tar.add(file, arcname=f"{home}/{file.name}", filter=owner)
    return buffer.getvalue()


def extract(file: IO[bytes], folder: Path) -> None:
    """Files and folders of an archive, without its first folder and never outside of `folder`.

    tarfile's own filters came with Python 3.11.4; Debian 12 has 3.11.2. The archive may be
    compressed.
    """
    with tarfile.open(fileobj=file) as tar:
        for member in tar:
            place = (folder / member.name.partition("/")[2]).resolve()
            if not place.is_relative_to(folder.resolve()):
                raise OSError(f"an archive with a file outside of its folder: {member.name}")
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
            elif (source := tar.extractfile(member)) is not None:
                with source, place.open("wb") as target:
                    shutil.copyfileobj(source, target)
