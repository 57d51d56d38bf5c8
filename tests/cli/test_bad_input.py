"""Bad input: one clear line on stderr, exit code 3, nothing on stdout, nothing half written."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from seam import HEAD, is_one_clear_line, run, save
from together import for_each

from dgxcheck.cli import COMMANDS
from dgxcheck.source.recording.load import SCHEMA

INSTALLED = str(Path(sys.executable).with_name("dgxcheck"))
BOX = "dgx-station-v100"
GOOD = json.dumps(HEAD | {"schema": SCHEMA, "facts": {}})
NOT_READING = ("recordings", "schema", "import", "xid", "fleet", "fabric", "bind", "watch", "integrate")
READING = tuple(name for name in COMMANDS if name not in NOT_READING)
NOBODY = 65534


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line with which a command line is refused."""
    done = run(capsys, *argv)
    assert (done.code, done.out) == (3, ""), done
    assert is_one_clear_line(done.err), done.err
    return done.err


def installed(*argv: str, **more: object) -> subprocess.CompletedProcess[str]:
    """The installed command, in a process of its own."""
    if not os.path.exists(INSTALLED):
        pytest.skip("dgxcheck is not installed beside this Python")
    return subprocess.run([INSTALLED, *argv], capture_output=True, text=True, check=False, timeout=60)


def put(folder: Path, raw: bytes | str) -> str:
    (folder / "box.json").write_bytes(raw.encode() if isinstance(raw, str) else raw)
    return str(folder / "box.json")


def bomb() -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(80)) + packer.flush()


FILES: dict[str, tuple[bytes | str, str]] = {
    "empty": ("", "empty"),
    "wrong schema": ('{"schema": "dgxcheck/recording/7"}', "unknown schema 'dgxcheck/recording/7'"),
    "another tool's JSON": ('{"level": "warn"}', "no output of a known tool"),
    "lines of JSON": ('{"a": 1}\n{"a": 2}\n', "not a recording"),
    "truncated": (GOOD[: len(GOOD) // 2], "incomplete or damaged recording"),
    "nested": ("[" * 100_000, "nested too deeply"),
    "duplicate keys": ('{"a": 1, "a": 2}', "duplicate key 'a'"),
    "NaN": ('{"a": NaN}', "NaN is not a valid JSON number"),
    "Infinity": ('{"a": Infinity}', "Infinity is not a valid JSON number"),
    "1e999": ('{"a": 1e999}', "1e999 is too large"),
    "5000 digits": (f'{{"a": {"7" * 5000}}}', "number with 5000 digits"),
    "lone surrogate": ('{"a": "\\ud800"}', "unpaired surrogate"),
    "gzip bomb": (bomb(), "decompresses to more than 64 MiB"),
    "cut gzip": (gzip.compress(GOOD.encode())[:-5], "gzip data is truncated"),
    "escapes in keys": ('{"\\u001b[2J\\n\\u009b": 1, "\\u001b[2J\\n\\u009b": 2}', "duplicate key"),
    "escapes in the schema": ('{"schema": "\\u001b]0;owned\\u0007\\n\\u202e"}', "unknown schema"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, due = FILES[case]
    path = put(tmp_path, raw)
    assert due in refused(capsys, "topo", "-m", "--from", path)


@pytest.mark.parametrize("command", READING)
def test_every_command_refuses_it(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = {"record": [str(tmp_path / "out.json")], "profiles": ["--new", "x"]}.get(command, [])
    bad = put(tmp_path, "{")
    argv = ["diff", "dgx-1-v100", bad] if command == "diff" else [command, *more, "--from", bad]
    assert "incomplete or damaged recording" in refused(capsys, *argv)
    assert os.listdir(tmp_path) == ["box.json"]


def test_one_gigabyte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "{")
    os.truncate(path, 1 << 30)
    assert "larger than 64 MiB" in refused(capsys, "topo", "--from", path)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("dgx-1-v10", "dgx-1-v100"), ("DGX-1-V100", "dgx-1-v100"), ("dgx-1-v100.json", "dgx-1-v100"), ("k80", "k80-x8"),
        ("dgx1-p100", "dgx-1-p100"), ("dgx-a10", "dgx-a100"), ("station", "dgx-station-v100"), ("qqqq", "recordings"),
        ("nowhere/dgx-1-v10", "dgx-1-v100"),
    ],
)  # fmt: skip
def test_an_unknown_recording_names_the_near_ones(name: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "topo", "--from", name)
    assert "no such recording, file or directory" in said
    assert near in said.partition("directory;")[2]


def test_from_nothing_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--from '': give a recording, a file or a directory" in refused(capsys, "topo", "--from", "")


def test_a_directory_without_sys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{tmp_path}: contains no sys/ directory" in refused(capsys, "topo", "--from", str(tmp_path))


def test_what_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in refused(capsys, "topo", "--from", str(tmp_path / "fifo"))
    assert "not a regular file" in refused(capsys, "topo", "--from", "/dev/null")


def test_an_unreadable_file(tmp_path: Path) -> None:
    """As another user where this is root, who may read everything."""
    path = put(tmp_path, GOOD)
    os.chmod(path, 0)
    os.mkfifo(tmp_path / "fifo")
    program = (
        "import contextlib, os, sys\n"
        "import dgxcheck.cli\n"
        "os.chdir(os.path.dirname(sys.argv[1]))\n"
        # imports what is needed: the other user may have no way to a clone below root's home
        "with open(os.devnull, 'w') as none, contextlib.redirect_stderr(none):\n"
        "    dgxcheck.cli.main(['topo', '--from', 'fifo'])\n"
        f"if os.geteuid() == 0: os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "sys.exit(dgxcheck.cli.main(['topo', '--from', 'box.json']))"
    )
    tmp_path.chmod(0o755)
    argv = [sys.executable, "-c", program, path]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert "box.json: cannot be read: Permission denied" in done.stderr
    assert is_one_clear_line(done.stderr)


@for_each(
    ("argv", "due"),
    [
        (("-p", "-i", "0,9"), "no GPU '9'; give the index, name, bus id or UUID of one of GPU0 (0000:07:00.0), GPU1"),
        (("-p", "-i", "0000:99:00.0,1"), "no GPU '0000:99:00.0';"),
        (("-C", "-i", "GPU-00000000-0000-0000-0000-000000000000"), "no GPU 'GPU-0"),
        (("-C", "-i", "9" * 5000), "no GPU '999"),
        (("-C", "-i", "-1"), "no GPU '-1';"),
        (("-C", "-i", ","), "no GPU '';"),
        (("-C", "-i", "\x1b[31m0\n"), "no GPU"),
        (("-p", "-i", "0"), "-p takes two GPUs: -i ID,ID, not -i 0"),
        (("-p", "-i", "0,1,2"), "-p takes two GPUs"),
        (("-p", "-i", "0,0"), "-p takes two GPUs, not GPU0 twice"),
        (("-p", "-i", "0,GPU0"), "not GPU0 twice"),
        (("-p", "-i", "0,00000000:07:00.0"), "not GPU0 twice"),
        (("-p",), "-p needs -i ID,ID"),
        (("-n", "1"), "-n needs -i ID"),
        (("-n", "1", "-i", "0,1"), "-n takes one GPU"),
        (("-n", "9", "-i", "0"), "9"),
        (("-C",), "-C needs -i ID"),
        (("-i", "0"), "-i is valid only with"),
        (("-m", "-i", "0"), "-i is valid only with"),
        (("-m", "-mp"), "-m and -mp cannot be combined"),
        (("-m", "--tree", "--rings"), "-m and --tree and --rings cannot be combined"),
        (("--tree", "-p2p", "r"), "cannot be combined"),
        (("--tree", "--format", "nvidia-smi"), "--format nvidia-smi is valid only with"),
        (("--path", "0"), "--path"),
        (("--path", "GPU0", "mlx5_9"), "no device 'mlx5_9';"),
        (("--path", "GPU0", "0"), "twice"),
        (("--path", "GPU0", "-m"), "--path takes two devices"),
        (("--path", "GPU0", "--format", "json"), "--path takes two devices"),
        (("-p2p", "x"), "'x'"),
        (("-c", "x"), "'x'"),
        (("-c", "-1"), "-1"),
        (("--deadline", "0"), "0"),
        (("--deadline", "nan"), "nan is not a time"),
        (("--deadline", "inf"), "inf"),
        (("--format", "yaml"), "yaml"),
        (("--labels", "qpi"), "qpi"),
        (("--color", "green"), "green"),
        (("--tre",), "--tree"),
        (("--bogus",), "--bogus"),
        (("surplus",), "surplus"),
        (("--from",), "--from"),
        (("\x1b[2J",), "\N{REPLACEMENT CHARACTER}[2J"),
        (("--\x1b]0;x\x07",), "no option --"),
        (("--formt", "json"), "no option --formt; did you mean --format?"),
        (("--format", "yaml"), "invalid value for '--format': 'yaml'"),
        (("--labels", "sys", "--format", "json"), "--labels is valid only for the text of"),
        (("--labels", "sys", "--tree"), "--labels is valid only for the text of"),
    ],
)
def test_bad_options_of_topo(argv: tuple[str, ...], due: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert due in refused(capsys, "topo", "--from", BOX, *argv)


@pytest.mark.parametrize(
    ("argv", "due"),
    [
        (("tpoo",), "no command 'tpoo'; did you mean topo?"),
        (("recordngs",), "did you mean recordings?"),
        (("xyzzy",), "valid commands: topo, health, watch"),
        (("\x1b[2Jtopo\n",), "no command"),
        (("--fromm",), "--fromm"),
        (("schema", "nothing"), "nothing: no such schema; valid names: diff, fabric, fleet"),
        (("schema",), "NAME"),
        (("record",), "FILE"),
        (("list", "--format", "nvidia-smi"), "nvidia-smi"),
        (("record", "x.json", "--from", BOX, "--window", "nan"), "nan is not a time"),
        (("record", "x.json", "--from", BOX, "--window", "0"), "0"),
    ],
)
def test_bad_command_lines(
    argv: tuple[str, ...], due: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert due in refused(capsys, *argv)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("argv", [("topo", "--from", BOX, "-o"), ("list", "--from", BOX, "-o"), ("recordings", "-o"),
                                  ("schema", "topo", "-o"), ("record", "--from", BOX)])  # fmt: skip
def test_an_unwritable_place(argv: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("old")
    assert "directory" in refused(capsys, *argv, str(tmp_path))
    assert "cannot be written: No such file or directory" in refused(capsys, *argv, str(tmp_path / "none/out"))
    assert "cannot be written: Not a directory" in refused(capsys, *argv, str(tmp_path / "file/out"))
    assert "cannot be written: File name too long" in refused(capsys, *argv, str(tmp_path / ("x" * 300)))
    assert "\N{REPLACEMENT CHARACTER}[2J" in refused(capsys, *argv, str(tmp_path / "none/\x1b[2J\n"))
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_record_finds_out_before_its_window_that_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tree is not even looked at."""
    argv = ("record", str(tmp_path / "none/out.json"), "--from", str(tmp_path / "no-tree"), "--window", "86400")
    assert "cannot be written: No such file or directory" in refused(capsys, *argv)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk."""
    target = tmp_path / "box.json"
    target.write_text("old")
    program = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "from dgxcheck.cli import main\n"
        "sys.exit(main(['record', sys.argv[1], '--from', sys.argv[2]]))"
    )
    argv = [sys.executable, "-B", "-c", program, str(target), BOX]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    assert "cannot be written: File too large" in done.stderr
    assert is_one_clear_line(done.stderr)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["box.json"]


@pytest.mark.parametrize("name", ["\x1b[31mred.json", "a\nb.json", "\u202eevil.json", "caf\u00e9.json", "\udcff.json"])
def test_names_of_files_reach_no_terminal_as_they_are(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / name)
    done = run(capsys, "record", target, "--from", BOX)
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert all(char.isprintable() for char in done.err.replace("\n", "").replace("\N{REPLACEMENT CHARACTER}", ""))
    assert run(capsys, "topo", "--from", target).code == 0
    os.unlink(target)
    assert "no such recording" in refused(capsys, "list", "--from", target)


def test_a_recording_of_nothing_is_shown_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(save(tmp_path / "box.json", {}))
    for argv in (("topo", "-m"), ("topo", "--tree"), ("topo", "--rings"), ("topo", "--format", "json"), ("list",)):
        done = run(capsys, *argv, "--from", path)
        assert done.code in (0, 3)
        assert done.out
        assert done.err == ""


@pytest.mark.parametrize("argv", [("-m",), ("-mp",)])
def test_a_pci_tree_that_cannot_be_read_makes_the_answer_incomplete(
    argv: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "box.json", {"/sys/bus/pci/devices": {"names": {"missing": "denied"}}})
    assert run(capsys, "topo", *argv, "--from", str(path)).code == 3


@pytest.mark.parametrize(
    ("argv", "due"),
    [
        (("topo", "--from", "dgx-1-v10"), "did you mean dgx-1-v100"),
        (("topo", "--from", "dgx1"), "did you mean dgx-1-p100 or dgx-1-v100 or "),
        (("health", "--profile", "DGXA100", "--from", BOX), "did you mean dgx-a100 or dgx-a100-80?"),
        (("xid", "seventy"), "'NUMBER': 'seventy' is not a valid number"),
        (("topo", "-p", "-i", "0", "--from", BOX), "-p takes two GPUs"),
        (("tpoo",), "did you mean topo?"),
        (("topo", "--from", "/dev/null"), "not a regular file"),
        (("topo", "--from", BOX, "-o", "/nowhere/x"), "cannot be written"),
        (("list", "--from", BOX, "--bogus"), "--bogus"),
    ],
)
def test_the_installed_command(argv: tuple[str, ...], due: str) -> None:
    done = installed(*argv)
    assert (done.returncode, done.stdout) == (3, "")
    assert is_one_clear_line(done.stderr)
    assert due in done.stderr


def test_the_installed_command_and_a_nested_file(tmp_path: Path) -> None:
    done = installed("topo", "--from", put(tmp_path, '{"a":' * 100_000))
    assert (done.returncode, done.stdout) == (3, "")
    assert is_one_clear_line(done.stderr)


@pytest.mark.parametrize("color", ["never", "always"])
def test_stdout_that_takes_nothing_is_one_line(color: str) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    shell = shutil.which("sh") or "sh"
    line = f"exec '{INSTALLED}' topo --from {BOX} --color {color} > /dev/full"
    done = subprocess.run([shell, "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    assert is_one_clear_line(done.stderr)
    assert "stdout: cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("color", ["never", "always"])
def test_a_terminal_that_is_not_utf8_gets_the_tree(color: str) -> None:
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    argv = [INSTALLED, "topo", "--tree", "--from", BOX, "--color", color]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\n|- 0000:" in done.stdout
    assert "\n`- 0000:" in done.stdout


@pytest.mark.parametrize("color", ["never", "always"])
def test_a_reader_that_goes_is_no_error_to_speak_of(color: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    argv = [INSTALLED, "topo", "--from", BOX, "--color", color]
    done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (3, "")
