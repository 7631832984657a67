"""Encrypted passwords: AES by published vectors, and passwords written by Apache Kafka 3.9.1."""

from __future__ import annotations

import pytest

from urteil.broker.security.aes import Aes
from urteil.broker.security.passwords import PasswordEncoder

# FIPS 197, appendix C: one block under keys of 128, 192 and 256 bits.
PLAIN = bytes.fromhex("00112233445566778899aabbccddeeff")
BLOCKS = {
    16: "69c4e0d86a7b0430d8cdb78070b4c55a",
    24: "dda97ca4864cdfe06eaf70a0ec0d7191",
    32: "8ea2b7ca516745bfeafc49904b496089",
}


@pytest.mark.parametrize("size", BLOCKS)
def test_aes_blocks(size: int) -> None:
    aes = Aes(bytes(range(size)))
    encrypted = aes.encrypt(PLAIN, bytes(16))
    assert encrypted[:16].hex() == BLOCKS[size]
    assert aes.decrypt(encrypted, bytes(16)) == PLAIN


def test_aes_chained_blocks() -> None:
    """SP 800-38A, F.2.1."""
    aes = Aes(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))
    text = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    encrypted = aes.encrypt(text, bytes(range(16)))
    expected = "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
    assert encrypted[:32].hex() == expected


@pytest.mark.parametrize("password", ["", "x", "geheim", "a" * 16, "π𝄞,:=" * 9])
def test_encoded_password_is_decoded(password: str) -> None:
    encoder = PasswordEncoder(secret="the secret", iterations=1024)
    encoded = encoder.encode(password)
    assert encoder.decode(encoded) == password
    assert encoder.encode(password) != encoded  # salted
    other = PasswordEncoder(secret="the secret", key_bits=256, key_factory="PBKDF2WithHmacSHA1")
    assert other.decode(encoded) == password


WRITTEN_BY_KAFKA = (
    "initializationVector:ONvUs+YJJZlAg9qte+Vu8g==,keyLength:128,salt:7++SozNFvuVbZGSDZR7+oneEqYfI"
    "jLCmimy/VvGtPEb5DrjCtthVDt7OXmWB3YDSPi61DqKxHUmbs5qAtpSRiSX41M/DeH/Hub3Q5ELpNUi6p1iTqaQjnecBN"
    "4dNzUn2nm4m2sSSzdSoOdBnwCcMQTbH4geRnyNTFNpFEOvK59mY6nuWIK6UGh/0w+sP9eDunednekuDtP8Fekh+0szLn3"
    "cxyRubxQefXtBquOHg9sdkoTp4u5x0oa/ZQiEABcB/6rRt9OLb9AgQR6Xpcr9Akfq+Nn2Rd2gMyXAnR6RoH36hcHG7Uo4"
    "mY4rALOD5a/PgzquYLw8T0QMzC539uz+UiQ==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorith"
    "m:AES/CBC/PKCS5Padding,iterations:1024,passwordLength:9,encryptedPassword:CI+Os2M1RAz90c1bwks"
    "9RA=="
)


def test_password_of_apache_kafka_is_decoded() -> None:
    assert PasswordEncoder(secret="the secret").decode(WRITTEN_BY_KAFKA) == "geheim 𝄞"


def test_wrong_secret_and_malformed_text_are_rejected() -> None:
    encoded = PasswordEncoder(secret="one", iterations=1024).encode("geheim")
    for wrong in (encoded, "", "a:b", "nonsense", encoded.replace("salt:", "salt:AAAA")):
        with pytest.raises(ValueError, match=r".+"):
            PasswordEncoder(secret="another").decode(wrong)


def test_unsupported_algorithms_are_reported() -> None:
    with pytest.raises(ValueError, match="AES/GCM/NoPadding"):
        PasswordEncoder(secret="s", cipher="AES/GCM/NoPadding").encode("x")
    with pytest.raises(ValueError, match="PBKDF2WithMD5"):
        PasswordEncoder(secret="s", key_factory="PBKDF2WithMD5").encode("x")
