"""Identities leave a machine as pseudonyms: equal ones map alike wherever they occur, their form is kept.

Which facts hold an identity stands in ``_WHOLE`` (the fact is one) and ``_WITHIN`` (free text that may hold some).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable

from dgxcheck.source.keys import Lines, flatten, insert
from dgxcheck.source.protocol import Json

_WHOLE = re.compile(
    r"text /sys/class/infiniband/[^/]+/(node_guid|sys_image_guid)"
    r"|text /sys/class/net/[^/]+/address"
    r"|text /sys/class/dmi/id/\w*serial"
    r"|text /proc/sys/kernel/random/boot_id"
    r"|nvml nvmlDeviceGet(UUID|Serial) .*"
)
_HOST = "text /proc/sys/kernel/hostname"
_PROCESS = "nvml nvmlSystemGetProcessName "
_FABRIC = "nvml nvmlDeviceGetGpuFabricInfo "
_WITHIN = re.compile(
    r"text /sys/class/infiniband/[^/]+/node_desc|text /proc/(cmdline|version)|text /etc/(dgx-release|os-release)"
)
_SERIAL_LINE = re.compile(r'(?m)^(\w*SERIAL\w*=)("?)([^"\n]+)(\2)$')
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_MAC = re.compile(r"\b[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}\b")
_GUID = re.compile(r"\b(?:0x)?[0-9a-fA-F]{16}\b|\b[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}\b")
_IPV4 = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?!\.)")
_MAC_IN_NAME = re.compile(r"\b(en|wl|ww)x[0-9a-f]{12}\b")
_PREFIX = re.compile(r"(?:GPU-|MIG-|0x)?")


def site_key(root: str = "/") -> bytes:
    """The site's key from the state directory; random where there is none, so that pseudonyms differ each time."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    places = (os.path.join(root, "var/lib"), state)
    for place in places if os.geteuid() == 0 else places[::-1]:
        try:
            with open(os.path.join(place, "dgxcheck", "site.key"), "rb") as file:
                if key := file.read(4096).strip():
                    return key
        except OSError:
            continue
    return os.urandom(32)


def hidden(
    lines: Lines, later: Iterable[tuple[float, Lines]], key: bytes
) -> tuple[Lines, list[tuple[float, Lines]]]:
    """The same lines with every identity replaced."""
    facts = flatten(lines)
    host = facts.get(_HOST)
    replace = _Replacer(key, host.strip() if isinstance(host, str) else "")
    return replace.lines(lines), [(at_s, replace.lines(changed)) for at_s, changed in later]


class _Replacer:
    """One key and one machine: turns identities into pseudonyms."""

    def __init__(self, key: bytes, host: str) -> None:
        self._key = key
        self._host = host
        self._in_host = re.compile(rf"\b{re.escape(host.partition('.')[0])}(?:\.[\w.-]+)?\b") if len(host) > 2 else None

    def lines(self, lines: Lines) -> Lines:
        new: Lines = {}
        for key, fact in sorted(flatten(lines).items()):
            insert(new, _MAC_IN_NAME.sub(self._match, key), self._fact(key, fact))
        return new

    def _fact(self, key: str, fact: Json) -> Json:
        if isinstance(fact, str):
            return self._text(key, fact)
        if isinstance(fact, list) and key.startswith("names /sys/class/net"):
            return [_MAC_IN_NAME.sub(self._match, name) if isinstance(name, str) else name for name in fact]
        if isinstance(fact, dict) and key.startswith(_FABRIC) and isinstance(fact.get("clusterUuid"), str):
            return fact | {"clusterUuid": self.identity(str(fact["clusterUuid"]))}
        return fact

    def _text(self, key: str, text: str) -> str:
        if _WHOLE.fullmatch(key):
            return self.identity(text)
        if key == _HOST:
            return f"host-{self._digest(text.strip())[:8]}{text[len(text.rstrip()) :]}"
        if key.startswith(_PROCESS):
            return f"process-{self._digest(text)[:8]}"
        if key.startswith("link ") or _WITHIN.fullmatch(key):
            return self._free(text)
        return text

    def _free(self, text: str) -> str:
        text = _SERIAL_LINE.sub(lambda m: f"{m[1]}{m[2]}{self.identity(m[3])}{m[4]}", text)
        for pattern in (_UUID, _MAC, _GUID, _IPV4, _MAC_IN_NAME):
            text = pattern.sub(self._match, text)
        if self._in_host is not None:
            text = self._in_host.sub(f"host-{self._digest(self._host)[:8]}", text)
        return text

    def _match(self, match: re.Match[str]) -> str:
        text = match[0]
        if _MAC_IN_NAME.fullmatch(text):
            return text[:3] + self.identity(text[3:])
        return self.identity(text)

    def identity(self, text: str) -> str:
        """Digits for digits, letters for letters (a to f where all are hexadecimal), all else as it stands."""
        prefix = _PREFIX.match(text)
        start = prefix.end() if prefix else 0
        plain = re.sub(r"[^0-9A-Za-z]", "", text[start:]).lower()
        if not plain.strip("0"):
            return text
        hexadecimal = re.fullmatch("[0-9a-f]*[a-f][0-9a-f]*", plain) is not None or len(plain) in (12, 16, 32)
        stream = iter(self._stream(plain, len(plain)))
        return text[:start] + "".join(_like(char, next(stream), hexadecimal) if char.isalnum() else char
                                      for char in text[start:])  # fmt: skip

    def _digest(self, text: str) -> str:
        return hmac.new(self._key, text.lower().encode(), hashlib.sha256).hexdigest()

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
