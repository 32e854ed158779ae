"""CRC-32C (Castagnoli) of an object, as the service writes it: RFC 3720's polynomial, big-endian, base64."""

from __future__ import annotations

from base64 import b64encode

_POLYNOMIAL = 0x82F63B78  # reflected


def crc32c(content: bytes) -> str:
    checksum = 0xFFFFFFFF
    for byte in content:
        checksum = _TABLE[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    return b64encode((checksum ^ 0xFFFFFFFF).to_bytes(4)).decode()


def _row(index: int) -> int:
    for _ in range(8):
        index = (index >> 1) ^ (_POLYNOMIAL if index & 1 else 0)
    return index


_TABLE = tuple(_row(index) for index in range(256))
