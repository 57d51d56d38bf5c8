"""However an output was pasted, it reads as the tool printed it, and what belongs to the paste is not left over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

import pytest
from damage import HARMLESS
from hypothesis import example, given
from hypothesis import strategies as st
from lspci_texts import LSPCI
from sample import swept
from smi_texts import LINKS, QUERY, STATION, TABLE
from test_import import P2P
from test_readers_collect_env import PLAIN as ENVIRONMENT
from test_readers_fabric_tools import LINK_JSON
from test_readers_hca_tools import FLINT, STATISTIC, SUMMARY
from test_readers_kernel_log import LOG
from test_readers_load_tools import BURN, FRYER, SOUND
from test_readers_logs import TRAINING
from test_readers_memory import memory, slots
from test_readers_monitors import DCGMI, DMON, METRICS
from test_readers_nccl import TODAY
from test_readers_nccl_log import INFO
from test_readers_nccl_programs import DEAD, JOB
from test_readers_nccl_versions import BOX, written
from test_readers_perftest import CUDA, WRITE
from together import holds_for_each

from dgxcheck.assessment.importing.recording import read
from dgxcheck.assessment.importing.texts import text_of
from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.layout.markdown import without_tables
from dgxcheck.readers.layout.undo import undone

LAYERS = HARMLESS.keys() - {"column", "table of one column", "pane beside it", "pane behind it"}
"""Those that are put around each other; nobody makes a table of what stands in another layout."""
TEXTS = {
    "matrix": STATION, "dump": QUERY, "table": TABLE, "links": LINKS, "figures": P2P, "memory": memory(slots(3)),
    **LSPCI, "nccl": f"{INFO.splitlines()[1].replace('box', 'node7')}\n{written('2.27', BOX)}",
    "perftest": CUDA + "\n".join(line for line in WRITE.splitlines() if "----" not in line), "collective": TODAY,
    "kernel log": LOG, "training": TRAINING.strip(), "dmon": DMON, "dcgmi dmon": DCGMI, "metrics": METRICS,
    "two of eight": QUERY.replace("GPUs                       : 2", "GPUs                       : 8"),
    "links in MIG mode": f"{LINKS}GPU 3: Example\nNvlink queries are not supported for Devices in MIG mode\n",
    "burn": BURN.format(SOUND, "0 - 0 - 0 - 0", "OK"),
    "fryer": "".join(FRYER.format(gpu, 51000, "false", "true") for gpu in range(3)), "ras": JOB.format("DEAD") + DEAD,
    "collect_env": ENVIRONMENT.format("True"), "firmware": FLINT.format("mlx5_0", "28.39.1002", "MT_0000000838"),
    "mlxlink": LINK_JSON, "rdma statistic": STATISTIC.format(1) * 2, "ibdiagnet": SUMMARY.format(1, 0),
}  # fmt: skip


def facts(lines: tuple[str, ...]) -> dict[tuple[str, str], Json]:
    """All facts, without the numbers of the lines that they come from."""
    found = {(part.tool, key): fact for reader in READERS for part in reader(lines) for key, fact in part.facts.items()}
    return {
        key: {name: each for name, each in fact.items() if name != "from"} if isinstance(fact, dict) else fact
        for key, fact in found.items()
    }


@cache
def plain_facts(text: str) -> dict[tuple[str, str], Json]:
    return facts(tuple(TEXTS[text].split("\n")))


@pytest.mark.parametrize("text", swept(TEXTS, 12, first=1))
def test_a_paste_reads_as_the_output(text: str) -> None:
    plain = tuple(TEXTS[text].split("\n"))
    due, alone = plain_facts(text), read([text_of("t", plain)]).unread["t"]

    def reads_the_same(change: str) -> None:
        pasted = tuple(HARMLESS[change](TEXTS[text].split("\n")))
        layout = undone(pasted)
        assert len(layout.lines) == len(pasted)
        assert facts(layout.lines) == due
        around = read([text_of("t", pasted)]).unread["t"]
        assert len(around) == len(alone), [pasted[at] for at in around]

    holds_for_each(HARMLESS, reads_the_same)


@given(st.sampled_from(sorted(TEXTS)), st.lists(st.sampled_from(sorted(LAYERS)), max_size=3, unique=True))
@example("memory", ["indent", "colour"])
@example("memory", ["indent", "container"])
@example("mlxlink", ["indent", "CRLF", "compose"])
@example("mlxlink", ["indent", "journal"])
@example("collective", ["indent", "wrapper"])
@example("LnkSta alone", ["editor", "escapes"])
@example("burn", ["colour", "file of a container"])
def test_several_layers(text: str, changes: list[str]) -> None:
    if text == "kernel log" and any(change.startswith("journal") for change in changes):
        return  # rows of syslog are less than those of the kernel, and say so
    if "CRLF" in changes[:-1] and "bars" in changes[changes.index("CRLF") :]:
        return  # a terminal that draws borders shows no carriage return within them
    lines = TEXTS[text].split("\n")
    for change in changes:
        lines = HARMLESS[change](lines)
    assert facts(undone(tuple(lines)).lines) == plain_facts(text)


@pytest.mark.parametrize("text", sorted(TEXTS.keys() - {"ras", "firmware", "mlxlink"}))  # rules and prompts
def test_an_output_without_layout_stays_as_it_is(text: str) -> None:
    lines = tuple(TEXTS[text].replace("\x1b[4m", "").replace("\x1b[0m", "").split("\n"))
    layout = undone(lines)
    assert layout.lines == lines
    assert not layout.furniture
    assert not layout.joined
    assert set(layout.hosts) == {""}


@given(st.text())
def test_any_text_keeps_its_lines(text: str) -> None:
    lines = tuple(text.split("\n"))
    layout = undone(lines)
    assert len(layout.lines) == len(layout.hosts) == len(lines)
    named = (*layout.furniture, *layout.joined, *layout.joined.values())
    assert all(0 <= at < len(lines) for at in named)


def test_a_line_of_each_host() -> None:
    """As a run of Node Health Check on a cluster writes it."""
    xid = "[ 3606.832215] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus."
    said = (
        "Healthy",
        f"ERROR: nhc: Health check failed: check_gpu_xid: GPU Xid errors detected: {xid}",
        "ERROR: nhc: Health check failed: check_hw_ib: no port is up",
        "ERROR: No results reported",
    )
    layout = undone(tuple(f"node-{n:03} | {line}" for n, line in enumerate(said)))
    assert layout.hosts == ("node-000", "node-001", "node-002", "node-003")
    assert layout.lines[1] == xid
    among = (*(f"node-{n:03} | Healthy" for n in range(3)), "3 nodes checked")
    assert undone(among).hosts == ("node-000", "node-001", "node-002", "")
    words = (*(f"step{n}: Healthy" for n in range(3)), "3 steps done")
    assert undone(words).lines == words
    table = ("rack1-a | 8 | 90.1", "rack1-b | 8 | 90.2", "rack1-c | 8 | 90.0", "rack1-d | 8 | 90.4")
    assert undone(table).lines == table


def test_few_lines_of_hosts_that_are_named_after_gpus() -> None:
    """``pdsh -w gpu[01-02] nvidia-smi -L``: two GPUs are two lines, and devices have no leading zeros."""
    said = ("GPU 0: Example (UUID: GPU-11111111-2222-3333-4444-555555555555)", "GPU 1: Other (UUID: GPU-2)")
    layout = undone((f"gpu01: {said[0]}", f"gpu02: {said[1]}", ""))
    assert layout.lines == (*said, "")
    assert layout.hosts == ("gpu01", "gpu02", "")
    devices = ("gpu0: 41 C", "gpu1: 44 C")
    assert undone(devices).lines == devices
    for name in ("12", "nvidia-nvswitch3", "mlx5_core", "enp2s0f0", "ens3", "sda1", "ata1.00", "bond0"):
        devices = (f"{name}: 1 of 2", f"{name}: 2 of 2")
        assert undone(devices).lines == devices


@pytest.mark.parametrize("form", ["[pod/{}/main] {}", "{} main {}"])
def test_pods_are_as_different_as_hosts(form: str) -> None:
    said = {"gpu-burn-bcd4f": ("GPU 0: OK", "    GPU 1: FAULTY"), "gpu-burn-ghjkl": ("GPU 0: OK", "GPU 1: OK")}
    lines = tuple(form.format(pod, line) for pod, texts in said.items() for line in texts)
    layout = undone(lines)
    assert layout.lines == tuple(line for texts in said.values() for line in texts)
    assert layout.hosts == tuple(pod for pod, texts in said.items() for _ in texts)
    assert set(undone(lines[:2] * 2).hosts) == {""}
    assert undone(("+ gpu-burn-bcd4f \u203a main", *lines)).lines[1:] == layout.lines


def test_where_stern_begins_and_ends_is_no_output() -> None:
    rows = ("gpu-burn-bcd4f main GPU 0: OK",) * 3
    begin, end = "+ gpu-burn-bcd4f \u203a main", "- default gpu-burn-bcd4f \u203a main"
    layout = undone((begin, *rows[:2], begin, *rows, end))
    assert layout.lines == ("", *("GPU 0: OK",) * 2, "", *("GPU 0: OK",) * 3, "")
    assert layout.furniture == {0, 3, 7}
    alone = undone((begin, "GPU 0: OK", end))
    assert (alone.lines[0], alone.furniture) == (begin, frozenset())


XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
ENTRY = {
    "MESSAGE": "x", "SYSLOG_IDENTIFIER": "check", "_HOSTNAME": "node01", "_TRANSPORT": "syslog", "_PID": "7",
    "__REALTIME_TIMESTAMP": "1714557600000000",
}  # fmt: skip


@pytest.mark.parametrize("fields", [
    {"SYSLOG_IDENTIFIER": f"kernel: {XID} y"}, {"SYSLOG_IDENTIFIER": "kernel", "MESSAGE": XID},
    {"_TRANSPORT": "kernel"}, {"SYSLOG_IDENTIFIER": ["check"]}, {"_HOSTNAME": f"node01 kernel: {XID}"},
    {"_HOSTNAME": {"a": 1}}, {"_PID": f"7]: {XID}"}, {"_PID": 7}, {"SYSLOG_IDENTIFIER": "x" * 61},
    {"MESSAGE": f"x\n{XID}"}, {"MESSAGE": f"[INFO] {XID}"}, {"MESSAGE": f"[pod/a/b] {XID}"},
    {"MESSAGE": "node01 kernel: x"},
], ids=str)  # fmt: skip
def test_a_program_s_entry_does_not_speak_as_the_kernel(fields: Mapping[str, Json]) -> None:
    assert undone((json.dumps(ENTRY),)).lines == ("x",)
    line = json.dumps({**ENTRY, **fields})
    assert undone((line,)).lines == (line,)


@pytest.mark.parametrize("at", ["2024-05-01T10:00:00+00:00", "May  1 10:00:00"])
def test_what_a_program_quotes_stays_behind_its_name(at: str) -> None:
    assert undone((f"{at} h app[7]: [INFO] x",)).lines == ("x",)
    assert undone((f"{at} h app[7]: [INFO] {XID}",)).lines == (f"{at} h app[7]: [INFO] {XID}",)


@pytest.mark.parametrize("rows", [
    ("gpu-count-mismatched root      2024-01-01T00:00:00 node01",) * 3,
    ("gpu-health-xid-fault slurmuser 2024-01-01T00:00:00 node01",) * 3,
    ("gpu-failed-bcd4f root      2024-01-01T00:00:00 node01",) * 3,
    ("REASON               USER      TIMESTAMP           NODELIST",
     *("gpu-failed-bcd4f slurmuser 2024-01-01T00:00:00 node01",) * 3),
    (*("gpu-burn-bcd4f main GPU 0: OK",) * 20, "GPU 0: OK", "gpu-burn-bcd4f main GPU 0: OK"),
])  # fmt: skip
def test_columns_of_a_table_are_no_pods(rows: tuple[str, ...]) -> None:
    """``sinfo -R``: reason, user, time and node."""
    assert undone(rows).lines == rows


def test_the_kernel_keeps_its_times() -> None:
    lines = (
        "Mar  4 05:06:07 node01 kernel: NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.",
        "2026-03-04T05:06:07,123456+00:00 NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.",
        "[ 1234.567890] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.",
    )
    assert undone(lines).lines == lines


def test_rows_that_begin_with_numbers_are_no_numbered_lines() -> None:
    rows = tuple(f"  {n}  701.0  18.0" for n in range(1, 9))
    assert undone(("   D\\D     0      1", *rows)).lines[1:] == rows


def test_bars_of_a_numbered_table_are_the_table_s() -> None:
    table = ("# nvidia-smi", "+------+------+", "| GPU  | Name |", "|   0  | H200 |", "+------+------+")
    for form in ("{:4d}  {}", "{:6d}\t{}", "{:3d} | {}"):
        assert undone(tuple(form.format(n, row) for n, row in enumerate(table, 1))).lines[1:] == undone(table).lines[1:]


@pytest.mark.parametrize("above", ["", "```", "Here is what it said, line by line.", "admin@node01:~$ cat -n log"])
@pytest.mark.parametrize("below", ["", "```", "Thanks in advance for any help with this.", "admin@node01:~$"])
def test_numbered_lines_end_at_what_no_tool_prints(above: str, below: str) -> None:
    said = tuple(f"link {name} is up" for name in ("a", "b", "c", "d", "e"))
    numbered = tuple(f"{n:6d}\t{line}" for n, line in enumerate(said, 1))
    assert undone((above, *numbered, below)).lines[1:6] == said
    assert undone(("   D\\D   up   down", *numbered, below)).lines[1:6] == numbered


def test_tables_in_markdown_are_rows_with_tabs() -> None:
    lines = ["above", "| a | b |", "|---|---|", "| 1 | 2 |", "| 3 | 4 |", "below", "|c|d|", "|:-|-:|", "| 5 | 6 |"]
    assert without_tables(lines) == (["above", "a\tb", "", "1\t2", "3\t4", "below", "c\td", "", "5\t6"], {2, 7})


def test_a_frame_that_a_terminal_broke_is_mended() -> None:
    wrapped = [part for line in TABLE.split("\n") for part in (line[:50], line[50:]) if part]
    layout = undone(tuple(wrapped))
    assert facts(layout.lines) == facts(tuple(TABLE.split("\n")))


@pytest.mark.parametrize("form", [
    lambda host, lines: [f"{host}: {line}" for line in lines],
    lambda host, lines: [f"==== {host} ====", *lines],
    lambda host, lines: ["----------------", host, "----------------", *lines],
    lambda host, lines: [f"[root@{host} ~]# nvidia-smi -q", *lines],
    lambda host, lines: [f"admin@{host}:~$ nvidia-smi -q", *lines],
    lambda host, lines: [f"{host} | CHANGED | rc=0 >>", *lines],
    lambda host, lines: [f"[pod/{host}/main] {line}" for line in lines],
])  # fmt: skip
def test_of_two_hosts_one_is_asked_for(form: object) -> None:
    assert callable(form)
    query = QUERY.split("\n")
    other = [line.replace("Example SXM2", "Other") for line in query]
    text = text_of("t", (*form("node01", query), *form("node02", [*other, "zz=1 yy=2"]), ""))
    with pytest.raises(BadInput, match=r"node01, node02; choose one with --host NAME"):
        read([text])
    for host, name in (("node01", "Example SXM2"), ("node02", "Other")):
        reading = read([text], host=host)
        assert reading.combined.facts["nvml nvmlDeviceGetName 0000:06:00.0"] == name
        assert len(reading.unread["t"]) == (host == "node02")
    with pytest.raises(BadInput, match="--host node03"):
        read([text], host="node03")


SHORT = """\
pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: 0000:00:03.0
pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)
pcieport 0000:00:03.0: AER: Device recovery failed"""
"""Rows of the kernel without their times."""


OF_A_PROGRAM = {"journal", "journal, ISO 8601", "journal, JSON"}
"""What a program logged is not the kernel's."""


@pytest.mark.parametrize("change", sorted(HARMLESS.keys() - OF_A_PROGRAM))
def test_a_short_log_without_times(change: str) -> None:
    lines = undone(tuple(HARMLESS[change](SHORT.split("\n")))).lines
    kept = [str(fact) for (tool, key), fact in facts(lines).items() if tool == "kernel log" and "pcieport" in str(fact)]
    assert [line.partition(";")[2] for line in kept] == SHORT.split("\n")
