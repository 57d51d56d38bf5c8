"""What BMCs log and measure: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from readers_text import assert_read

RECORD = """\
SEL Record ID          : 0146
 Record Type           : 02
 Timestamp             : 03/27/2024 12:48:44
 Generator ID          : 0020
 Sensor Type           : {}
 Event Direction       : {} Event
 Event Data (RAW)      : 063000
 Description           : {}

"""
FREEIPMI = "3   | Oct-14-2020 | 10:05:22 | PS2 Status  | Power Supply       | Power Supply Failure detected\n"
SENSORS = """\
Fan 3            | 33h | lcr | 29.3 |  400 RPM
PSU1 Status      | C8h | ok  | 10.1 | Presence detected
PSU2 Status      | C9h | ok  | 10.2 | Presence detected, Power Supply AC lost
"""
IDRAC = """\
Record:      1
Date/Time:   12/05/2024 10:21:33
Source:      system
Severity:    Ok
Description: The power supplies are redundant.
-------------------------------------------------------------------------------
Record:      2
Date/Time:   12/06/2024 03:13:01
Source:      system
Severity:    Critical
Description: The power input for power supply 2 is lost.
"""
LIFECYCLE = """\
SeqNumber       = 1142
Message ID      = PCI1318
Severity        = Critical
Timestamp       = 2024-12-06 03:12:45
Message         = A fatal error was detected on a component at bus 59 device 0 function 0.
"""
ONE_LINE = """\
2024-03-10 23:08:02 PCI1318 A fatal error was detected on a component at bus 59 device 0 function 0.
2024-03-10 23:08:02 PSU0003 The power input for power supply 1 is lost.
2024-03-10 23:09:02 PSU0017 The power input for power supply 1 has been restored.
"""
IML = """\
Severity  Class  Last Update          Count  Description
Critical  Power  09/26/2022 10:11:00  1  Server Critical Fault (Service Information: Power-On Fault, GPU Board (02h))
"""
ENTRIES = """{
 "@odata.type": "#LogEntryCollection.LogEntryCollection", "Members@odata.count": 1,
 "Members": [{"@odata.type": "#LogEntry.v1_15_0.LogEntry", "Severity": "Critical",
   "Message": "Multi-bit memory errors detected on a memory device at location(s) DIMM_A3."}]
}
"""
HEALTH = """{
 "@odata.type": "#Thermal.v1_7_1.Thermal",
 "Fans": [{"Name": "FAN1", "Status": {"Health": "Critical", "State": "Enabled"}},
  {"Name": "FAN2", "Status": {"Health": "OK", "State": "Enabled"}}]
}
"""
GOOD_SENSORS = """\
Planar Fault     | 3Ch | ok  |  7.1 | Predictive Failure Deasserted
PS1 Status       | C8h | ok  | 10.1 | Presence detected
Fan Redundancy   | 75h | ok  |  7.1 | Fully Redundant
"""
PARTS = """\
HDD 3            | 7Ch | ok  |  4.3 | Drive Present, Drive Fault
CPU1 Status      | 70h | ok  |  3.1 | Config Error
Cable SAS A      | 61h | ok  | 11.1 | Config Error
Mem ECC          | 71h | ok  | 32.1 | Predictive Failure
PS2 Status       | C9h | ok  | 10.2 | Presence detected, Failure detected
"""
OVER = IDRAC + """\
-------------------------------------------------------------------------------
Record:      3
Date/Time:   12/06/2024 04:00:09
Source:      system
Severity:    Ok
Description: The power input for power supply 2 has been restored.
"""
CORRECTABLE = IDRAC.replace("Critical", "Non-Critical").replace(
    "The power input for power supply 2 is lost.", "Correctable memory error rate exceeded for DIMM_A3.")
OF_TWO = "".join(
    RECORD.format("Fan", way, "Lower Critical").replace("Event Dir", f"Sensor Number         : {number}\n Event Dir")
    for number, way in ((30, "Assertion"), (31, "Deassertion"))
)
DIRECTIONS = """\
ID  | Date        | Time     | Name        | Type               | Event Direction   | Event
3   | Oct-14-2020 | 10:05:22 | PS2 Status  | Power Supply       | Assertion Event   | Power Supply Failure detected
4   | Oct-14-2020 | 10:09:51 | PS2 Status  | Power Supply       | Deassertion Event | Power Supply Failure detected
"""
ABSENT = HEALTH.replace("Enabled", "Absent", 1)
ROLLUP = """{
 "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Name": "System",
 "Status": {"Health": "Critical", "State": "Enabled"},
 "MemorySummary": {"Status": {"Health": "Critical"}}
}
"""
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "a record of the BMC": (RECORD.format("Memory", "Assertion", "Uncorrectable ECC"), ("warn dimm-errors inspect",)),
    "a record that is over": (RECORD.format("Fan", "Assertion", "Lower Critical") + RECORD.format(
        "Fan", "Deassertion", "Lower Critical"), ()),
    "ipmi-sel": (FREEIPMI, ("warn power-supply inspect",)),
    "ipmitool sdr elist": (SENSORS, ("warn fan inspect", "warn power-supply inspect")),
    "racadm getsel": (IDRAC, ("warn power-supply inspect",)),
    "racadm lclog": (LIFECYCLE, ("warn aer-uncorrectable inspect",)),
    "records of a line": (ONE_LINE, ("warn aer-uncorrectable inspect",)),
    "the log of HPE's iLO": (IML, ("warn test-failed inspect",)),
    "the log of HPE's iLO, repaired": (IML.replace("Critical  Power", "Repaired  Power"), ()),
    "entries by Redfish": (ENTRIES, ("warn dimm-errors inspect",)),
    "health by Redfish": (HEALTH, ("warn fan inspect",)),
    "good sensors": (GOOD_SENSORS, ()),
    "sensors of parts": (PARTS, ("warn machine-check inspect", "warn disk inspect", "warn dimm-errors inspect",
                                 "warn power-supply inspect")),
    "a voltage": ("VCORE1           | 0.52 Volts        | cr\n", ("warn power-supply inspect",)),
    "a battery": ("VBAT             | 2.1 Volts         | cr\n", ("warn battery inspect",)),
    "a sensor without a unit": ("CPU1_Status      | 0x80              | cr\n", ()),
    "racadm getsel, good": (IDRAC.replace("Critical", "Ok"), ()),
    "racadm getsel, over": (OVER, ()),
    "racadm getsel, not critical": (CORRECTABLE, ("warn dimm-errors inspect",)),
    "records of two sensors": (OF_TWO, ("warn fan inspect",)),
    "ipmi-sel, over": (DIRECTIONS, ()),
    "ipmi-sel, not over": (DIRECTIONS.replace("Deassertion", "Assertion"), ("warn power-supply inspect",)),
    "Redfish, absent": (ABSENT, ()),
    "Redfish, good": (HEALTH.replace("Critical", "OK"), ()),
    "Redfish, a system": (ROLLUP, ("warn dimm-errors inspect",)),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)
