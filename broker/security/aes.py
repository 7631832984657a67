"""AES in CBC mode with PKCS#7 padding (FIPS 197, SP 800-38A): for the few stored passwords.

Plain Python, some thousand blocks a second; not for data in motion.
"""

from __future__ import annotations

BLOCK = 16


def _double(value: int) -> int:
    """Times x in GF(2^8)."""
    value <<= 1
    return value ^ 0x11B if value & 0x100 else value


def _times(left: int, right: int) -> int:
    product = 0
    while right:
        if right & 1:
            product ^= left
        left, right = _double(left), right >> 1
    return product


def _substitution() -> bytes:
    powers = [1]  # of x + 1, which generates all values but 0
    while len(powers) < 255:
        powers.append(powers[-1] ^ _double(powers[-1]))
    inverses = {value: powers[-at % 255] for at, value in enumerate(powers)}
    box = bytearray(256)
    for value in range(256):
        inverse = turned = inverses.get(value, 0)
        for shift in range(1, 5):
            turned ^= (inverse << shift | inverse >> (8 - shift)) & 0xFF
        box[value] = turned ^ 0x63
    return bytes(box)


_BOX = _substitution()
_UNBOX = bytes(_BOX.index(value) for value in range(256))
_SHIFT = bytes((4 * (column + row) + row) % 16 for column in range(4) for row in range(4))
_UNSHIFT = bytes(_SHIFT.index(position) for position in range(16))


class Aes:
    """One key of 16, 24 or 32 bytes."""

    def __init__(self, key: bytes) -> None:
        if len(key) not in (16, 24, 32):
            raise ValueError(f"an AES key has 128, 192 or 256 bits, not {len(key) * 8}")
        self._rounds = _round_keys(key)

    def encrypt(self, text: bytes, vector: bytes) -> bytes:
        """With the padding added."""
        fill = BLOCK - len(text) % BLOCK
        padded = text + bytes([fill]) * fill
        found = b""
        for start in range(0, len(padded), BLOCK):
            vector = self._encrypt_block(_xor(padded[start : start + BLOCK], vector))
            found += vector
        return found

    def decrypt(self, data: bytes, vector: bytes) -> bytes:
        """Without the padding. Raises ValueError for a wrong key or damaged data."""
        text = b""
        if not data or len(data) % BLOCK or len(vector) != BLOCK:
            raise ValueError("no whole blocks")
        for start in range(0, len(data), BLOCK):
            block = data[start : start + BLOCK]
            text += _xor(self._decrypt_block(block), vector)
            vector = block
        fill = text[-1]
        if not 1 <= fill <= BLOCK or text[-fill:] != bytes([fill]) * fill:
            raise ValueError("bad padding")
        return text[:-fill]

    def _encrypt_block(self, block: bytes) -> bytes:
        state = _xor(block, self._rounds[0])
        for number, key in enumerate(self._rounds[1:], start=1):
            state = bytes(state.translate(_BOX)[at] for at in _SHIFT)
            if number < len(self._rounds) - 1:
                state = _mix(state, (2, 3, 1, 1))
            state = _xor(state, key)
        return state

    def _decrypt_block(self, block: bytes) -> bytes:
        state = block
        for number in range(len(self._rounds) - 1, 0, -1):
            state = _xor(state, self._rounds[number])
            if number < len(self._rounds) - 1:
                state = _mix(state, (14, 11, 13, 9))
            state = bytes(state[at] for at in _UNSHIFT).translate(_UNBOX)
        return _xor(state, self._rounds[0])


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))


def _mix(state: bytes, factors: tuple[int, int, int, int]) -> bytes:
    mixed = bytearray()
    for start in range(0, BLOCK, 4):
        column = state[start : start + 4]
        for row in range(4):
            value = 0
            for at in range(4):
                value ^= _times(column[at], factors[(at - row) % 4])
            mixed.append(value)
    return bytes(mixed)


def _round_keys(key: bytes) -> list[bytes]:
    words = [key[start : start + 4] for start in range(0, len(key), 4)]
    size, constant = len(words), 1
    while len(words) < 4 * (size + 7):
        word = words[-1]
        if len(words) % size == 0:
            word = (word[1:] + word[:1]).translate(_BOX)
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _double(constant)
        elif size > 6 and len(words) % size == 4:
            word = word.translate(_BOX)
        words.append(_xor(word, words[-size]))
    return [b"".join(words[start : start + 4]) for start in range(0, len(words), 4)]
