"""Locked memory: of this process, of the daemons that start jobs, and the lines of configuration that set it."""

from __future__ import annotations

import pytest
from fake_source import FakeSource
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.host import JobDaemon, MemlockLimit, Setting
from dgxcheck.facts.missing import Gap, Missing
from probes.host.software import DAEMONS, max_locked_memory, memlock, of_pam, of_systemd

HEAD = "Limit                     Soft Limit           Hard Limit           Units     \n"
GROUP = "/sys/fs/cgroup/system.slice"
LOW = MemlockLimit(soft=65536, hard=65536)


def limits(soft: str, hard: str) -> str:
    return f"{HEAD}Max open files            1024  4096  files\nMax locked memory         {soft:21}{hard:21}bytes\n"


Files = dict[str, "str | bytes | Missing"]


def daemon(pid: int, name: str, soft: str = "65536", hard: str = "65536") -> Files:
    return {f"/proc/{pid}/comm": f"{name}\n", f"/proc/{pid}/limits": limits(soft, hard)}


@pytest.mark.parametrize(
    ("soft", "hard", "due"),
    [
        ("8388608", "8388608", MemlockLimit(soft=8388608, hard=8388608)),
        ("65536", "unlimited", MemlockLimit(soft=65536, hard=None)),
        ("unlimited", "unlimited", MemlockLimit(soft=None, hard=None)),
    ],
)
def test_limits(soft: str, hard: str, due: MemlockLimit) -> None:
    assert max_locked_memory(limits(soft, hard), "x") == due


@pytest.mark.parametrize(
    "text", ["", HEAD, "Max locked memory", "Max locked memory 1 2", "Max locked memory 1 2 pages"]
)
def test_no_such_line_is_garbled(text: str) -> None:
    got = max_locked_memory(text, "x")
    assert isinstance(got, Missing)
    assert got.gap is Gap.GARBLED


@given(st.text())
def test_anything(text: str) -> None:
    for given_text in (text, f"Max locked memory {text}"):
        got = max_locked_memory(given_text, "x")
        assert isinstance(got, MemlockLimit | Missing)
        if isinstance(got, MemlockLimit):
            assert all(each is None or isinstance(each, Missing) or each >= 0 for each in (got.soft, got.hard))


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("* soft memlock 64", (65536,)),
        ("  @hpc - memlock unlimited # for RDMA", (None,)),
        ("root\thard\tmemlock\t-1", (None,)),
        ("* hard memlock infinity", (None,)),
        ("* hard memlock", None),
        ("* hard memlock -2", None),
        ("* hard memlock 6_4", None),
        ("* both memlock 64", None),
        ("* hard nofile 64", None),
        ("#* hard memlock 64", None),
        ("", None),
    ],
)
def test_lines_of_limits_conf(line: str, due: object) -> None:
    assert of_pam(line) == due


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("LimitMEMLOCK=infinity", (None,)),
        ("LimitMEMLOCK=65536", (65536,)),
        ("DefaultLimitMEMLOCK = 8M", (8 << 20,)),
        ("LimitMEMLOCK=64K:infinity", (65536, None)),
        ("LimitMEMLOCK=1G\r", (1 << 30,)),
        ("#DefaultLimitMEMLOCK=8M", None),
        ("LimitMEMLOCK=", None),
        ("LimitMEMLOCK=lots", None),
        ("LimitMEMLOCKSoft=1", None),
    ],
)
def test_lines_of_systemd(line: str, due: object) -> None:
    assert of_systemd(line) == due


@given(st.text(), st.text())
def test_any_line_sets_a_limit_or_nothing(first: str, second: str) -> None:
    for line in (first, f"* hard memlock {first}", f"{first} - memlock {second}", f"LimitMEMLOCK={first}:{second}"):
        for found in (of_pam(line), of_systemd(line)):
            assert found is None or (found and all(each is None or each >= 0 for each in found))


@pytest.mark.parametrize(
    "files",
    [
        {
            f"{GROUP}/slurmd.service/cgroup.procs": "77\n12\n",
            **daemon(77, "slurmstepd", "1", "1"),
            **daemon(12, "slurmd"),
        },
        {"/sys/fs/cgroup/systemd/system.slice/slurmd.service/cgroup.procs": "12\n", **daemon(12, "slurmd")},
        {"/run/slurmd.pid": "12", f"{GROUP}/slurmd.service/cgroup.procs": "", **daemon(12, "slurmd")},
    ],
)
def test_a_daemon_is_known_by_its_control_group_or_its_pid_file(files: Files) -> None:
    assert memlock(FakeSource(files)).daemons == (JobDaemon(name="slurmd", unit="slurmd.service", limit=LOW),)


def test_a_pid_that_another_process_has_by_now_is_no_daemon() -> None:
    files: Files = {"/run/slurmd.pid": "12\n", **daemon(12, "bash")}
    assert memlock(FakeSource(files)).daemons == ()


def test_a_daemon_whose_limits_are_hidden_is_one_all_the_same() -> None:
    hidden = Missing(Gap.DENIED, "/proc/12/limits")
    files: Files = {"/run/slurmd.pid": "12\n", "/proc/12/comm": "slurmd\n", "/proc/12/limits": hidden}
    assert memlock(FakeSource(files)).daemons == (JobDaemon(name="slurmd", unit="slurmd.service", limit=hidden),)


def test_the_lines_that_set_it_are_found_in_the_order_in_which_they_are_read() -> None:
    files: Files = {
        "/etc/security/limits.conf": "# x\n* soft memlock 64\n",
        "/etc/security/limits.d/10-a.conf": "* hard memlock unlimited",
        "/etc/security/limits.d/10-a.conf.rpmsave": "* hard memlock 1",
        "/etc/security/limits.d/20-b.conf": Missing(Gap.DENIED, "/etc/security/limits.d/20-b.conf"),
        "/etc/systemd/system.conf": "[Manager]\nDefaultLimitMEMLOCK=8M\n",
        "/etc/systemd/system/slurmd.service.d/limits.conf": "[Service]\n\nLimitMEMLOCK=64K\n",
    }
    of_pam = (
        Setting(path="/etc/security/limits.conf", line=2, text="* soft memlock 64", limits=(65536,)),
        Setting(path="/etc/security/limits.d/10-a.conf", line=1, text="* hard memlock unlimited", limits=(None,)),
    )
    assert memlock(FakeSource(files)).settings == of_pam
    running = FakeSource({**files, "/run/slurmd.pid": "12", **daemon(12, "slurmd")})
    assert [(each.path, each.line, each.limits) for each in memlock(running).settings[2:]] == [
        ("/etc/systemd/system.conf", 2, (8 << 20,)),
        ("/etc/systemd/system/slurmd.service.d/limits.conf", 3, (65536,)),
    ]


@given(st.dictionaries(st.sampled_from((
    "/run/slurmd.pid", f"{GROUP}/pbs.service/cgroup.procs", "/proc/1/comm", "/proc/1/limits", "/proc/self/limits",
    "/etc/security/limits.conf", "/etc/security/limits.d/x.conf", "/etc/systemd/system.conf",
)), st.one_of(st.binary(), st.just(b"1\n"), st.just(b"slurmd"), st.just(b"* - memlock 1\n" * 2000))))  # fmt: skip
def test_hostile_files_end_in_facts_of_a_bounded_size(files: dict[str, bytes]) -> None:
    found = memlock(FakeSource({**files}))
    assert len(found.daemons) <= len(DAEMONS)
    assert len(found.settings) <= 1000
    assert all(len(each.text) <= 200 for each in found.settings)
