"""The pure libraries that travel with dgxcheck, in the versions and with the hashes of ``requirements-dev.txt``."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

LIBRARIES = ("click", "nvidia-ml-py", "pyudev", "rich", "tomli")
"""All of ``project.dependencies`` but psutil, which is compiled, and optional at run time."""
_STRAY = ("example.py",)
"""At the top of nvidia-ml-py's wheel; nothing imports it."""


def pinned(lock: str) -> str:
    """Requirements of ``LIBRARIES``, from the text of a lock file; for every Python, so without markers.

    What rich itself requires (Markdown, syntax colours) it imports where it is used, and dgxcheck uses neither.
    """
    blocks = re.split(r"^(?=[a-z0-9._-]+==)", lock, flags=re.MULTILINE)
    wanted = [block for block in blocks if block.partition("==")[0] in LIBRARIES]
    return "".join(re.sub(r"^(\S+) ;[^\\\n]*", r"\1 ", block) for block in wanted)


def download(lock: Path, folder: Path) -> tuple[Path, ...]:
    """Wheels of the libraries, downloaded into ``folder``: pure ones only, each of a hash that the lock file names."""
    requirements = folder / "requirements.txt"
    requirements.write_text(pinned(lock.read_text(encoding="utf-8")), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    pure = ["--no-deps", "--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none"]
    subprocess.run([*pip, *pure, "--require-hashes", f"--requirement={requirements}", f"--dest={folder}"], check=True)
    return tuple(sorted(folder.glob("*.whl")))


def unpack(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel by their path below site-packages; what installers write beside them is left out."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith(("/", ".dist-info/RECORD"))]
        return {name: archive.read(name) for name in names if name not in _STRAY}
