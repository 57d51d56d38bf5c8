"""nvidia-healthmon: results of the host's tests and of each GPU's, with what the failed ones say."""

from __future__ import annotations

from readers_text import one, unread

from dgxcheck.readers.host import fabric_manager, healthmon

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
    found = one(healthmon.read, TEXT)
    assert unread([found], TEXT) == []
    bad = {key: fact["fault"] for key, fact in found.facts.items() if isinstance(fact, dict) and fact["fault"]}
    assert bad == {"stated report GPU0 nvidia-healthmon-ecc": "ecc-uncorrected"}
    assert found.facts["nvml nvmlDeviceGetHandleByIndex 0"] == "0000:02:00.0"
    assert "stated report host nvidia-healthmon-tesla-devices-count" not in found.facts
    assert "stated report GPU0 nvidia-healthmon-memory" in found.facts


def test_headings_alone_are_no_output() -> None:
    assert healthmon.read(("Global Tests", "and more", "Memory", "Result: ERROR")) == ()


def test_fabric_manager() -> None:
    row = "[Feb 25 2025 13:59:45] [{}] [tid 1803] {}"
    quiet = one(fabric_manager.read, row.format("INFO", "multicast group 0 is freed."))
    assert [fact["outcome"] for fact in quiet.facts.values() if isinstance(fact, dict)] == ["pass"]
    error = "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 0 port 61"
    found = one(fabric_manager.read, row.format("ERROR", error))
    assert [fact["fault"] for fact in found.facts.values() if isinstance(fact, dict)] == ["nvswitch-fatal"]
    none = "nv-fabricmanager[4177]: request failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
    assert [fact["outcome"] for fact in one(fabric_manager.read, none).facts.values() if isinstance(fact, dict)] == [
        "pass"
    ]
