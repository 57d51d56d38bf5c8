"""The texts that ``dgxcheck import`` reads: files and stdin, within limits."""

from __future__ import annotations

import codecs
import os
import stat
import sys
from collections.abc import Sequence

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record

MOST_BYTES = 64 << 20
KNOWN = "what nvidia-smi, p2pBandwidthLatencyTest, bandwidthTest, simpleP2P, nvbandwidth, nccl-tests and perftest print"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Text(Record, kw_only=False):
    """A text by lines, and its name: that of the file without folders, which may name people."""

    name: str
    lines: tuple[str, ...]


def texts(files: tuple[str, ...]) -> list[Text]:
    """The files in the order given; the same name from two folders gets a number."""
    found: list[Text] = []
    for file in files:
        raw = _stdin() if file == "-" else _file(file)
        name = "stdin" if file == "-" else os.path.basename(file).encode(errors="replace").decode()
        again = sum(text.name == name or text.name.startswith(f"{name} (") for text in found)
        found.append(Text(f"{name} ({again + 1})" if again else name, lines(raw, file)))
    return found


def named(read: Sequence[Text]) -> str:
    """A few names for a sentence."""
    more = f" and {len(read) - 3} more" if len(read) > 3 else ""
    return ", ".join(text.name for text in read[:3]) + more


def lines(raw: bytes, file: str) -> tuple[str, ...]:
    """Lines of UTF-8, or of UTF-16 as PowerShell writes it; what is no text of either becomes U+FFFD."""
    if raw.startswith(_UTF16):
        text = raw.decode("utf-16", "replace")
    else:
        if b"\0" in raw:
            raise BadInput(f"{file}: holds NUL bytes: no text that a tool printed; name its output")
        text = raw.decode("utf-8-sig", "replace")
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def _file(path: str) -> bytes:
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise BadInput(f"{path}: is a directory; name the files that hold the tools' outputs")
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"{path}: not a regular file; save it as one first, or pipe it to -")
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"{path}: no name of a file") from None
    return _bounded(raw, path)


def _stdin() -> bytes:
    return _bounded(sys.stdin.buffer.read(MOST_BYTES + 1), "stdin")


def _bounded(raw: bytes, name: str) -> bytes:
    if len(raw) > MOST_BYTES:
        raise BadInput(f"{name}: more than {MOST_BYTES >> 20} MiB; no tool's output has as much")
    return raw
