"""``python -m release WHEEL OUT``: ``dgxcheck.pyz`` and, where dpkg-deb is there, the Debian package.

Times are those of ``SOURCE_DATE_EPOCH``; the same wheel and lock file give the same bytes.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from release.debian import deb
from release.libraries import download, unpack
from release.single_file import single_file

PROJECT = Path(__file__).resolve().parent.parent


def main(wheel: Path, out: Path) -> None:
    """Build both from a wheel of dgxcheck."""
    modules: dict[str, bytes] = {}
    shared: dict[str, bytes] = {}
    with TemporaryDirectory() as folder:
        for library in download(PROJECT / "requirements-dev.txt", Path(folder)):
            modules.update(unpack(library))
    for name, data in unpack(wheel).items():
        _, is_shared, below = name.partition(".data/data/share/")
        (shared if is_shared else modules)[below or name] = data
    pyz = out / "dgxcheck.pyz"
    pyz.write_bytes(single_file(modules, int(os.environ["SOURCE_DATE_EPOCH"])))
    pyz.chmod(0o755)
    if shutil.which("dpkg-deb"):
        deb(modules, shared, PROJECT, wheel.name.split("-")[1], out)
    else:
        print("no dpkg-deb here: the Debian package is left out", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
