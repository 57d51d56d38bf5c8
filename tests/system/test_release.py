"""The single file and the Debian package: complete, the same bytes every time, and running without installation."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from checkout import ROOT
from live_box import Box, finished, started
from programs import program

from dgxcheck.cli import main
from dgxcheck.input_file import load as load_toml
from dgxcheck.source.recording.load import shipped
from release.__main__ import main as build
from release.debian import deb
from release.libraries import LIBRARIES, pinned
from release.single_file import single_file

EPOCH = "1700000000"
NOBODY = 65534
MODULES = {
    "dgxcheck/__init__.py": b"",
    "dgxcheck/integrations/x.service": b"ExecStart=/usr/local/bin/dgxcheck watch\n",
    "dgxcheck/integrations/x.sh": b"#!/bin/sh\n",
    "x-1.dist-info/licenses/LICENSE": b"free\n",
}
SHARED = {"man/man1/x.1": b".Dd\n", "zsh/site-functions/_x": b""}


@pytest.fixture(scope="module")
def out(built: Path, made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A folder with what is built of the wheel."""
    (wheel,) = built.glob("*.whl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", EPOCH)
        patch.setenv("DPKG_DEB_COMPRESSOR_LEVEL", "0")
        return made_once("release", lambda folder: build(wheel, folder))


@pytest.fixture(scope="module")
def pyz(out: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The single file, alone in a folder in which nobody may write."""
    folder = tmp_path_factory.mktemp("alone")
    copy = Path(shutil.copy(out / "dgxcheck.pyz", folder))
    folder.chmod(0o555)
    return copy


@cache
def interpreters() -> tuple[str, ...]:
    """One of each Python that is here, the one of the tests first."""
    names = ("/usr/bin/python3", *(f"python3.{minor}" for minor in range(10, 20)))
    found = {path for path in map(shutil.which, names) if path is not None}
    check = "import sys, zlib; print(sys.version); sys.exit(sys.version_info < (3, 10))"
    one_each: dict[bytes, str] = {}
    for path in (sys.executable, *sorted(found)):
        done = subprocess.run([path, "-c", check], capture_output=True, check=False)
        if done.returncode == 0:
            one_each.setdefault(done.stdout, path)
    return tuple(one_each.values())


def ran(words: list[str], user: int | None = None, code: int = 0) -> str:
    """What a program printed, in an empty environment, in a folder without files of the project."""
    done = subprocess.run(words, cwd="/", env={"PATH": "/usr/bin:/bin"}, user=user, capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert done.returncode == code, f"{words}\n{done.stdout[-500:]}\n{done.stderr[-2000:]}"
    return done.stdout


def test_the_single_file_prints_what_the_checkout_prints(pyz: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["health", "--from", "dgx-1-v100-hot"]
    assert main(argv) == 2
    text = capsys.readouterr().out
    for python in interpreters():
        assert ran([python, str(pyz), *argv], code=2) == text


ALL_DATA = """
import sys
sys.path.insert(0, sys.argv[1])
from dgxcheck.cli import main
from dgxcheck.cuda import device
for words in ("recordings", "schema topo", "xid 79"):
    assert main(words.split()) == 0, words
    print("\\0")
print(device.read(device.KERNELS).count(b".entry"))
"""
"""By one process, as each has to compile all that it imports from the file."""


def test_all_data_is_read_from_it(pyz: Path) -> None:
    listed, schema, xid, entries = ran([sys.executable, "-c", ALL_DATA, str(pyz)]).split("\0\n")
    assert all(f"{name} " in listed for name, _ in shipped())
    assert schema.startswith("{")
    assert "fallen off the bus" in xid
    assert int(entries) > 3


def test_its_workers_ask_the_driver(pyz: Path, served: Callable[..., Box], standin: Path) -> None:
    box = served("dgx-1-v100")
    argv = ("health", "-q", "--skip", "host.inventory", "-v")
    given = box.environment(standin)
    given.pop("PYTHONPATH", None)
    packed = finished(started((sys.executable, str(pyz), argv[0], "--root", str(box.tree), *argv[1:]), given))
    assert (packed.code, packed.err) == (0, "")
    assert packed.out == box.live(box.environment(standin), *argv).out


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_it_runs_as_an_ordinary_user_without_a_home(pyz: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = program("/usr/bin/python3")
    if python not in interpreters():
        pytest.skip("needs a Python from 3.10 on that all may run")
    with TemporaryDirectory() as folder:
        copy = shutil.copy(pyz, folder)
        Path(folder).chmod(0o555)
        assert "NV2" in ran([python, copy, "topo", "--from", "dgx-1-v100"], NOBODY)
        assert main(["list"]) == 0
        assert ran([python, copy, "list"], NOBODY) == capsys.readouterr().out
        assert os.listdir(folder) == [pyz.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_the_steps_of_the_image_run(pyz: Path) -> None:
    """All of the Containerfile on the Python that is here in place of its base, on a host without a GPU."""
    if program("/usr/bin/python3") not in interpreters():
        pytest.skip("needs a Python from 3.10 on that all may run")
    text = (ROOT / "dgxcheck" / "integrations" / "Containerfile").read_text(encoding="utf-8")
    steps = dict(line.split(" ", 1) for line in text.splitlines() if line[:1].isalpha())
    assert list(steps) == ["ARG", "FROM", "COPY", "ENV", "USER", "ENTRYPOINT", "CMD"]
    mode, source, target = re.findall(r"--chmod=(\d+) (\S+) /(\S+)", steps["COPY"])[0]
    with TemporaryDirectory() as folder:
        root, place = Path(folder), Path(folder, target)
        root.chmod(0o755)
        for made in (place.parent, root / "host/sys/bus/pci/devices", root / "host/proc/sys/kernel", root / "host/dev"):
            made.mkdir(parents=True)
        shutil.copy(pyz.with_name(source), place)
        place.chmod(int(mode, 8))
        words = [str(place), *json.loads(steps["CMD"])]
        assert json.loads(steps["ENTRYPOINT"]) == [f"/{target}"]
        words = [str(root / "host") if word == "/host" else word for word in words]
        given = {"PATH": "/usr/bin:/bin", **dict(word.split("=", 1) for word in shlex.split(steps["ENV"]))}
        done = subprocess.run(words, cwd="/", env=given, user=int(steps["USER"].partition(":")[0]), capture_output=True,
                              text=True, timeout=60, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("UNKNOWN  ")


def test_an_older_python_is_told_what_is_needed(pyz: Path) -> None:
    text = zipfile.ZipFile(pyz).read("__main__.py").decode("ascii")
    ast.parse(text, feature_version=(3, 4))
    code = f"import sys, runpy; sys.version_info = (3, 8, 0); runpy.run_path({str(pyz)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(r"dgxcheck: needs Python 3\.10 or newer, and /.+ is 3\.8; .*\n", done.stderr)


def test_all_dependencies_but_the_compiled_one_are_in_it(pyz: Path) -> None:
    declared = load_toml(str(ROOT / "pyproject.toml"))["project"]["dependencies"]
    names = {re.split(r"[><=; ]", each)[0] for each in declared}
    assert names - {"psutil"} == {*LIBRARIES}
    blocks = re.findall(
        r"^([a-z-]+)==\S+ +\\\n( +--hash=sha256:\w+)", pinned((ROOT / "requirements-dev.txt").read_text()), re.M
    )
    assert {name for name, _ in blocks} == {*LIBRARIES}
    inside = zipfile.ZipFile(pyz).namelist()
    tops = {name.partition("/")[0] for name in inside}
    assert {"__main__.py", "dgxcheck", "probes", "click", "rich", "pyudev", "tomli", "pynvml.py"} <= tops
    assert not [name for name in inside if name.endswith((".so", ".pyc"))]


def test_both_are_the_same_bytes_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program("dpkg-deb")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    before = os.umask(0o022)
    built = []
    try:
        for zone, mask, order in (("UTC", 0o022, 1), ("Asia/Tokyo", 0o077, -1)):
            monkeypatch.setenv("TZ", zone)
            os.umask(mask)
            folder = tmp_path / str(mask)
            folder.mkdir()
            modules = dict(list(MODULES.items())[::order])
            package = deb(modules, dict(list(SHARED.items())[::order]), ROOT, "1.0", folder)
            built.append((single_file(modules, int(EPOCH)), package.read_bytes()))
    finally:
        os.umask(before)
    assert built[0] == built[1]


@pytest.fixture(scope="module")
def unpacked(out: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpack = program("dpkg-deb")
    (package,) = out.glob("*.deb")
    folder = tmp_path_factory.mktemp("deb")
    subprocess.run([unpack, "-R", str(package), str(folder)], check=True)
    return folder


def test_the_package_runs_from_where_it_lies(unpacked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["topo", "--from", "dgx-2"])
    script = (unpacked / "usr/bin/dgxcheck").read_text(encoding="ascii")
    assert script.startswith("#!/usr/bin/python3 -I\n")
    moved = unpacked / "moved"
    moved.write_text(script.replace("/usr/lib/dgxcheck", f"{unpacked}/usr/lib/dgxcheck"), encoding="ascii")
    assert ran([sys.executable, "-I", str(moved), "topo", "--from", "dgx-2"]) == capsys.readouterr().out


def test_the_package_has_everything_in_its_place(unpacked: Path) -> None:
    control = dict(re.findall(r"^([A-Z]\S+): (.*)$", (unpacked / "DEBIAN/control").read_text(), re.MULTILINE))
    assert (control["Package"], control["Architecture"], control["Depends"]) == ("dgxcheck", "all", "python3 (>= 3.10)")
    share = unpacked / "usr/share"
    pages = {f"{path.name}.gz" for path in (ROOT / "man").glob("*.[1-9]")}
    assert pages == {path.name for path in share.glob("man/*/*")}
    assert (share / "bash-completion/completions/dgxcheck").is_file()
    assert (share / "zsh/vendor-completions/_dgxcheck").is_file()
    assert (share / "fish/vendor_completions.d/dgxcheck.fish").is_file()
    assert os.access(unpacked / "usr/lib/dgxcheck/dgxcheck/integrations/slurm-healthcheck.sh", os.X_OK)
    assert "rich-" in (share / "doc/dgxcheck/copyright").read_text(encoding="utf-8")
    units = {path.name: path.read_text(encoding="utf-8") for path in (unpacked / "usr/lib/systemd/system").iterdir()}
    assert {"dgxcheck-watch.service", "dgxcheck-textfile.service", "dgxcheck-textfile.timer"} <= units.keys()
    assert all("/usr/local/bin/dgxcheck" not in text for text in units.values())


@pytest.mark.parametrize("script", ["postinst", "prerm"])
def test_its_scripts_are_posix_shell(script: str, unpacked: Path) -> None:
    path = unpacked / "DEBIAN" / script
    assert os.access(path, os.X_OK)
    subprocess.run([program("sh"), "-n", str(path)], check=True)
