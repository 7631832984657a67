"""AES in CBC mode with PKCS#7 padding, for stored passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC
    from cryptography.hazmat.primitives.padding import PKCS7

BLOCK = 16


class Aes:
    """A cipher with a key of 16, 24 or 32 bytes. Raises ValueError for another size."""

    def __init__(self, key: bytes) -> None:
        # imported on use: most brokers have no stored password, and the library takes megabytes
        from cryptography.hazmat.primitives.ciphers.algorithms import AES

        self._key = AES(key)

    def encrypt(self, text: bytes, vector: bytes) -> bytes:
        """Pad and encrypt."""
        padder = _padding().padder()
        encryptor = self._cipher(vector).encryptor()
        return encryptor.update(padder.update(text) + padder.finalize()) + encryptor.finalize()

    def decrypt(self, data: bytes, vector: bytes) -> bytes:
        """Decrypt and remove the padding. Raises ValueError for a wrong key or damaged data."""
        decryptor = self._cipher(vector).decryptor()
        unpadder = _padding().unpadder()
        padded = decryptor.update(data) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()

    def _cipher(self, vector: bytes) -> Cipher[CBC]:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        return Cipher(self._key, CBC(vector))


def _padding() -> PKCS7:
    from cryptography.hazmat.primitives.padding import PKCS7

    return PKCS7(BLOCK * 8)
