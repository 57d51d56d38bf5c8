"""The second pass: every identity that the first pass met is replaced wherever else it occurs, in any spelling.

The first pass knows which facts hold identities. This one knows none of that and looks for the identities themselves,
in all texts, names, keys, numbers and bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.keys import from_rows, to_rows

_HEXADECIMAL = re.compile("[0-9a-f]+")
_SEPARATORS = ":-._ "
_SHORTEST = 8
"""Letters and digits of the shortest identity that is looked for; so many of any lead to it."""
_NOTHING = re.compile(rb"\0{16,}")
_OTHERS = {code: None for code in range(128) if not chr(code).isalnum()}
_PIECE = re.compile(r"[^/\n]{8,}")
_ALONE = 12
"""One of fewer letters and digits counts only where it is not part of a longer word or number."""
_MANY = 500
"""Of more spellings that are looked for in a text their beginnings are compared with all of its places first."""
_LEAST_DIFFERENT = 4
"""Different characters; ``00000001`` is looked for nowhere."""


class KnownIdentities:
    """Identities and pseudonyms by their letters and digits, lower case."""

    def __init__(self, replaced: Mapping[str, str]) -> None:
        telling = {old: new for old, new in replaced.items() if _telling(old)}
        spelled = {old: new for pair in telling.items() for old, new in _spellings(*pair)} | telling
        self._spelled = [(old, spelled[old]) for old in sorted(filter(_telling, spelled), key=len, reverse=True)]
        self._by_start: dict[str, list[tuple[str, str]]] = {}
        decimal = [(old, new) for old, new in spelled.items() if _telling(old) and old.isdecimal() and new.isdecimal()]
        self._numbers = {int(old): int(new) for old, new in decimal}
        self._bytes = [pair for known in telling.items() for pair in _as_bytes(*known)]
        self._present: list[tuple[bytes, bytes]] = []
        self._seen: dict[str, str] = {}

    def facts(self, facts: Mapping[str, Json]) -> dict[str, Json]:
        """The same facts without them, in keys too."""
        binary = (from_rows(fact) for key, fact in facts.items() if key.startswith("data "))
        bare = _NOTHING.sub(b"\0" * _ALONE, b"\0".join(data for data in binary if data))
        self._present = [(old, new) for old, new in self._bytes if old in bare]
        written = _plain("\n".join({*_PIECE.findall("\n".join(_texts(facts)))}))
        many = len(self._spelled) > _MANY
        starts = {written[at : at + _SHORTEST] for at in range(len(written))} if many else set[str]()
        self._by_start = {}
        for old, new in self._spelled:
            # hardly any is: the first pass has replaced the others
            if (not many or old[:_SHORTEST] in starts) and old in written:
                self._by_start.setdefault(old[:_SHORTEST], []).append((old, new))
        return {self.text(key): self._fact(fact, key.startswith("data ")) for key, fact in facts.items()}

    def text(self, text: str) -> str:
        """In any case, with or without one separator between any two characters."""
        return _PIECE.sub(self._piece, text) if self._by_start else text

    def _fact(self, fact: Json, binary: bool = False) -> Json:
        if isinstance(fact, str):
            return self.text(fact)
        if isinstance(fact, bool) or fact is None:
            return fact
        if isinstance(fact, int):
            return self._numbers.get(fact, fact)
        if isinstance(fact, list):
            octets = [one for one in fact if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 256]
            if len(octets) == len(fact) >= _SHORTEST // 2:
                return [*_without(bytes(octets), self._bytes)]
            return [self._fact(one) for one in fact]
        if isinstance(fact, dict):
            if binary and self._present and (data := from_rows(fact)) is not None:
                return to_rows(_without(data, self._present))
            return {self.text(name): self._fact(one) for name, one in fact.items()}
        return fact

    def _piece(self, match: re.Match[str]) -> str:
        """One component of a path, or one line: the same few come a thousand times."""
        text = match[0]
        if text not in self._seen:
            self._seen[text] = self._replaced(text)
        return self._seen[text]

    def _replaced(self, text: str) -> str:
        plain = _plain(text)
        if not any(start in plain for start in self._by_start):
            return text
        at = [index for index, char in enumerate(text) if char.isalnum() and char.isascii()]
        plain = "".join(text[index] for index in at).lower()
        found: list[str] | None = None
        first = 0
        while first + _SHORTEST <= len(plain):
            match = self._match(text, plain, at, first) if plain[first : first + _SHORTEST] in self._by_start else None
            if match is None:
                first += 1
                continue
            old, new = match
            found = found or [*text]
            upper = text[at[first] : at[first + len(old) - 1] + 1].isupper()
            for index, char in zip(at[first : first + len(old)], new, strict=True):
                found[index] = char.upper() if upper else char
            first += len(old)
        return text if found is None else "".join(found)

    def _match(self, text: str, plain: str, at: list[int], first: int) -> tuple[str, str] | None:
        for old, new in self._by_start[plain[first : first + _SHORTEST]]:
            if not plain.startswith(old, first):
                continue
            places = at[first : first + len(old)]
            if not all(b - a == 1 or (b - a == 2 and text[a + 1] in _SEPARATORS) for a, b in pairwise(places)):
                continue
            before, after = text[: places[0]][-1:], text[places[-1] + 1 :][:1]
            if len(old) >= _ALONE or not (before.isalnum() or after.isalnum()):
                return old, new
        return None


def _texts(facts: Mapping[str, Json]) -> Iterator[str]:
    """All keys, texts and names of members."""
    open_: list[Json] = [*facts.values()]
    yield from facts
    while open_:
        if isinstance(fact := open_.pop(), str):
            yield fact
        elif isinstance(fact, dict):
            yield from fact
            open_ += fact.values()
        elif isinstance(fact, list):
            open_ += fact


def _plain(text: str) -> str:
    """Its letters and digits, lower case."""
    return text.translate(_OTHERS).lower()


def _without(data: bytes, pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Bytes in which identities stand as bytes of either order, or as letters."""
    for old, new in pairs:
        data = data.replace(old, new)
    return data


def _telling(plain: str) -> bool:
    """Is it long and varied enough, with a digit, that nothing else of a machine reads like it?"""
    varied = len(set(plain)) >= _LEAST_DIFFERENT and any(map(str.isdigit, plain))
    return len(plain) >= _SHORTEST and varied and plain.isascii()


def _spellings(old: str, new: str) -> Iterator[tuple[str, str]]:
    """As it stands, without leading zeros; a binary one in other orders of bytes and as decimal numbers."""
    yield old, new
    if old.isdecimal() and old.startswith("0"):
        yield old.lstrip("0"), new[len(old) - len(old.lstrip("0")) :]
    for before, after in _orders(old, new):
        yield before.hex(), after.hex()
        number = str(int.from_bytes(before, "big"))
        yield number, str(int.from_bytes(after, "big"))[-len(number) :].zfill(len(number))


def _orders(old: str, new: str) -> Iterator[tuple[bytes, bytes]]:
    """Bytes of an identity and of its pseudonym in either order, if it is a MAC, a GUID or a UUID."""
    if len(old) not in (12, 16, 32) or not _HEXADECIMAL.fullmatch(old):
        return
    for before, after in zip(_related(bytes.fromhex(old)), _related(bytes.fromhex(new)), strict=True):
        yield before, after
        yield before[::-1], after[::-1]


def _related(octets: bytes) -> Iterator[bytes]:
    """Itself and what is made of it, the same number for any of one size: RFC 4291, appendix A, for EUI-64."""
    yield octets
    locally = bytes((octets[0] ^ 2,)) + octets[1:3]
    if len(octets) == 16:
        yield octets[3::-1] + octets[5:3:-1] + octets[7:5:-1] + octets[8:]  # as SMBIOS and EFI write a UUID
    for first in (octets[:3], locally):
        if len(octets) == 6:
            yield first + b"\xff\xfe" + octets[3:]
            yield first + b"\x03\x00" + octets[3:]  # a GUID of Mellanox
        if len(octets) == 8:
            yield first + octets[5:]  # the MAC within a GUID


def _as_bytes(old: str, new: str) -> Iterator[tuple[bytes, bytes]]:
    yield from _orders(old, new)
    yield old.encode(), new.encode()
    yield old.upper().encode(), new.upper().encode()
