"""What hardware records of itself: event log, sensors and Redfish of a BMC, SMART, errors of memory: reconstructed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from judging import judged
from readers_text import one, results, unread

from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.host import arrays, event_log, own_records, sensors
from dgxcheck.readers.layout.undo import undone

SEL = """\
   1 | 11/02/2026 | 08:00:01 | Event Logging Disabled SEL | Log area reset/cleared | Asserted
   2 | 11/02/2026 | 08:02:11 | System Boot Initiated #0xe0 | Initiated by power up | Asserted
   3 | 11/14/2026 | 21:40:03 | Memory DIMM_P1_C1 | Correctable ECC | Asserted
   4 | 11/15/2026 | 03:12:44 | Memory DIMM_P1_C1 | Uncorrectable ECC | Asserted
   5 | 11/15/2026 | 03:12:45 | Memory DIMM_P1_C1 | Uncorrectable ECC | Asserted
   6 | 11/16/2026 | 10:00:00 | Power Supply PSU3 | Power Supply AC lost | Asserted
   7 | 11/16/2026 | 10:04:10 | Power Supply PSU3 | Power Supply AC lost | Deasserted
   8 | 11/18/2026 | 17:31:09 | Temperature TEMP_GPU4 | Upper Critical going high | Asserted | Reading 95
   9 | Pre-Init  |0000000031| Fan FAN7_R | Lower Critical going low | Asserted | Reading 0 < Threshold 500 RPM
   a | 11/19/2026 | 02:00:00 UTC | Critical Interrupt PCIE_ERR | Bus Fatal Error | Asserted
"""
SMART = """\
Smart Log for NVME device:nvme2n1 namespace-id:ffffffff
critical_warning                        : 0x9
temperature                             : 41 C (314 Kelvin)
media_errors                            : 3
"""
RAS = """\
Memory controller events summary:
\tCorrected on DIMM Label(s): 'P1_A0' location: 0:0:0:-1 errors: 7
\tFatal on DIMM Label(s): 'P1_B0' location: 0:1:0:-1 errors: 2

PCIe AER events summary:
\t1 Uncorrected (Non-Fatal) errors: Completion Timeout
No MCE errors.
"""
SENSORS = """\
Inlet Temp       | 24 degrees C      | ok
CPU0 Temp        | 31h | ok  |  3.1 | 45 degrees C
GPU2 Temp        | 93.000     | degrees C  | cr    | na        | na        | 90.000
FAN5             | 0 RPM             | nr
PSU1 Status      | 0x01              | ok
DIMM_F1          | no reading        | ns
"""


def test_events_of_a_bmc() -> None:
    output = one(event_log.read, SEL)
    assert results(output) == {
        "host ipmitool-sel-memory-2": ("note", "", 1), "host ipmitool-sel-memory": ("warn", "dimm-errors", 1),
        "host ipmitool-sel-temperature": ("warn", "overheating", 1),
        "host ipmitool-sel-fan": ("warn", "fan", 1),
        "host ipmitool-sel-critical": ("warn", "aer-uncorrectable", 1),
    }  # fmt: skip
    assert unread([output], SEL) == []
    memory = output.facts["stated report host ipmitool-sel-memory"]
    assert isinstance(memory, dict)
    assert memory["text"] == "Memory DIMM_P1_C1: Uncorrectable ECC, last 11/15/2026 03:12:45, 2 entries"


@pytest.mark.parametrize(("event", "due"), [
    ("Fan FAN_F3 | Lower Critical going low ", "Fan FAN_F3: Lower Critical going low"),
    ("Power Supply PSU2 | Failure detected ()", "Power Supply PSU2: Failure detected"),
])  # fmt: skip
def test_words_of_an_event_end_where_they_do(event: str, due: str) -> None:
    (row,) = one(event_log.read, f"1 | 11/20/2026 | 11:50:12 | {event} | Asserted").facts.values()
    assert isinstance(row, dict)
    assert row["text"] == f"{due}, last 11/20/2026 11:50:12"


def test_numbers_of_events_are_no_numbers_of_lines() -> None:
    """Before the tenth event they could be."""
    few = tuple(line.replace("AC lost | Deasserted", "reset | Asserted") for line in SEL.splitlines()[:8])
    assert undone(few).lines == few


def test_an_hour_may_be_of_twelve() -> None:
    found = one(event_log.read, "6a | 04/12/2024 | 03:27:29 PM CDT | Critical Interrupt | Bus Fatal Error | Asserted")
    (fact,) = found.facts.values()
    assert isinstance(fact, dict)
    assert fact["fault"] == "aer-uncorrectable"


def test_what_is_over_is_no_fault() -> None:
    text = "\n".join(line for line in SEL.splitlines() if "Power Supply" in line or "Boot" in line)
    assert results(one(event_log.read, text)) == {"host ipmitool-sel-events": ("pass", "", 1)}
    row = "{} | 12/04/2023 | 07:1{}:45 | Power Supply PS Redundancy | {} | Asserted".format
    restored = row(1, 2, "Redundancy Lost"), row(2, 3, "Fully Redundant")
    assert results(one(event_log.read, "\n".join(restored))) == {"host ipmitool-sel-events": ("pass", "", 1)}


ATTRIBUTES = """\
Critical Comp. Temperature Time:    0
      Available Spare[0]             : 0
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
190 Airflow_Temperature_Cel 0x0032   071   055   000    Old_age   Always       -       29 (Min/Max 20/45)
197 Current_Pending_Sector  0x0012   100   100   000    Old_age   Always       -       {}

SMART Error Log Version: 1
No Errors Logged
"""


def test_what_disks_and_memory_recorded() -> None:
    disk = one(own_records.read_smart, SMART)
    whose = "/dev/nvme2n1 SMART-nvme2n1"
    assert results(disk) == {whose: ("warn", "disk", 1), f"{whose}-2": ("note", "", 1)}
    assert one(own_records.read_smart, re.sub(" {3,}:", "\t\t\t:", SMART)).facts == disk.facts  # as nvme-cli prints it
    said = disk.facts["stated report /dev/nvme2n1 SMART-nvme2n1"]
    assert isinstance(said, dict)
    assert said["text"] == "nvme2n1: critical warning 0x09 (spare below threshold, read-only)"
    assert results(one(own_records.read_smart, SMART.replace("0x9", "0").replace(": 3", ": 0"))) == {
        "/dev/nvme2n1 SMART-nvme2n1": ("pass", "", 1)
    }
    failed = "$ smartctl -H /dev/sdb\nSMART overall-health self-assessment test result: FAILED!\n"
    assert results(one(own_records.read_smart, failed)) == {"/dev/sdb SMART-sdb": ("warn", "disk", 1)}
    for count, state in ((24, "note"), (0, "pass")):
        pending = failed.replace("FAILED!", "PASSED") + ATTRIBUTES.format(count)
        assert [*results(one(own_records.read_smart, pending)).values()][-1][0] == state
        assert unread([one(own_records.read_smart, pending)], pending) == []
    memory = one(own_records.read_ras, RAS)
    assert results(memory) == {
        "host ras-mc-ctl-errors": ("note", "", 1), "host ras-mc-ctl-errors-2": ("warn", "dimm-errors", 1),
        "host ras-mc-ctl-errors-3": ("warn", "aer-uncorrectable", 1),
    }  # fmt: skip
    assert unread([disk, memory], SMART) == unread([memory], RAS) == []
    error = "4 2026-11-20 02:11:09 +0000 1 %s error(s): memory read error at P1_A0 location: 0:0:0:-1, addr 1"
    event = ("rasdaemon[1522]:  <...>-321   [012]     0.000212: mc_event:             2026-11-20 02:11:09 +0000 1 %s"
             " error: memory read error on P1_A0 (mc: 1 location: 0:0 grain: 6 syndrome: 0x00000000)")
    table = "Label               \tCE\tUE\nP1_A0\t2\t%d"
    for text, outcome in ((error % "Uncorrected", "warn"), (error % "Corrected", "note"),
                          (event % "Uncorrected", "warn"), (event % "Corrected", "note"), (table % 1, "warn"),
                          (table % 0, "note"), ("No Memory errors.", "pass")):  # fmt: skip
        assert {how for how, _, _ in results(one(own_records.read_ras, text)).values()} >= {outcome}
    for kind, word in (("ARM processor", "machine-check"), ("Extlog", "dimm-errors")):
        errors = f"{kind} events summary:\n\t2 Uncorrected errors\n"
        assert results(one(own_records.read_ras, errors)) == {"host ras-mc-ctl-errors": ("warn", word, 1)}


OF_SATA = """\
=== START OF READ SMART DATA SECTION ===
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0
Error Information (NVMe Log 0x01, 16 of 63 entries)
"""


def test_attributes_of_a_disk() -> None:
    (found, failing) = (one(own_records.read_smart, text) for text in (OF_SATA, OF_SATA.replace(
        "100   010    Pre-fail  Always       -", "001   010    Pre-fail  Always   FAILING_NOW")))  # fmt: skip
    assert {how for how, _, _ in results(found).values()} == {"pass"}
    assert unread([found], OF_SATA) == []
    assert ("warn", "disk", 1) in results(failing).values()


UNGRADED = """\
ARM processor events summary:
\tCPU(mpidr=0x81090100) has 1 errors

Disk errors summary:
\t0:66304 has 2162 errors
Memory failure events summary:
\tRecovered errors: 24

Memory failure events:
5 2020-10-29 00:26:36 -0800 error: pfn=0x204000000, page_type=free buddy page, action_result=Failed
"""
EDAC = """\
mc0: %d Uncorrected Errors with no DIMM info
mc0: 0 Corrected Errors with no DIMM info
mc0: csrow0: 0 Uncorrected Errors
mc0: csrow0: CPU_SrcID#0_MC#0_Chan#1_DIMM#0: %d Corrected Errors
mc1: 0 Uncorrected Errors with no DIMM info
mc1: 0 Corrected Errors with no DIMM info
"""


def test_rows_without_a_severity_accuse_nothing_but_pages_that_were_lost_do() -> None:
    """Outputs of a thread of linux-kernel on counting recovered errors, and of a patch of rasdaemon."""
    output = one(own_records.read_ras, UNGRADED)
    assert unread([output], UNGRADED) == []
    assert results(output) == {
        "host ras-mc-ctl-errors": ("warn", "dimm-errors", 1), "host ras-mc-ctl-errors-2": ("note", "", 1),
        "host ras-mc-ctl-errors-3": ("note", "", 1),
    }  # fmt: skip


EDAC_FULL = """\
mc0:csrow0:CPU_SrcID#0_MC#0_Chan#1_DIMM#0:CE:%d
mc0:noinfo:all:UE:%d
mc0:noinfo:all:CE:0
"""
EDAC_SIMPLE = "mc0: Correctable errors:   %d\nmc0: Uncorrectable errors: %d\nTotal CE: %d\nTotal UE: %d\n"


@pytest.mark.parametrize(("form", "order"), [(EDAC, "uc"), (EDAC_FULL, "cu"), (EDAC_SIMPLE, "cucu")])
@pytest.mark.parametrize(
    ("uncorrected", "corrected", "outcomes"), [(0, 0, ["pass"]), (0, 7836, ["note"]), (2, 1, ["note", "warn"])]
)
def test_a_memory_controller_is_no_host(
    uncorrected: int, corrected: int, outcomes: list[str], form: str, order: str, tmp_path: Path
) -> None:
    text = form % tuple(uncorrected if kind == "u" else corrected for kind in order)
    output = one(own_records.read_edac, text)
    assert output.tool == "edac-util"
    assert unread([output], text) == []
    assert sorted(str(how) for how, _, _ in results(output).values()) == outcomes
    (tmp_path / "edac.txt").write_text(text, encoding="utf-8")
    causes = judged(str(tmp_path / "edac.txt"))[1]["causes"]
    assert [cause["component"]["kind"] for cause in causes] == ["host"] * ("warn" in outcomes)


STORCLI = """\
VD LIST :
=======
------------------------------------------------------------
DG/VD TYPE  State Access Consist Cache  sCC       Size Name
------------------------------------------------------------
0/0   RAID5 {0}  RW     Yes     RaAWBD -   446.125 GB
------------------------------------------------------------
EID:Slt DID State  DG     Size Intf Med SED PI SeSz Model               Sp Type
32:2      2 {1}  1 3.637 TB SATA HDD N   N  512B ST4000NM0033-9ZM170 U  -
32:4      4 UGood   F 3.637 TB SATA HDD N   N  512B ST4000NM0033-9ZM170 U  -
"""


def test_a_raid_controller_names_volume_and_drive() -> None:
    """Newer, perccli2 and storcli2: https://github.com/thomas-krenn/check_lsi_raid/issues/41."""
    output = one(arrays.read_raid, STORCLI.format("Dgrd", "Failed"))
    assert {fact["text"] for fact in output.facts.values() if isinstance(fact, dict)} == {
        "volume 0/0 is degraded", "drive 32:2 is failed"
    }  # fmt: skip
    assert {row[:2] for row in results(output).values()} == {("warn", "disk")}
    good = one(arrays.read_raid, STORCLI.format("Optl", "Onln"))
    assert results(good) == {"host storcli-raid": ("pass", "", 1)}
    assert arrays.read_raid(("0/0 RAID5 Dgrd", "8:1 18 UBad", "10:0 1 Failed 2 GB")) == ()
    newer = STORCLI.replace("DID State ", "PID State Status").replace("2 {1}", "2 Conf {1}").replace("TB", "TiB")
    output = one(arrays.read_raid, newer.format("Optl", "Failed"))
    assert {fact["text"] for fact in output.facts.values() if isinstance(fact, dict)} == {"drive 32:2 is failed"}


def test_rows_of_rasdaemon_name_device_cpu_and_bank() -> None:
    """Rows of https://github.com/mchehab/rasdaemon, pull request 12 and issue 121; the severities of others."""
    bank = ("error: Corrected error, no action required., CPU 2, bank Unified Memory Controller (bank=21), mcg"
            " mcgstatus=0, mci Error_overflow CECC, memory_channel=0,csrow=2, mcgcap=0x0000011d,"
            " status=0x%s40000400011b, addr=0x7d41b7940, misc=0xd01a000601000000, bank=0x00000015")  # fmt: skip
    rows = (
        "PCIe AER events:", "1 2020-04-16 22:09:48 +0000 0000:0b:00.0 Corrected error: Receiver Error",
        "2 2020-04-16 22:23:24 +0000 0000:0b:00.0 Corrected error: Receiver Error",
        "3 2020-04-17 23:00:37 +0000 0000:d9:01.0 Uncorrected (Fatal) error: Completion Timeout",
        "MCE events:", f"1 .. {bank % 'dc20'}", f"2 2025-06-23 08:24:48 -0400 {bank % 'fc20'}",
        f"3 2025-06-23 08:24:48 -0400 {bank.replace('Corrected error, no', 'Deferred error, no') % 'dc20'}",
        "4 2024-05-16 10:21:24 -0700 error: No Error, mcg mcgstatus=0, mci Corrected_error Error_enabled,"
        " mcgcap=0x0f000814, status=0x9400000000000000, addr=0x0000abcd, walltime=0x66464093, cpuid=0x00050654",
        "1 2026-07-30 03:14:07 -0700 1 Uncorrected error(s): at unknown memory location: 0:-1:-1:-1, addr 0, grain 0",
    )  # fmt: skip
    output = one(own_records.read_ras, "\n".join(rows))
    assert unread([output], "\n".join(rows)) == []
    texts = {key.removeprefix("stated report "): (fact["outcome"], fact["fault"], fact["text"])
             for key, fact in output.facts.items() if isinstance(fact, dict)}  # fmt: skip
    cpu = "CPU 2, bank Unified Memory Controller"
    assert texts == {
        "0000:0b:00.0/PCIe ras-mc-ctl-errors": ("note", "", "PCIe AER (0000:0b:00.0): 2 corrected"),
        "0000:d9:01.0/PCIe ras-mc-ctl-errors":
            ("warn", "aer-uncorrectable", "PCIe AER (0000:d9:01.0): 1 uncorrected"),
        "host ras-mc-ctl-errors": ("note", "", f"MCE ({cpu}): 1 corrected"),
        "host ras-mc-ctl-errors-2": ("warn", "machine-check", f"MCE ({cpu}): 2 uncorrected"),
        "host ras-mc-ctl-errors-3": ("note", "", "MCE: 1 corrected"),
        "host ras-mc-ctl-errors-4": ("warn", "dimm-errors", "Memory controller (unknown memory): 1 uncorrected"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("bdf", "component"), [("0000:06:00.0", "link/0000:06:00.0"), ("0000:d9:01.0", "function/0000:d9:01.0")]
)
def test_an_error_of_pcie_is_of_the_device_that_rasdaemon_names(bdf: str, component: str, tmp_path: Path) -> None:
    row = f"1 2020-04-17 23:00:37 +0000 {bdf} Uncorrected (Fatal) error: Completion Timeout"
    file = tmp_path / "box.json"
    added = dict(one(own_records.read_ras, row).facts)
    file.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": {}, "add": added}))
    (cause,) = judged(str(file))[1]["causes"]
    assert f"{cause['component']['kind']}/{cause['component']['bdf']}" == component
    assert ("aer_dev_*" in cause["actions"][0]["text"]) is component.startswith("function")


def test_sensors_of_a_bmc() -> None:
    output = one(sensors.read_sensors, SENSORS)
    assert results(output) == {
        "host ipmitool-sdr-sensor": ("warn", "overheating", 1), "host ipmitool-sdr-sensor-2": ("warn", "fan", 1)
    }  # fmt: skip
    assert unread([output], SENSORS) == []
    good = SENSORS.replace("| cr", "| ok").replace("| nr", "| ok")
    assert results(one(sensors.read_sensors, good)) == {"host ipmitool-sdr-sensors": ("pass", "", 1)}
    assert sensors.read_sensors(("| GPU0 | passed | ok |", "a | b | cr")) == ()


@pytest.mark.parametrize(
    ("row", "how"),
    [
        ("PS1 Status       | 0x0b             | ok", "warn"), ("PS1 Status       | 0x01             | ok", "pass"),
        ("PS2 Status       | 0xb        | discrete   | 0x0b00| na        | na        | na        | na", "warn"),
        ("PSU0_STATUS      | 0x0        | discrete   | 0x0980| na        | na        | na        | na", "warn"),
        ("STATUS_PSU1      | 71h | ok  | 10.2 | Presence detected, Failure detected", "warn"),
        ("PSU Redundancy   | 0x03             | ok", "pass"),
    ],
)  # fmt: skip
def test_a_power_supply_that_is_there_and_failed(row: str, how: str) -> None:
    """Of a Supermicro X8 without its cable; a sensor of redundancy has other states."""
    (found,) = results(one(sensors.read_sensors, row)).values()
    assert found == (how, "power-supply" if how == "warn" else "", 1)


def test_a_plugin_of_nagios_tells_what_the_event_log_holds() -> None:
    text = ("IPMI Status: Critical [33 system event log (SEL) entries present - details: (Power Supply PS2 Status ="
            " Critical, Power Supply, Power Supply Failure detected), (System Chassis Chassis Intru = Critical,"
            " Physical Security, General Chassis Intrusion)")  # fmt: skip
    output = one(sensors.read_sensors, text)
    assert [row[:2] for row in results(output).values()] == [("warn", "power-supply"), ("note", "")]
    good = one(sensors.read_sensors, "IPMI Status: OK")
    assert results(good) == {"host check_ipmi_sensor-sensors": ("pass", "", 1)}


@pytest.mark.parametrize(
    ("severity", "message", "due"),
    [
        ("Critical", "GPU_SXM_2 has detected errors of type Power Good Fault", ("warn", "test-failed", 1)),
        ("Warning", "The sensor temperature of the inlet is high", ("warn", "overheating", 1)),
        ("Critical", "HGX_GPU_SXM_1_TEMP_0 sensor crossed a critical high threshold going high",
         ("warn", "overheating", 1)),
        ("Critical", "FAN_3_F sensor crossed a critical low threshold going low", ("warn", "fan", 1)),
        ("Critical", "Uncorrectable PCI Express Error Detected. Slot 12 (Segment 0x0, Bus 0x17, Device 0x0)",
         ("warn", "aer-uncorrectable", 1)),
        ("Warning", "A user has logged in", ("note", "", 1)), ("OK", "A user has logged in", ("pass", "", 1)),
    ],
)  # fmt: skip
def test_the_log_of_a_bmc_by_redfish(severity: str, message: str, due: tuple[str, str, int]) -> None:
    entry = {"@odata.type": "#LogEntry.v1_9_0.LogEntry", "Severity": severity, "Message": message, "Created": "2026"}
    for text in (json.dumps(entry), json.dumps({"Members": [entry]}, indent=1)):
        output = one(event_log.read_redfish, text)
        assert [*results(output).values()] == [due]
    for over in ({"Oem": {"Hpe": {"Repaired": True}}}, {"Resolved": True}):
        assert [*results(one(event_log.read_redfish, json.dumps({**entry, **over}))).values()] == [("pass", "", 1)]


@pytest.mark.parametrize(("members", "start"), [
    ({"ProcessorType": "GPU", "Id": "GPU_SXM_1", "Name": "Processor"}, "GPU Processor: health is"),
    ({"ProcessorType": "GPU", "Id": "GPU_SXM_1"}, "GPU GPU_SXM_1: health is"),
    ({"MemberId": "7"}, "Processor 7: health is"), ({}, "Processor: health is"),
])  # fmt: skip
def test_a_part_that_redfish_calls_critical_is_named(members: dict[str, str], start: str) -> None:
    part = {"@odata.type": "#Processor.v1_9_0.Processor", "Status": {"Health": "Critical", "State": "Enabled"}}
    (fact,) = one(event_log.read_redfish, json.dumps({**part, **members})).facts.values()
    assert isinstance(fact, dict)
    assert str(fact["text"]).startswith(start)


@pytest.mark.parametrize("text", [SMART, RAS, SEL])
def test_nobody_else_reads_them(text: str) -> None:
    tools = {part.tool for reader in READERS for part in reader(tuple(text.splitlines()))}
    assert len(tools) == 1


@pytest.mark.parametrize(("ierr", "faults"), [
    ("22:07:46", ["dimm-errors", "dimm-errors", ""]), ("21:00:00", ["dimm-errors", "dimm-errors", "machine-check"]),
])  # fmt: skip
def test_a_processor_that_stops_at_a_memory_error_is_part_of_it(ierr: str, faults: list[str]) -> None:
    row = "{} | 10/02/2025 | {} | {} | Asserted".format
    found = event_log.read((
        row(1, "22:01:14", "Memory CPU1_DIMM_C1 | Correctable ECC logging limit reached"),
        row(2, "22:07:45", "Memory CPU1_DIMM_C1 | Uncorrectable ECC"), row(3, ierr, "Processor CPU1_Status | IERR"),
    ))[0].facts  # fmt: skip
    assert [fact["fault"] for fact in found.values() if isinstance(fact, dict)] == faults
    assert "Uncorrectable" in str(next(iter(found.values())))


LEAK = {"@odata.type": "#LeakDetector.v1_1_0.LeakDetector", "Name": "Chassis 0 LeakDetector 0 ColdPlate",
        "DetectorState": "Critical", "Status": {"Health": "OK", "State": "Enabled"}}  # fmt: skip


@pytest.mark.parametrize("text", [
    "  1f | 11/28/2026 | 03:11:22 | Leak_Detect ColdPlate_1 | Leak detected | Asserted\n",
    "  20 | 11/28/2026 | 03:11:22 | Cooling Device LEAK_SENSOR_2 | Transition to Critical | Asserted\n",
    json.dumps(LEAK) + "\n",
    json.dumps({"@odata.type": "#LogEntry.v1_15_0.LogEntry", "Severity": "Critical",
                "Message": "Leak detector 'ColdPlate 0' reported a critical level leak."}) + "\n",
])  # fmt: skip
def test_a_leak_is_looked_for_at_the_machine_at_once(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bmc.txt"
    file.write_text(text)
    (cause,) = judged(str(file))[1]["causes"]
    assert (cause["id"], cause["faults"]) == ("host/host/cooling", ["leak"])
    assert [(each["action"], each["urgency"]) for each in cause["actions"]] == [
        ("inspect", "now"), ("contact-vendor", "now"),
    ]  # fmt: skip
    assert "coolant" in cause["action"]["text"]


def test_a_leak_detector_that_is_not_well_reports_no_leak() -> None:
    broken = {**LEAK, "DetectorState": "OK", "Status": {"Health": "Critical", "State": "Enabled"}}
    dry = "  21 | 11/28/2026 | 03:11:22 | Leak_Detect ColdPlate_1 | Leak detected | Deasserted\n"
    assert {fault for _, fault, _ in results(one(event_log.read_redfish, json.dumps(broken) + "\n")).values()} == {
        "test-failed",
    }  # fmt: skip
    assert {fault for _, fault, _ in results(one(event_log.read, dry)).values()} <= {""}
