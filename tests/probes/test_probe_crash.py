"""Panics, oopses, hung tasks, memory that ran out and crashes: text to event, through the filter of what is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import Missing
from dgxcheck.kernel_messages import host
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes.kernel_log import facts

HUNG = "INFO: task kworker/3:2:471 blocked for more than 120 seconds."
LOCKUP = "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [rsync:812]"
OOPS = "BUG: unable to handle page fault for address: ffffb0c1"
TAIL = "Oops: 0002 [#1] PREEMPT SMP NOPTI"
CRASH = "python3[42]: segfault at 0 ip 00007f01 sp 00007ffe error 4 in libnccl.so.2.21.5[7f00+1000]"
TRAP = "traps: trainer[42] general protection fault ip:7f01 sp:7ffe error:0 in libcuda.so.550.54.14[7f00+1000]"
Seen = tuple[str, str, str]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["Kernel panic - not syncing: Fatal exception in interrupt"], [("panic", "Fatal exception in interrupt", "")]),
        (["Kernel panic - not syncing: Fatal machine check on current CPU"],
         [("panic", "Fatal machine check on current CPU", "hardware")]),
        (["Kernel panic - not syncing: Fatal hardware error!"], [("panic", "Fatal hardware error!", "hardware")]),
        ([OOPS, TAIL, "RIP: 0010:nv_open+0x1c/0x60 [nvidia]"], [("oops", "", "nvidia")]),
        ([OOPS, TAIL, "RIP: 0010:ll_read+0x1c/0x60 [lustre]"], [("oops", "", "lustre")]),
        (["Unable to handle kernel paging request at virtual address 0010",
          "Internal error: Oops: 96000004 [#1] SMP", "pc : nv_open+0x1c/0x60 [nvidia]"], [("oops", "", "nvidia")]),
        (["general protection fault: 0000 [#1] SMP PTI"], [("oops", "", "")]),
        (["kernel BUG at mm/slub.c:4023!"], [("oops", "", "")]),
        ([HUNG], [("hung", "kworker/3:2", "")]),
        ([HUNG, " nv_open+0x30/0x40 [nvidia]"], []),
        ([LOCKUP], [("hung", "rsync", "")]),
        (["BUG: soft lockup - CPU#1 stuck for 67s! [cat:9]"], [("hung", "cat", "")]),
        (["rcu: INFO: rcu_sched self-detected stall on CPU"], [("hung", "", "")]),
        (["NMI: PCI system error (SERR) for reason b1 on CPU 0."],
         [("machine check", "PCI system error (SERR)", "")]),
        (["Out of memory: Killed process 4711 (nv-hostengine) total-vm:1kB, anon-rss:1kB"],
         [("out of memory", "nv-hostengine", "")]),
        (["Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB"],
         [("out of memory", "python3", "cgroup")]),
        (["Out of memory: Kill process 4711 (python3) score 50 or sacrifice child"],
         [("out of memory", "python3", "")]),
        ([CRASH], [("crashed", "python3", "libnccl.so.2.21.5")]),
        ([CRASH.replace("libnccl.so.2.21.5", "libpython3.10.so")], []),
        ([CRASH.replace("libnccl.so.2.21.5", "nv-hostengine")], [("crashed", "python3", "nv-hostengine")]),
        ([TRAP], [("crashed", "trainer", "libcuda.so.550.54.14")]),
        (["NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.", "BUG: a program says so",
          "Oops: no oops at all", "rcu: INFO: all is well", "oom_reaper: reaped process 471 (python3)"], []),
    ],
)  # fmt: skip
def test_each_event(messages: list[str], expected: list[Seen]) -> None:
    rows = (f"[{60 + number / 1000:12.6f}] {message}" for number, message in enumerate(messages))
    log = times("\n".join(("[    0.000000] Linux version 6.8.0", *rows)))
    assert log is not None
    found = facts(relevant_lines(log), "here")
    assert not isinstance(found, Missing)
    assert [(each.trouble, each.part, each.group) for each in found.host if each.trouble != "stuck"] == expected


@pytest.mark.parametrize(
    "name",
    ["Oops: 0002 [#1]", "kernel BUG at x", "Kernel panic - ", "Out of memory: ", "rcu: INFO: rcu_", "Internal error:"],
)
def test_the_name_of_a_program_is_no_such_event(name: str) -> None:
    """The kernel begins the record of a crash with 15 bytes that any user chooses."""
    message = f"{name}[471]: segfault at 0 ip 0000 sp 0000 error 4 in x.c:1! [#1] SMP[0+1000]"
    log = times(f"[    0.000000] Linux version 6.8.0\n[   60.000001] {message}")
    assert log is not None
    found = facts(relevant_lines(log), "here")
    assert not isinstance(found, Missing)
    assert found.host == ()


@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from([HUNG, LOCKUP, OOPS, TAIL, CRASH])), max_size=8))
def test_any_text_gives_events_or_none(messages: list[str]) -> None:
    events = host.events([(float(number), message) for number, message in enumerate(messages)])
    assert all(event.line in messages for event in events)
