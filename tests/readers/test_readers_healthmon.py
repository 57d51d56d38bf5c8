"""nvidia-healthmon: results of the host's tests and of each GPU's, with what the failed ones say."""

from __future__ import annotations

import json
import re
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
from judging import of_text
from readers_text import one, unread

from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Json
from dgxcheck.profiles.model import BOX_KEYS
from dgxcheck.readers.host import health_checks, imex, services
from dgxcheck.readers.layout.undo import undone
from dgxcheck.settings import THRESHOLDS

TEXT = """\
Loading Config: SUCCESS
Global Tests
   Load NVML: SUCCESS
   Tesla Devices Count: SKIPPED
   Global Test Results: 1 success, 0 errors, 0 warnings, 1 did not run
-----------------------------------------------------------
GPU 0000:02:00.0 #0 : Tesla K80 (Serial: 0320000000001)
   InfoROM: SUCCESS
   ECC
      This GPU has had double bit ECC errors.
      * Run a field diagnostic.

      Result: CRITICAL ERROR
   Memory
      Allocated 2725627509 bytes (96.7%)
      Result: SUCCESS
   Device Results: 2 success, 1 errors, 0 warnings, 0 did not run
System Results: 3 success, 1 errors, 0 warnings, 1 did not run
One or more tests didn't run.
"""


def test_results_of_host_and_gpu() -> None:
    found = one(health_checks.read_healthmon, TEXT)
    assert unread([found], TEXT) == []
    bad = {key: fact["fault"] for key, fact in found.facts.items() if isinstance(fact, dict) and fact["fault"]}
    assert bad == {"stated report GPU0 nvidia-healthmon-ecc": "ecc-uncorrected"}
    assert found.facts["nvml nvmlDeviceGetHandleByIndex 0"] == "0000:02:00.0"
    assert "stated report host nvidia-healthmon-tesla-devices-count" not in found.facts
    assert "stated report GPU0 nvidia-healthmon-memory" in found.facts


def test_an_index_that_no_gpu_has_is_of_none() -> None:
    found = one(health_checks.read_healthmon, TEXT.replace("#0 :", "#64 :")).facts
    assert not [key for key in found if "GPU" in key or "Index" in key]
    copy = "Device {} Device to Host reported bandwidth is {} GB/s"
    many = [len(part.facts) for args in ((63, 55), (64, 55), (0, "99999999"))
            for part in health_checks.read_node_health((copy.format(*args),))]  # fmt: skip
    assert sum(many) == 1
    between = "IB devices=mlx5_ib0, mlx5_ib4: numa domains=0,1, Measured IB BW {} Gbps"
    assert sum(len(part.facts) for rate in ("390.4", "99999999.0")
               for part in health_checks.read_node_health((between.format(rate),))) == 2  # fmt: skip


@pytest.mark.parametrize(("line", "text", "left"), [
    ("Error Code = 0000000000", "", []), ("Error Code = 0ABC", "error code 0ABC", []),
    ("Error Code = 0ABC (bad memory)", "error code 0ABC: bad memory", []),
    ("Result: PASS\nDriver : 580.1\nand more", "", [4]), ("Result: FAIL", "result FAIL", []),
])  # fmt: skip
def test_the_field_diagnostic(line: str, text: str, left: list[int]) -> None:
    whole = f"NVIDIA Field Diagnostic 500.1\n{line}\n"
    found = one(health_checks.read_field_diagnostic, whole)
    assert [fact["text"] for fact in found.facts.values() if isinstance(fact, dict)] == [text]
    assert unread([found], whole) == left


@pytest.mark.parametrize(("errors", "warnings", "outcome"), [(0, 0, "pass"), (0, 2, "warn"), (3, 2, "fail")])
def test_the_sum_alone_is_what_the_tool_prints_without_v(errors: int, warnings: int, outcome: str) -> None:
    text = f"System Results: 70 success, {errors} errors, {warnings} warnings, 9 did not run"
    found = one(health_checks.read_healthmon, text)
    assert unread([found], text) == []
    (result,) = found.facts.values()
    assert isinstance(result, dict)
    assert result["outcome"] == outcome


@pytest.mark.parametrize(
    ("test", "fault"),
    [
        ("PCI Bandwidth", "slow"), ("PCIe Maximum Link Width", "link-tested"), ("InfoROM", "inforom"),
        ("PCIe Maximum Link Generation", "link-tested"), ("CUDA Sanity", "test-failed"),
        ("GPU Temperature", "overheating"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["{}: ERROR", "{} [ERROR]", "{}\n      Result: ERROR"])
def test_a_failed_test_that_gives_no_reason_is_known_by_its_name(form: str, test: str, fault: str) -> None:
    text = f"Global Tests\nGPU 0000:02:00.0 #0 : Tesla K80 (Serial: 0320000000001)\n   {form.format(test)}\n"
    found = one(health_checks.read_healthmon, text)
    assert unread([found], text) == []
    assert [fact["fault"] for fact in found.facts.values() if isinstance(fact, dict)] == [fault]


CONFIG = """\
;;; limits of the site
[global]
devices.tesla.count = 8
; drivers.blacklist = nouveau

[Tesla K80]
bandwidth.warn = 9500
bandwidth.min = 8000
pci.width = 16

[Tesla P100-SXM2-16GB]
bandwidth.min = 9000
"""


def test_the_old_configuration_names_what_replaces_each_key() -> None:
    found = health_checks.read_config(tuple(CONFIG.splitlines()))
    assert unread(found, CONFIG) == []
    assert [part.tool.partition(": now ")[0].partition("(")[2] for part in found] == [
        "devices.tesla.count", "bandwidth.warn", "bandwidth.min", "pci.width",
    ]  # fmt: skip
    assert not any(part.facts for part in found)


def test_replacements_are_checks_thresholds_and_keys_that_exist() -> None:
    words = " ".join(health_checks.REPLACED_BY.values())
    names = set(re.findall(r"[a-z]+\.[a-z0-9-]+", words))
    assert names <= {check.id for check in CHECKS} | THRESHOLDS.keys() | BOX_KEYS.keys()


def test_another_ini_file_is_none() -> None:
    assert health_checks.read_config(("[global]", "workgroup = HOME", "pci = 1")) == ()


def test_headings_alone_are_no_output() -> None:
    assert health_checks.read_healthmon(("Global Tests", "and more", "Memory", "Result: ERROR")) == ()


def test_fabric_manager() -> None:
    row = "[Feb 25 2025 13:59:45] [{}] [tid 1803] {}"
    quiet = one(services.read_fabric_manager, row.format("INFO", "multicast group 0 is freed."))
    assert [fact["outcome"] for fact in quiet.facts.values() if isinstance(fact, dict)] == ["pass"]
    error = "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 0 port 61"
    found = one(services.read_fabric_manager, row.format("ERROR", error))
    assert [fact["fault"] for fact in found.facts.values() if isinstance(fact, dict)] == ["nvswitch"]
    assert [*found.facts] == ["stated report 0000:86:00.0/61 fabric-manager-nvswitch-error"]
    without = one(services.read_fabric_manager, row.format("ERROR", error.replace(" port 61", "")))
    assert [*without.facts] == ["stated report 0000:86:00.0/ fabric-manager-nvswitch-error"]
    told = one(services.read_fabric_manager, row.format("INFO", error))
    assert [fact["outcome"] for fact in told.facts.values() if isinstance(fact, dict)] == ["pass"]
    none = "nv-fabricmanager[4177]: request failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
    assert [
        fact["outcome"] for fact in one(services.read_fabric_manager, none).facts.values() if isinstance(fact, dict)
    ] == ["note"]


NONE = "request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do"
FATAL = "detected NVSwitch fatal error 20009 on physical id 8 pci bus id 00000000:07:00.0 port 5"
UNIT = """\
Sep 18 03:19:01 gpu01 systemd[1]: Starting NVIDIA fabric manager service...
Sep 18 03:19:01 gpu01 nv-fabricmanager[4756]: {}
Sep 18 03:19:01 gpu01 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
Sep 18 03:19:01 gpu01 systemd[1]: Failed to start NVIDIA fabric manager service.
"""


@pytest.mark.parametrize(
    ("entry", "faults"),
    [
        ("Connected to 1 node.", ["fabric-manager-down"]),
        ("driver interface version 535.54.03 don't match with driver version 535.104.05.",
         ["fabric-manager-version"]),
        (f"{NONE} [NV_WARN_NOTHING_TO_DO]", []),
        (f"{NONE}\nnv-fabricmanager[4756]: GPU driver version 535.54.03 don't match with driver version 535.129.03.",
         ["fabric-manager-version"]),
        ("driver interface version 535.54.03 don't match with driver version 535.104.05.\nnv-fabricmanager[4756]:"
         " Successfully configured all the available GPUs and NVSwitches to route NVLink traffic.",
         ["fabric-manager-down"]),
        (f"{FATAL}\nnv-fabricmanager[4756]: partition 3 is active already: nothing to do",
         ["nvswitch", "fabric-manager-down"]),
        (f"{FATAL}\nnv-fabricmanager[4756]: {NONE}", ["nvswitch"]),
        ("failed to open the configuration file", ["fabric-manager-error", "fabric-manager-down"]),
    ],
)
def test_the_unit_of_fabric_manager_in_the_journal(entry: str, faults: list[str]) -> None:
    """Without NVSwitches it ends at once, which systemd calls a failure."""
    text = UNIT.format(entry)
    layout = undone(tuple(text.splitlines()))
    found = one(services.read_fabric_manager, "\n".join(layout.lines))
    assert unread([found], text) == []
    told = [fact for fact in found.facts.values() if isinstance(fact, dict)]
    assert [fact["fault"] for fact in told if fact["outcome"] not in ("pass", "note")] == faults


@pytest.mark.parametrize(
    ("state", "fault"),
    [("failed (Result: exit-code) since Mon", "fabric-manager-down"), ("active (running) since Mon", ""),
     ("inactive (dead)", "fabric-manager-down")],
)  # fmt: skip
def test_the_status_of_the_unit(state: str, fault: str) -> None:
    text = f"""\
x nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled)
     Active: {state}
   Main PID: 4711 (code=exited, status=1/FAILURE)
"""
    found = one(services.read_fabric_manager, text)
    assert unread([found], text) == []
    assert [fact["fault"] for fact in found.facts.values() if isinstance(fact, dict)] == [fault]


@pytest.mark.parametrize(
    ("number", "fault"), [(12028, "nvswitch-notice"), (11012, ""), (99999, "nvswitch-watched")],
)  # fmt: skip
def test_a_non_fatal_error_of_an_nvswitch_is_judged_by_the_table(number: int, fault: str) -> None:
    text = (f"[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error {number} on fid 0 on"
            " NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61")  # fmt: skip
    (fact,) = one(services.read_fabric_manager, text).facts.values()
    assert isinstance(fact, dict)
    assert (fact["fault"], fact["outcome"]) == (fault, "warn" if fault else "pass")


NHC = "ERROR:  nhc:  Health check failed:  "


@pytest.mark.parametrize(
    ("text", "subject", "fault"),
    [
        ("check_hw_ib:  No IB port mlx5_ib7:1 is ACTIVE (LinkUp 400 Gb/sec).", "mlx5_ib7/1", "port-down"),
        ("check_gpu_ecc: GPU id 3: SRAM Uncorrectable ECC error count detected, (0,1)", "GPU3", "ecc-uncorrected"),
        ("Bandwidth is low on device 1. Reported bandwidth is 7 GB/s.", "GPU1", "test-failed"),
        ("check_fs_mount:  /home not mounted", "host", "test-failed"),
        ("check_gpu_count:  Expected to see 4 but found 3.", "host", "gpu-missing"),
    ],
)
def test_a_check_of_nhc_that_failed_is_said_of_what_it_names(text: str, subject: str, fault: str) -> None:
    found = one(health_checks.read_node_health, f"{NHC}{text}")
    ((key, fact),) = found.facts.items()
    assert isinstance(fact, dict)
    assert (key.split()[2], fact["fault"]) == (subject, fault)


def test_nhc_of_several_hosts_is_several_machines() -> None:
    text = [f"node-{number:03d} | {NHC}check_fs_mount:  /home not mounted" for number in range(4)]
    assert {*undone(tuple(text)).hosts} == {f"node-{number:03d}" for number in range(4)}


CONTROL = """\
Nodes:
Node #0   * 192.0.2.15 *      - READY                - Version: 570.133.20
Node #1   - 192.0.2.16        - {state}

 Nodes From\\To  0   1
       0        C   {sign}
       1        C   C
Domain State: {domain}
"""
IMEX_LOG = """\
WARNING: failed to open IMEX log file  errno = No such file or directory
IMEX Log initializing at: 3/18/2025 17:01:02.100
[Mar 18 2025 17:01:02] [INFO] [tid 77] IMEX version 570.124.06 is running with the following configuration options:
[Mar 18 2025 17:01:02] [ERROR] [tid 77] node 3 is away
"""
LEGEND = "Connectivity Table Legend:\nN - Never Connected\nD - Disconnected - It was lost\n!V! - Version mismatch\n"
IMEX_TWICE = """\
IMEX Log initializing at: 9/18/2026 06:40:33.561
[Sep 18 2026 06:40:33] [INFO] [tid 77] IMEX version 580.159.04 is running with the following configuration options:
[Sep 18 2026 06:40:33] [ERROR] [tid 77] Failed to allocate Imex session, NV_ERR_IN_USE
"""
IMEX_JSON = (
    '{{"nodes":{{"0":{{"status":"READY","host":"192.0.2.15","connections":{{"0":{{"host":"192.0.2.15","status":'
    '"CONNECTED"}},"1":{{"host":"192.0.2.16","status":"{link}"}}}},"version":"570.86.15"}},"1":{{"status":"{state}",'
    '"host":"192.0.2.16","connections":{{"0":{{"host":"192.0.2.15","status":"INVALID"}}}}}}}},"status":"{domain}"}}'
)
IMEX_UNIT = """\
Mar 18 17:01:02 node1 nvidia-imex[4711]: Failed: nothing in the list
Mar 18 17:01:02 node1 systemd[1]: nvidia-imex.service: Failed with result 'exit-code'.
"""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (CONTROL.format(state="UNAVAILABLE", sign="N", domain="DEGRADED"), "imex-nodes"),
        (CONTROL.format(state="UNAVAILABLE - Version:", sign="N", domain="UP"), "imex-nodes"),
        (LEGEND + CONTROL.format(state="READY", sign="C", domain="UP"), ""),
        (CONTROL.format(state="READY", sign="!V!", domain="DEGRADED"), "imex-nodes"),
        (CONTROL.format(state="READY", sign="N", domain="UP"), "imex-nodes"),
        (IMEX_JSON.format(state="READY", link="CONNECTED", domain="UP"), ""),
        (IMEX_JSON.format(state="READY", link="DISCONNECTED", domain="UP"), "imex-nodes"),
        (IMEX_JSON.format(state="UNAVAILABLE", link="CONNECTED", domain="DEGRADED"), "imex-nodes"),
        ("$ nvidia-imex-ctl -q\nREADY", ""), ("$ nvidia-imex-ctl -q\nUNAVAILABLE", "imex-down"),
        ("$ nvidia-imex-ctl -q\nWAITING_FOR_PEERS", "imex-nodes"),
        ("[Mar 17 2026 10:22:31] [INFO] [tid 41] IMEX_WAIT_FOR_QUORUM != FULL, continuing initialization\n"
         "[Mar 17 2026 10:22:31] [ERROR] [tid 41] node 3 is away", "imex-nodes"),
        ("Domain State: DOWN", "imex-nodes"), (IMEX_LOG, "imex-nodes"), (IMEX_UNIT, "imex-down"),
        (IMEX_TWICE, "imex-twice"),
        ("[Mar 21 2025 20:45:38] [ERROR] [tid 39] No matching network interface found for any IP addresses in the node"
         " configuration file /etc/nvidia-imex/nodes_config.cfg.\n[Mar 21 2025 20:45:38] [INFO] [tid 39] IMEX version"
         " 570.00 is running with the following configuration options", "imex-down"),
        ("Mar 21 20:45:38 n1 nv-imex[12]: [Mar 21 2025 20:45:38] [ERROR] [tid 39] No matching network interface found"
         " for any IP addresses in the node configuration file /etc/nvidia-imex/nodes_config.cfg.", "imex-down"),
        ("systemd[1]: Started nvidia-imex.service - NVIDIA IMEX service.", ""),
        ("systemd[1]: Failed to start nvidia-imex.service - NVIDIA IMEX service.", "imex-down"),
        ("[Mar 17 2026 10:22:31] [ERROR] [tid 41] Failed to get new memory reference with rc: 87", "imex-nodes"),
        ("[Mar 17 2026 10:22:31] [ERROR] [tid 41] Received import response from node id 0 with failure status 3",
         "imex-nodes"),
    ],
)  # fmt: skip
def test_imex_is_no_fabric_manager(text: str, fault: str) -> None:
    lines = tuple(text.splitlines())
    found = one(imex.read_imex, text)
    assert unread([found], text.replace("Nodes:", "")) == []
    (fact,) = found.facts.values()
    assert isinstance(fact, dict)
    assert (fact["fault"], fact["outcome"]) == (fault, "warn" if fault else "pass")
    assert services.read_fabric_manager(lines) == ()


def test_two_nodes_without_a_connection_are_named() -> None:
    for text in (CONTROL.format(state="READY", sign="D", domain="DEGRADED"),
                 IMEX_JSON.format(state="READY", link="NEVER_CONNECTED", domain="DEGRADED")):
        assert "nodes not connected: 192.0.2.15 and 192.0.2.16" in str(one(imex.read_imex, text).facts)
    other = CONTROL.format(state="READY", sign="!V!", domain="DEGRADED")
    assert "versions of nodes differ: 192.0.2.15 and 192.0.2.16" in str(one(imex.read_imex, other).facts)
    cut = f"{LEGEND}{other[other.index(' Nodes From'):]}"
    assert "versions of nodes differ'" in str(one(imex.read_imex, cut).facts)
    assert imex.read_imex(("READY", "UNAVAILABLE")) == ()


@pytest.mark.parametrize("value", [None, [], 7, "", {}])
@pytest.mark.parametrize("place", [
    "nodes", "status", "nodes 0", *(f"nodes 0 {name}" for name in ("host", "status", "connections", "connections 1")),
    *(f"nodes 0 connections 1 {name}" for name in ("host", "status")),
])  # fmt: skip
def test_a_member_of_another_type_is_no_node(place: str, value: Json) -> None:
    whole = json.loads(IMEX_JSON.format(state="READY", link="DISCONNECTED", domain="UP"))
    *above, last = place.split()
    reduce(getitem, above, whole)[last] = value
    assert "None" not in str(imex.read_imex((json.dumps(whole),)))
    del reduce(getitem, above, whole)[last]
    assert "None" not in str(imex.read_imex((json.dumps(whole | {"nodes": whole.get("nodes", 0)}),)))


def test_gpus_that_a_check_of_nhc_misses_are_looked_for(tmp_path: Path) -> None:
    _, found = of_text(f"{NHC}check_gpu_count:  Expected to see 4 but found 3.\n", tmp_path)
    (cause,) = found["causes"]
    assert (cause["component"]["part"], cause["actions"][0]["instruction"]) == ("missing GPU", "inspect-missing")


def test_a_long_text_says_that_it_is_cut() -> None:
    ((_, fact),) = one(health_checks.read_node_health, f"{NHC}check_fs_mount: {'/home, ' * 60}").facts.items()
    assert isinstance(fact, dict)
    text = str(fact["text"])
    assert (text[-8:], len(text) <= 200) == ("/home ..", True)
