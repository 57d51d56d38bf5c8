"""The restrictions of a systemd unit, set up by hand: a machine that tests run on may have no systemd as init.

Of the unit: capabilities, system calls, address families, no new privileges, a read-only system with private /tmp and
no /home. Its limits of memory and tasks are the cgroup's and left out.
"""

from __future__ import annotations

import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from checkout import ROOT
from programs import program

UNIT = ROOT / "dgxcheck/integrations/dgxcheck-textfile.service"
NUMBERS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
HIDDEN = ("/tmp", "/home")
"""Places that the unit sees empty: PrivateTmp=, ProtectHome=."""
MOUNTS = """set -e
mount --bind "$1" /mnt; mount -t tmpfs tmpfs /tmp; mkdir -p "$1"; mount --bind /mnt "$1"; umount /mnt
for place in out state run box/tree/dev; do [ ! -e "$1/$place" ] || mount --bind "$1/$place" "$1/$place"; done
mount -o remount,bind,ro "$1"
mount -t tmpfs tmpfs /home
mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys
mount -o remount,bind,ro /
cd /
shift
exec "$@"
"""
"""``$1``: the folder of the test. What the unit may write to stays writable, and ``/dev`` of the box, as /dev does."""
FILTERED = """
import ctypes, os, struct, sys
program = open(sys.argv[1], "rb").read()
libc = ctypes.CDLL(None, use_errno=True)
kept = ctypes.create_string_buffer(program, len(program))
fprog = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(kept))
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, fprog, 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
os.execv(sys.argv[2], sys.argv[2:])
"""
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
_ALLOW, _EPERM, _EAFNOSUPPORT = 0x7FFF0000, 0x00050001, 0x00050061
_NUMBER, _FIRST_ARGUMENT, _SOCKET, _AF_UNIX = 0, 16, 41, 1  # offsets in struct seccomp_data


def setting(name: str) -> list[str]:
    """The words of a setting of the unit, of all its lines."""
    return [word for line in re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE) for word in line.split()]


def filter_program() -> bytes:
    """SystemCallFilter= and RestrictAddressFamilies= as a program for seccomp(2)."""
    allowed: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(), re.MULTILINE):
        calls = {call for group in line.removeprefix("~").split() for call in _calls(group)}
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    assert setting("RestrictAddressFamilies") == ["AF_UNIX"]
    steps = [_step(_LOAD, _NUMBER), _step(_EQUAL, _SOCKET, 0, 4)]
    steps += [_step(_LOAD, _FIRST_ARGUMENT), _step(_EQUAL, _AF_UNIX, 0, 1), _step(_RETURN, _ALLOW)]
    steps += [_step(_RETURN, _EAFNOSUPPORT)]
    numbers = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", NUMBERS.read_text()))
    for call in sorted(allowed & numbers.keys()):
        steps += [_step(_EQUAL, int(numbers[call]), 0, 1), _step(_RETURN, _ALLOW)]
    return b"".join([*steps, _step(_RETURN, _EPERM)])


def confined(folder: Path, command: Sequence[str], user: int = 0, capabilities: Sequence[str] = ()) -> list[str]:
    """The command under these restrictions; a ``user`` other than root has these capabilities and no others."""
    (folder / "filter").write_bytes(filter_program())
    names = [name.removeprefix("CAP_").lower() for name in capabilities or setting("CapabilityBoundingSet")]
    held = ",".join(("-all", *(f"+{name}" for name in names)))
    as_user = ["--reuid", str(user), "--regid", str(user), "--clear-groups"] if user else []
    given = ["--inh-caps", held, "--ambient-caps", held] if user else []
    launcher = [sys.executable, "-c", FILTERED, str(folder / "filter")]
    return [program("unshare"), "--mount", "sh", "-c", MOUNTS, "sh", str(folder), program("setpriv"),
            "--bounding-set", held, *given, *as_user, "--no-new-privs", *launcher, *command]  # fmt: skip


def command_of_unit() -> list[str]:
    """What the unit starts, without the program and the place of the metrics."""
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)
    words = shlex.split(line)
    assert words[-2] == "-o"
    return words[1:-2]


def _calls(group: str) -> set[str]:
    if not group.startswith("@"):
        return {group}
    done = subprocess.run((program("systemd-analyze"), "syscall-filter", group), capture_output=True, text=True,
                          check=True)  # fmt: skip
    names = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ") and "#" not in line]
    return {call for name in names for call in _calls(name)}


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
