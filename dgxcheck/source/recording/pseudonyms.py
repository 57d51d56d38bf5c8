"""What an identity is called under a key: equal identities alike, in the same form."""

from __future__ import annotations

import hashlib
import hmac
import re

_PREFIX = re.compile(r"(?:MIG-)?(?:GPU-)?(?:0x)?")
_HEXADECIMAL = re.compile("[0-9a-fA-F]+")
_BINARY = (12, 16, 32)
"""Hexadecimal digits of a MAC, of a GUID, and of a UUID."""


class Pseudonyms:
    """One key; remembers what it replaced."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.replaced: dict[str, str] = {}
        """Letters and digits, lower case, of identities that were given as ``known``, and of their pseudonyms."""

    def identity(self, text: str, known: bool = False) -> str:
        """Digits for digits, letters for letters (a to f where all are hexadecimal), all else as it stands.

        ``known`` says that the text is an identity beyond doubt, not a number that looks like one.
        """
        prefix = _PREFIX.match(text)
        start = prefix.end() if prefix else 0
        plain = "".join(filter(str.isalnum, text[start:]))
        if not plain.strip("0"):
            return text
        numeral = plain.isdigit() and len(plain) not in _BINARY
        hexadecimal = _HEXADECIMAL.fullmatch(plain) is not None and not numeral
        stream = iter(self._stream(plain.lower(), len(plain)))
        new = text[:start] + "".join(_like(char, next(stream), hexadecimal) if char.isalnum() else char
                                     for char in text[start:])  # fmt: skip
        if known:
            self.replaced[plain.lower()] = "".join(filter(str.isalnum, new[start:])).lower()
        return new

    def named(self, kind: str, name: str) -> str:
        """``host-1a2b3c4d``, whatever the case of the name."""
        return f"{kind}-{hmac.new(self._key, name.lower().encode(), hashlib.sha256).hexdigest()[:8]}"

    def _stream(self, text: str, length: int) -> bytes:
        blocks = (hmac.new(self._key, f"{n} {text}".encode(), hashlib.sha256).digest() for n in range(length // 32 + 1))
        return b"".join(blocks)


def _like(char: str, byte: int, hexadecimal: bool) -> str:
    if hexadecimal:
        digit = "0123456789abcdef"[byte % 16]
        return digit.upper() if char.isupper() else digit
    if char.isdigit():
        return "0123456789"[byte % 10]
    letter = "abcdefghijklmnopqrstuvwxyz"[byte % 26]
    return letter.upper() if char.isupper() else letter
