"""A recording full of terminal codes and markup: shown with them replaced, obeyed by nothing."""

from __future__ import annotations

import html
import json
import random
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fabrics import Fabric
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from seam import run, save

from dgxcheck.cli.results import formats
from dgxcheck.facts.missing import Json
from dgxcheck.output.plain_text import visible
from dgxcheck.source.recording.keys import GroupedFacts, insert
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource

EVIL = (
    "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]8;;http://x\x1b\\link \x9b2J\x08\x00\x7f\r\n\v\f"
    "\u202eltr\u202c\u2066\u2069\u200b\u200d\ufeff\u2028\u2029\u00ad\u0085 [bold red]markup[/] [link=http://x]y[/link]"
)
MARKUP = "[bold red]markup[/] [link=http://x]y[/link]"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
A, B = "0000:06:00.0", "0000:07:00.0"
PCI = "/sys/bus/pci/devices"
IB = "/sys/class/infiniband"
COMMANDS = (
    ("topo", "-m"), ("topo", "-mp"), ("topo", "--tree"), ("topo", "--rings"), ("topo", "-m", "--format", "nvidia-smi"),
    ("topo", "-m", "--format", "json"), ("topo", "--tree", "--format", "json"), ("topo", "--path", "0", "1"),
    ("topo", "--path", "0", "1", "--format", "json"), ("topo", "-p", "-i", "0,1"), ("topo", "-C", "-i", "0,1"),
    ("topo", "-M", "-i", "0"), ("topo", "-gnid", "-i", "0"), ("topo", "-n", "5", "-i", "0"), ("topo", "-c", "0"),
    ("topo", "-p2p", "r"), ("topo", "-p2p", "n", "--format", "json"), ("list",), ("list", "--format", "json"),
    ("health", "-v"), ("health", "-L"), ("health", "--format", "nagios"),
)  # fmt: skip


def hostile(text: str, *, everywhere: bool = True) -> GroupedFacts:
    """Two GPUs on a bridge and a NIC; whatever is free text says ``text``, and so does all the rest ``everywhere``."""
    gap: Json = {"missing": "lost", "detail": text}
    facts: dict[str, Json] = {
        f"names {PCI}": ["0000:00:02.0", A, B, text],
        f"link {PCI}/0000:00:02.0": "../../../devices/pci0000:00/0000:00:02.0",
        f"link {PCI}/{text}": text,
        f"names {IB}": ["mlx5_0", text],
        f"link {IB}/mlx5_0/device": f"../../../{A}",
        f"link {IB}/{text}/device": f"../../../{text}",
        f"text {IB}/{text}/node_desc": text,
        "names /sys/bus/pci/slots": [text],
        f"text /sys/bus/pci/slots/{text}/address": A[:-2],
        "names /sys/devices/system/node": ["node0", text],
        "text /sys/devices/system/node/node0/cpulist": text,
        "text /proc/sys/kernel/hostname": text,
        "text /proc/cmdline": text,
        "text /etc/dgx-release": f'DGX_SERIAL_NUMBER="{text}"',
        "text /sys/class/dmi/id/product_serial": text,
        "text /sys/class/dmi/id/product_name": text,
        "names /sys/class/net": [text],
        f"text /sys/class/net/{text}/address": text,
        "names /sys/module": ["nvidia", text],
        "text /sys/module/nvidia/version": text,
        "name pci 10de:1db1": text,
        "name pci 15b3:1013": text,
        "nvml nvmlInit": True,
        "nvml nvmlDeviceGetCount": 4,
        "nvml nvmlDeviceGetHandleByIndex 0": A,
        "nvml nvmlDeviceGetHandleByIndex 1": B,
        "nvml nvmlDeviceGetHandleByIndex 2": gap,
        "nvml nvmlDeviceGetHandleByIndex 3": text,
        "nvml nvmlSystemGetDriverVersion": text,
        f"nvml nvmlDeviceGetTopologyCommonAncestor {A} {B}": gap,
    }
    for bdf in (A, B):
        facts |= {
            f"link {PCI}/{bdf}": f"../../../devices/pci0000:00/0000:00:02.0/{bdf}",
            f"text {PCI}/{bdf}/class": "0x030200\n",
            f"text {PCI}/{bdf}/vendor": "0x10de\n",
            f"text {PCI}/{bdf}/device": "0x1db1\n",
            f"text {PCI}/{bdf}/local_cpulist": text,
            f"text {PCI}/{bdf}/numa_node": gap,
            f"text {PCI}/{bdf}/current_link_speed": text,
            f"text {PCI}/{bdf}/max_link_width": gap,
            f"link {PCI}/{bdf}/driver": f"../{text}",
            f"nvml nvmlDeviceGetName {bdf}": text,
            f"nvml nvmlDeviceGetUUID {bdf}": text,
            f"nvml nvmlDeviceGetSerial {bdf}": text,
            f"nvml nvmlDeviceGetVbiosVersion {bdf}": gap,
            f"nvml nvmlDeviceGetNvLinkState {bdf} 0": gap,
            f"nvml nvmlDeviceGetNvLinkState {bdf} 1": 1,
            f"nvml nvmlDeviceGetNvLinkRemotePciInfo {bdf} 1": {"busId": text},
            f"nvml nvmlDeviceGetP2PStatus {A} {B} 0": text,
        }
    if everywhere:
        facts |= {f"text {PCI}/{text}/{name}": text for name in ("class", "vendor", "device", "numa_node")}
        facts |= {f"link {PCI}/{A}": f"../../../devices/{text}/{A}", f"link {IB}/mlx5_0/device": f"../{text}"}
        facts |= {f"names {IB}/{text}/ports": [text], "names /sys/devices/system/node": gap, "nvml nvmlInit": gap}
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return lines


def box(folder: Path, text: str, everywhere: bool) -> str:
    head: dict[str, Json] = {"recorded_at": text, "tool_version": text, "provenance": {"kind": text}}
    return str(save(folder / "box.json", hostile(text, everywhere=everywhere), head=head))


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_nothing_reaches_the_terminal_that_it_would_obey(
    argv: tuple[str, ...], everywhere: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = box(tmp_path, EVIL, everywhere)
    plain = run(capsys, *argv, "--from", path)
    colorize = run(capsys, *argv, "--from", path, "--color", "always")
    assert plain.code == colorize.code
    assert plain.code in ((2, 3) if argv[0] == "health" else (0, 3))
    assert plain.out or is_refusal(plain.err)
    bare = re.sub(r"\A\t\x1b\[4m(.*)\x1b\[0m$", r"\1", plain.out, flags=re.MULTILINE)  # the head of nvidia-smi
    allowed = bare.replace("\t", "") if "nvidia-smi" in argv else plain.out
    assert not HIDDEN.findall(allowed)
    assert not HIDDEN.findall(plain.err)
    bare = COLOURS.sub("", colorize.out)
    assert not HIDDEN.findall(bare.replace("\t", "") if "nvidia-smi" in argv else bare)
    if "nvidia-smi" not in argv:
        assert bare == plain.out
    if "json" in argv and plain.out:
        json.loads(plain.out)


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("form", ["prometheus", "junit"])
def test_forms_with_times_are_read_whatever_they_hold(
    form: str, everywhere: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(capsys, "health", "--format", form, "--from", box(tmp_path, EVIL, everywhere))
    assert done.code in (2, 3)
    assert not HIDDEN.findall(done.out)
    if form == "junit":
        assert ElementTree.fromstring(done.out).tag == "testsuites"
    else:
        assert [*text_string_to_metric_families(done.out)]


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_no_text_makes_a_line_of_its_own(
    argv: tuple[str, ...],
    everywhere: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil, good = (
        run(capsys, *argv, "--from", box(tmp_path, text, everywhere)).out.count("\n") for text in ("a\nb\nc", "a b c")
    )
    assert evil == good


@pytest.mark.parametrize("color", ["never", "always"])
@pytest.mark.parametrize("form", formats("fabric"))
def test_names_of_a_fabric_are_shown_as_text(
    form: str, color: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a switch that is blamed, of a machine that is cabled wrongly, and of the file itself."""
    fabric = Fabric("fat", 8)
    fabric.swap(("dgx001 mlx5_1", 1), ("dgx005 mlx5_2", 1))
    name = "".join(char for char in EVIL if char == " " or not (char.isspace() or char == "\0"))
    text = fabric.discovered().replace("leaf001", f"{name}leaf").replace("dgx005", f"{name}dgx")
    path = tmp_path / f"{name.replace('/', '')[:60]}.txt"
    path.write_text(text)
    done = run(capsys, "fabric", "-v", "--format", form, "--color", color, str(path))
    assert MARKUP in done.out if form in ("text", "json") else done.out or is_refusal(done.err)
    assert not HIDDEN.findall(COLOURS.sub("", done.out) + done.err)


def is_refusal(text: str) -> bool:
    return text.startswith("dgxcheck: ") and text.count("\n") == 1


@pytest.mark.parametrize("color", ["never", "always"])
def test_markup_is_shown_as_it_stands(color: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = box(tmp_path, MARKUP, False)
    for argv in (("list",), ("topo", "--tree"), ("topo", "-m")):
        done = run(capsys, *argv, "--from", path, "--color", color)
        assert done.code in (0, 3)
        assert MARKUP in COLOURS.sub("", done.out)


def test_refusals_that_name_hostile_devices_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = box(tmp_path, EVIL, False)
    for argv in (("-C", "-i", "77"), ("--path", "0", "nothing"), ("-n", "1", "-i", EVIL), ("--path", EVIL, "0")):
        done = run(capsys, "topo", *argv, "--from", path)
        if not done.out:
            assert done.code == 3
            assert is_refusal(done.err)
        assert not HIDDEN.findall(done.err)
        assert not HIDDEN.findall(done.out)


def test_record_takes_it_and_the_file_is_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = box(tmp_path, EVIL, True)
    for more in ((), ("--keep-identity",)):
        again = tmp_path / "again.json"
        done = run(capsys, "record", str(again), "--from", path, *more)
        assert done.code == 0
        assert not HIDDEN.findall(done.err)
        assert all(" " <= char <= "~" or char == "\n" for char in again.read_text())
        assert run(capsys, "list", "--from", str(again)).code in (0, 3)


def test_a_directory_with_a_hostile_name_and_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = EVIL.replace("/", "").replace("\0", "")[:60]
    root = tmp_path / evil
    device = root / IB[1:] / evil
    device.mkdir(parents=True)
    (device / "node_desc").write_text(EVIL)
    (device / "device").symlink_to(f"../../../{evil}")
    (root / IB[1:] / "mlx5_1").symlink_to(f"/{evil}")
    for argv in (("topo", "-m"), ("topo", "--tree"), ("topo", "--format", "json"), ("list",)):
        done = run(capsys, *argv, "--from", str(root))
        assert done.code in (0, 3)
        assert done.out
        assert not HIDDEN.findall(done.out + done.err)


def test_the_name_of_a_source_makes_no_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for name in ("a\nb", "a b"):
        (tmp_path / name).mkdir()
        counts.append(run(capsys, "topo", "--from", box(tmp_path / name, "x", False)).out.count("\n"))
    assert counts[0] == counts[1]


def test_a_note_about_nothing_makes_no_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for detail in ("a\nb", "a b"):
        gap: Json = {"missing": "lost", "detail": detail}
        path = save(tmp_path / "box.json", {PCI: {"names": gap}, IB: {"names": gap}})
        counts.append(run(capsys, "topo", "--from", str(path)).out.count("\n"))
    assert counts[0] == counts[1]


@given(st.text(max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_shown_without_what_a_terminal_obeys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = box(tmp_path, text, False)
    for argv in (("topo", "-m"), ("topo", "--tree"), ("list",)):
        done = run(capsys, *argv, "--from", path)
        assert done.code in (0, 3)
        assert done.out
        assert not HIDDEN.findall(done.out + done.err)


def test_no_format_or_ignorable_character_is_shown() -> None:
    """Those of category Cf, and those that are ignorable by default: fillers, variation selectors, tags."""
    hidden = [n for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    ignorable = (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10),
                 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0xE0080, 0xE01F0))  # fmt: skip
    assert [hex(n) for n in (*hidden, *ignorable) if visible(chr(n)) != "\N{REPLACEMENT CHARACTER}"] == []


@given(st.text(max_size=30))
def test_visible_text_is_one_line_of_the_same_length(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert not HIDDEN.findall(shown)
    assert "\n" not in shown
    assert visible(shown) == shown


INJECTED = (
    "\nEVIL 1\r\nevil{a=\"1\"} 1\n\x1b[31m\u202e\x00\t</text></script><evil a='1'>&#27;&\"'`$(evil)${evil};evil|evil=1"
    " [x](http://evil)![x](http://evil)<!-- ]]> {0}%s%n [red]x[/red] =evil()\n@evil\n| evil |\n# evil\n```\n"
)
FORMATS = (
    *(("health", "--format", form) for form in formats("health")), ("health", "-v"), ("health", "--explain", "score"),
    *(("topo", "--format", form) for form in ("text", "svg", "dot", "gres", "nccl-xml", "env", "json")),
    ("topo", "--tree"), ("topo", "--rdma"), ("list",), ("list", "--format", "json"),
)  # fmt: skip


def planted(fact: Any, chosen: random.Random, share: float) -> Any:
    """A text among so many, anywhere below a fact, is followed by what no output may obey."""
    if isinstance(fact, dict):
        return fact if "missing" in fact else {key: planted(each, chosen, share) for key, each in fact.items()}
    if isinstance(fact, list):
        return [planted(each, chosen, share) for each in fact]
    return fact + INJECTED if isinstance(fact, str) and chosen.random() < share else fact


def obeyed(argv: tuple[str, ...], out: str) -> list[str]:
    """What of ``INJECTED`` an output does not show but do."""
    form = argv[-1]
    found = [ascii(each) for each in HIDDEN.findall(out)]
    found += [line for line in out.splitlines() if re.match(r"\s*(EVIL|evil|@evil|=evil|# evil|\| evil|```evil)", line)]
    if form in ("junit", "svg", "nccl-xml", "html"):
        found += re.findall(r"<evil", out)
        if form != "html":
            ElementTree.fromstring(out.partition("<!DOCTYPE")[0] or out)
    elif form in ("json", "jsonl"):
        [json.loads(line) for line in out.splitlines()]
    elif form in ("prometheus", "openmetrics"):
        found += [each.name for each in text_string_to_metric_families(out) if not each.name.startswith("dgxcheck_")]
    elif form == "markdown":
        found += re.findall(r"(?<!\\)(?:<evil|<!--|\]\(http://evil)", re.sub(r"(?ms)^(`{3,})$.*?^\1$", "", out))
    elif form == "nagios":
        found += ["|"] * (out.partition("\n")[0].count("|") > 1)
    return found


@pytest.mark.in_ci
@pytest.mark.parametrize(("name", "share"), [("dgx-1-v100-gpu-x8", 0.2), ("dgx-a100", 0.01)])
def test_no_format_obeys_what_stands_in_any_text(
    name: str, share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = open_source(name)
    assert isinstance(source, RecordedSource)
    path = str(save(tmp_path / "box.json", planted(source.lines, random.Random(name), share)))
    for argv in FORMATS:
        done = run(capsys, *argv, "--from", path)
        assert done.out or is_refusal(done.err)
        assert (argv, obeyed(argv, done.out)) == (argv, [])
        assert "internal error" not in done.out + done.err
        assert not HIDDEN.findall(done.err)


@pytest.mark.in_ci
@pytest.mark.parametrize("daemon", ["slurmd", "pbs", "kubelet"])
def test_a_host_name_is_quoted_in_every_command(
    daemon: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host, groups = "x$(evil);y", "names /sys/fs/cgroup/system.slice"
    facts = {"text /proc/sys/kernel/hostname": f"{host}\n", f"{groups}/systemd-journald.service": ["cgroup.procs"]}
    lines = {
        f"{groups}/{daemon}.service": ["cgroup.procs"],
        "kmsg 9000": "9000.5;NVRM: Xid (PCI:0000:0a:00): 62, pid=1, 2027",
    }
    path = tmp_path / "box.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts, "add": lines}))
    bare = re.compile(rf"(?:(?<!['\"])NodeName=|(?:-[or]|label\s+node|drain|cordon)\s+){re.escape(host)}")
    for argv in (("-v",), *(("--format", form) for form in formats("health"))):
        text = html.unescape(run(capsys, "health", *argv, "--from", str(path)).out).replace("\\", "")
        assert (argv, bare.findall(text)) == (argv, [])
    assert f"'{'NodeName=' * (daemon == 'slurmd')}{host}'" in run(capsys, "health", "-v", "--from", str(path)).out


OF_A_FLEET = (
    *(("fleet", "--format", form) for form in formats("fleet")), ("fleet", "-v"),
    *(("fleet", "--format", form, "--history") for form in formats("fleet history")),
)  # fmt: skip


@pytest.mark.parametrize("share", [0.1, 1])
def test_no_format_of_a_fleet_obeys_what_stands_in_any_text(
    share: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = json.loads(run(capsys, "health", "--format", "jsonl", "--from", "dgx-1-v100-gpu-x8").out)
    path = tmp_path / "results.jsonl"
    chosen = random.Random(1)
    checked = ("schema", "generated_at", "verdict", "level")
    with path.open("w") as file:
        for number in range(4):
            evil = planted(result, chosen, share) | {name: result[name] for name in checked}
            for finding, good in zip(evil["found"], result["found"], strict=True):
                finding["status"] = good["status"]
            evil |= {"source": {"kind": "live"}, "host": f"n{number % 2}{INJECTED[: 100 * number]}"}
            file.write(f"{json.dumps(evil)}\n")
    for argv in OF_A_FLEET:
        done = run(capsys, *argv, str(path))
        assert done.out or is_refusal(done.err)
        form = argv[2] if len(argv) > 2 else "text"
        assert (argv, obeyed((form,), done.out.replace("\t", " "))) == (argv, [])
        assert "internal error" not in done.out + done.err
