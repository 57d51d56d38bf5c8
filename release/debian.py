"""``dgxcheck_VERSION_all.deb``: the same modules under /usr/lib/dgxcheck, with man pages, completions and units.

The libraries are in it because the distributions that run on DGX systems have older ones (Ubuntu 22.04: click 8.0), and
none has nvidia-ml-py. The units are neither enabled nor started.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

_COMMAND = b"""\
#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "/usr/lib/dgxcheck")
from dgxcheck.__main__ import run

run()
"""
_MAINTAINER = "The dgxcheck developers <dgxcheck@localhost.localdomain>"
_CONTROL = """\
Package: dgxcheck
Version: {version}
Architecture: all
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: python3 (>= 3.10)
Recommends: python3-psutil, libudev1
Suggests: clustershell, pci.ids, prometheus-node-exporter
Section: admin
Priority: optional
Description: topology and health of NVIDIA multi-GPU machines
 Shows how GPUs, PCIe switches, NVLinks and InfiniBand adapters are wired,
 checks driver, GPUs, links, adapters, host and kernel log, names the component
 to blame and what to do about it, and compares with the reference machine.
"""
_CHANGELOG = """\
dgxcheck ({version}) unstable; urgency=medium

  * Built from the sources; their changes are in changelog.gz.

 -- {maintainer}  {when}
"""
_SCRIPTS = {
    "postinst": """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
    py3compile -p dgxcheck /usr/lib/dgxcheck
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
""",
    "prerm": """\
#!/bin/sh
set -e
py3clean -p dgxcheck
""",
}
_SHARED = {
    "bash-completion/": "usr/share/bash-completion/",
    "fish/": "usr/share/fish/",
    "man/": "usr/share/man/",
    "zsh/site-functions/": "usr/share/zsh/vendor-completions/",
}
"""Where Debian has what a wheel puts under ``share/``."""
_INTEGRATIONS = "dgxcheck/integrations/"
_UNITS = (".service", ".timer", ".socket")


def deb(modules: Mapping[str, bytes], shared: Mapping[str, bytes], project: Path, version: str, out: Path) -> Path:
    """Build the package in ``out``, with dpkg-deb; its times are ``SOURCE_DATE_EPOCH``. Returns its path."""
    files = {**dict(_installed(modules, shared)), **_documents(modules, project, f"{version}-1")}
    fill = {"version": f"{version}-1", "maintainer": _MAINTAINER}
    kib = sum(-(-len(data) // 1024) for data in files.values())
    package = out / f"dgxcheck_{version}-1_all.deb"
    with TemporaryDirectory() as folder:
        tree = Path(folder)
        for name, data in files.items():
            _write(tree / name, data, _mode(name, data))
        _write(tree / "DEBIAN/control", _CONTROL.format(kib=kib, **fill).encode(), 0o644)
        for name, text in _SCRIPTS.items():
            _write(tree / "DEBIAN" / name, text.encode(), 0o755)
        for each in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
            each.chmod(0o755)
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", folder, str(package)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return package


def _installed(modules: Mapping[str, bytes], shared: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield "usr/bin/dgxcheck", _COMMAND
    for name, data in modules.items():
        yield f"usr/lib/dgxcheck/{name}", data
        if name.startswith(_INTEGRATIONS) and name.endswith(_UNITS):
            unit = data.replace(b"=/usr/local/bin/dgxcheck ", b"=/usr/bin/dgxcheck ")
            yield f"usr/lib/systemd/system/{os.path.basename(name)}", unit
    for name, data in shared.items():
        (place,) = (f"{there}{name[len(here) :]}" for here, there in _SHARED.items() if name.startswith(here))
        yield (f"{place}.gz", _gzip(data)) if name.startswith("man/") else (place, data)


def _documents(modules: Mapping[str, bytes], project: Path, version: str) -> dict[str, bytes]:
    when = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    changelog = _CHANGELOG.format(version=version, maintainer=_MAINTAINER, when=when)
    of_libraries = (name for name in modules if ".dist-info/" in name and not name.startswith("dgxcheck-"))
    licences = [name for name in of_libraries if "LICEN" in name.upper() or "COPYING" in name]
    said = [
        "dgxcheck is under the Apache License 2.0: /usr/share/common-licenses/Apache-2.0 on Debian.\n",
        *(f"{name}\n\n{modules[name].decode('utf-8', 'replace')}\n" for name in sorted(licences)),
    ]
    doc = "usr/share/doc/dgxcheck"
    return {
        f"{doc}/changelog.gz": _gzip((project / "CHANGELOG.md").read_bytes()),
        f"{doc}/changelog.Debian.gz": _gzip(changelog.encode()),
        f"{doc}/copyright": "\n".join(said).encode(),
    }


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


def _mode(name: str, data: bytes) -> int:
    scripts = ("usr/bin/", f"usr/lib/dgxcheck/{_INTEGRATIONS}")
    return 0o755 if name.startswith(scripts) and data.startswith(b"#!") else 0o644


def _write(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
