"""What newer releases print in ``nvidia-smi -q`` and ``-q -x``, as the same facts of NVML."""

from __future__ import annotations

import pytest
from readers_text import one

from dgxcheck.facts.missing import Json
from dgxcheck.readers.nvidia_smi import query, query_documents

TEXT = """\
==============NVSMI LOG==============

Driver Version                                         : 590.48.01
Attached GPUs                                          : 1
GPU 00000000:1B:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Addressing Mode                                    : HMM
    Platform Info
        Chassis Serial Number                          : N/A
        Slot Number                                    : 3
        Tray Index                                     : 1
        Module Id                                      : 4
    GPU C2C Mode                                       : Disabled
    GPU Virtualization Mode
        Virtualization Mode                            : Pass-Through
        Host VGPU Mode                                 : N/A
    GSP Firmware Version                               : 590.48.01
    Clocks Event Reasons Counters
        SW Power Capping                               : 7 us
        Sync Boost                                     : 0 us
        SW Thermal Slowdown                            : 5 us
        HW Thermal Slowdown                            : 0 us
        HW Power Braking                               : 11 us
    ECC Errors
        Aggregate
            SRAM Uncorrectable Parity                  : 1
            SRAM Uncorrectable SEC-DED                 : 2
            SRAM Threshold Exceeded                    : No
        Aggregate Uncorrectable SRAM Sources
            SRAM L2                                    : 3
            SRAM SM                                    : 0
            SRAM Microcontroller                       : 0
            SRAM PCIE                                  : 0
            SRAM Other                                 : 0
        Channel Repair Pending                         : No
        TPC Repair Pending                             : No
        Unrepairable Memory                            : {}
    Retired Pages
        Single Bit ECC                                 : N/A
"""
XML = """\
<?xml version="1.0" ?>
<nvidia_smi_log>
	<driver_version>580.173.02</driver_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:1B:00.0">
		<product_name>NVIDIA GB200</product_name>
		<addressing_mode>ATS</addressing_mode>
		<platformInfo>
			<slot_number>14</slot_number>
			<tray_index>4</tray_index>
			<module_id>2</module_id>
		</platformInfo>
		<c2c_mode>Enabled</c2c_mode>
		<gsp_firmware_version>580.173.02</gsp_firmware_version>
		<clocks_event_reasons_counters>
			<clocks_event_reasons_counters_sw_therm_slowdown>9 us</clocks_event_reasons_counters_sw_therm_slowdown>
			<clocks_event_reasons_counters_hw_power_brake>8 us</clocks_event_reasons_counters_hw_power_brake>
		</clocks_event_reasons_counters>
		<ecc_errors>
			<unrepairable_memory>Yes</unrepairable_memory>
		</ecc_errors>
	</gpu>
</nvidia_smi_log>
""".replace("\t", " ")
OF_TEXT: dict[str, Json] = {
    "DeviceGetAddressingMode": 1, "DeviceGetPlatformInfo": {"slotNumber": 3, "trayIndex": 1}, "DeviceGetModuleId": 4,
    "DeviceGetC2cModeInfo": {"isC2cEnabled": 0}, "DeviceGetVirtualizationMode": 1,
    "DeviceGetGspFirmwareVersion": "590.48.01", "DeviceGetFieldValues 269": 5000, "DeviceGetFieldValues 270": 0,
    "DeviceGetFieldValues 271": 11000,
    "DeviceGetSramEccErrorStatus": {
        "bThresholdExceeded": 0, "aggregateUncParity": 1, "aggregateUncSecDed": 2, "aggregateUncBucketL2": 3,
        "aggregateUncBucketSm": 0, "aggregateUncBucketPcie": 0, "aggregateUncBucketMcu": 0,
        "aggregateUncBucketOther": 0,
    },
}  # fmt: skip
OF_XML: dict[str, Json] = {
    "DeviceGetAddressingMode": 2, "DeviceGetPlatformInfo": {"slotNumber": 14, "trayIndex": 4}, "DeviceGetModuleId": 2,
    "DeviceGetC2cModeInfo": {"isC2cEnabled": 1}, "DeviceGetGspFirmwareVersion": "580.173.02",
    "DeviceGetFieldValues 269": 9000, "DeviceGetFieldValues 271": 8000, "DeviceGetUnrepairableMemoryFlag": 1,
}  # fmt: skip


def key(question: str) -> str:
    function, _, args = question.partition(" ")
    return f"nvml nvml{function} 0000:1b:00.0 {args}".rstrip()


@pytest.mark.parametrize(("word", "flag"), [("No", 0), ("Yes", 1), ("N/A", None)])
def test_text(word: str, flag: int | None) -> None:
    facts = one(query.read_text, TEXT.format(word)).facts
    assert {question: facts[key(question)] for question in OF_TEXT} == OF_TEXT
    said = facts[key("DeviceGetUnrepairableMemoryFlag")]
    assert said == flag if flag is not None else isinstance(said, dict)


def test_xml() -> None:
    facts = one(query_documents.read_xml, XML).facts
    assert {question: facts[key(question)] for question in OF_XML} == OF_XML


@pytest.mark.parametrize(("word", "gap"), [
    ("GPU requires reset", "lost"), ("Insufficient Permissions", "denied"), ("Unknown Error", "garbled"),
    ("N/A", "unsupported"),
])  # fmt: skip
def test_a_struct_has_the_gap_of_any_of_its_fields(word: str, gap: str) -> None:
    facts = one(query.read_text, TEXT.replace("Tray Index                                     : 1",
                                              f"Tray Index : {word}").format("No")).facts  # fmt: skip
    found = facts[key("DeviceGetPlatformInfo")]
    assert isinstance(found, dict)
    assert found["missing"] == gap


def test_a_vgpu_says_what_it_is_licensed_as() -> None:
    brand = "Product Brand                                      : NVIDIA RTX Virtual Workstation\n    Addressing Mode"
    facts = one(query.read_text, TEXT.replace("Addressing Mode", brand).format("No")).facts
    assert facts[key("DeviceGetBrand")] == 10


@pytest.mark.parametrize(
    ("mode", "status", "faults"),
    [
        ("", "Unlicensed", ["vgpu-unlicensed"]),
        ("    Virtualization Mode : VGPU\n", "Unlicensed (Restricted)", ["vgpu-unlicensed"]),
        ("    Virtualization Mode : Pass-Through\n", "Unlicensed", []),
        ("    Virtualization Mode : VGPU\n", "Licensed (Expiry: 2026-12-1 0:0:0 GMT)", []),
    ],
)
def test_a_vgpu_without_a_licence(mode: str, status: str, faults: list[str]) -> None:
    """https://github.com/NVIDIA/gpu-operator/issues/220 and 628; the group alone, too, as grep takes it out."""
    group = (
        "    vGPU Software Licensed Product\n        Product Name : NVIDIA RTX Virtual Workstation\n"
        f"        License Status : {status}\n"
    )
    for head in (f"GPU 00000000:02:00.0\n    Product Name : GRID A100-20C\n{mode}", *([""] if faults else [])):
        facts = one(query.read_text, f"{head}{group}    IBMNPU\n        Relaxed Ordering Mode : N/A\n").facts
        assert [fact["fault"] for key, fact in facts.items() if "report" in key and isinstance(fact, dict)] == faults
