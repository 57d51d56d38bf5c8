"""``dgxcheck.pyz``: dgxcheck and its libraries as one file that any Python from 3.10 on runs, without unpacking it."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Mapping
from io import BytesIO

_FIRST_LINE = b"#!/usr/bin/env python3\n"
_MAIN = b"""\
# Old interpreters read this file too, so it holds nothing that Python 2.7 does not understand.
import sys

if sys.version_info < (3, 10):
    sys.stderr.write(
        "dgxcheck: needs Python 3.10 or newer, and %s is %d.%d; INSTALL.md says how to get one beside it\\n"
        % ((sys.executable or "this",) + tuple(sys.version_info[:2]))
    )
    sys.exit(3)

from dgxcheck.__main__ import run

run()
"""


def single_file(modules: Mapping[str, bytes], epoch: int) -> bytes:
    """The file, of modules and data by path; ``epoch``, in seconds, is the time of all members."""
    raw = BytesIO(_FIRST_LINE)
    raw.seek(0, 2)
    when = time.gmtime(max(epoch, 315532800))[:6]  # a zip file knows no time before 1980
    with zipfile.ZipFile(raw, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted({**modules, "__main__.py": _MAIN}.items()):
            member = zipfile.ZipInfo(name, when)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o100644 << 16
            archive.writestr(member, data)
    return raw.getvalue()
