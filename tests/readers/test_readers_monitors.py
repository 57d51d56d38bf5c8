"""Tables and metrics of monitors: dmon of nvidia-smi and of dcgmi, and /metrics of dcgm-exporter, value by value."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json
from dgxcheck.readers.dcgm import fields, messages, preflight
from dgxcheck.readers.dcgm.fields import NAMES, TAGS
from dgxcheck.readers.host import node_exporter
from dgxcheck.readers.known import read_known
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi import dmon


def _answers(found: Imported, bdf: str) -> dict[str, Json]:
    """NVML's answers about one GPU, by function and arguments."""
    return {
        key.removeprefix("nvml nvmlDeviceGet").replace(f" {bdf}", ""): fact
        for key, fact in found.facts.items()
        if f" {bdf}" in key
    }


def _reports(found: Imported) -> dict[str, Json]:
    return {
        key.removeprefix("stated report "): fact["fault"]
        for key, fact in found.facts.items()
        if key.startswith("stated report") and isinstance(fact, dict)
    }


DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk  pviol  tviol  sbecc  dbecc    pci
# Idx      W      C      C      %      %      %      %    MHz    MHz      %   bool   errs   errs   errs
    0     57     34     33      0      0      -      -    877    135      0      0      0      0      0
    1    299     88     80     99     60      -      -    877   1290     12      1      0      0      2
    0    290     61     60     99     60      -      -    877   1530      0      0      0      0      0
    1    298     86     80     99     60      -      -    877   1275     12      1      0      0      2
"""


def test_the_hottest_sample_of_each_gpu_counts() -> None:
    found = one(dmon.read_dmon, DMON)
    assert unread([found], DMON) == []
    first, second = _answers(found, unplaced(0)), _answers(found, unplaced(1))
    assert (first["Temperature 0"], first["PowerUsage"], first["ClockInfo 1"]) == (61, 290_000, 1530)
    assert (second["Temperature 0"], second["PowerUsage"], second["PcieReplayCounter"]) == (88, 299_000, 2)
    assert second["TotalEccErrors 1 1"] == 0
    assert _reports(found) == {"GPU1 nvidia-smi-dmon-tviol": "thermal-slowdown"}


def test_rows_that_are_of_no_gpu_or_not_whole() -> None:
    rows = DMON + DMON.splitlines()[2].replace("    0  ", "   64  ", 1) + "\n    2     57\n"
    found = one(dmon.read_dmon, rows)
    assert unread([found], rows) == [7, 8]
    assert found.facts == one(dmon.read_dmon, DMON).facts
    short = DCGMI + "GPU 3     34\n"
    assert unread([one(fields.read_dmon, short)], short) == [8]


def test_time_and_missing_values() -> None:
    text = "#Time        gpu    pwr  gtemp\n#HH:MM:SS    Idx      W      C\n 10:11:12      3      -     41\n"
    found = one(dmon.read_dmon, text)
    assert unread([found], text) == []
    assert _answers(found, unplaced(3)) == {"Temperature 0": 41}


KNOWN = (
    ("# gpu        pid  type    sm   mem   command", "# Idx          #   C/G     %     %   name",
     "    0       1234     C    99    10   python"),
    ("memory [MHz], graphics [MHz]", "877 MHz, 1530 MHz", "877 MHz, 1522 MHz"),
    ("pid, process_name, used_gpu_memory [MiB]", "1234, python, 1000 MiB"),
    ("gpu_name, pid, gpu_utilization [%], max_memory_usage [MiB], time [ms]", "Tesla V100, 12, 90 %, 100 MiB, 5 ms"),
    ("| GPU instance profiles:                 |", "| GPU   Name        ID    Instances      |"),
    ("======NVSMI CONF-COMPUTE LOG======", "    CC State             : OFF", "    Multi-GPU Mode       : None"),
)  # fmt: skip


@pytest.mark.parametrize("lines", KNOWN)
def test_what_holds_no_fact_is_known_line_by_line(lines: tuple[str, ...]) -> None:
    found = read_known(lines)
    assert unread(found, "\n".join(lines)) == []
    assert [part.facts for part in found] == [{}]


DCGMI = """\
#Entity   TMPTR  POWER  XIDER  EDVTL  RRP  GPURECOV  SMCLK
ID        C      W
GPU 0     34     61.5   0      0      0    0         1980
GPU 1     36     60.2   95     2      1    1         345
GPU 2     N/A    N/A    43     N/A    N/A  N/A       N/A
Switch 0  N/A    N/A    N/A    N/A    N/A  N/A       N/A
GPU 1     37     60.2   95     2      1    1         345
"""


def test_dcgmi_dmon() -> None:
    found = one(fields.read_dmon, DCGMI)
    assert unread([found], DCGMI) == []
    sick = _answers(found, unplaced(1))
    assert sick == {
        "Temperature 0": 36, "PowerUsage": 60_200, "TotalEccErrors 1 0": 2, "ClockInfo 1": 345, "FieldValues 230": 1,
    } | {key: fact for key, fact in sick.items() if key.startswith("RemappedRows")}  # fmt: skip
    assert _answers(found, unplaced(2)) == {}
    assert _reports(found) == {"GPU1 dcgmi-dmon-xid-95": "ecc-uncorrected", "GPU2 dcgmi-dmon-xid-43": ""}


def test_dcgmi_dmon_of_old_releases() -> None:
    text = "# Entity       TMPTR       POWER\n      Id            C           W\n     0             40        51.2\n"
    found = one(fields.read_dmon, text)
    assert unread([found], text) == []
    assert _answers(found, unplaced(0)) == {"Temperature 0": 40, "PowerUsage": 51_200}


def _sample(metric: str, gpu: int, value: str, host: str = "gpu07", labels: str = "") -> str:
    ids = f'gpu="{gpu}",UUID="GPU-{gpu}2345678-0000-0000-0000-000000000000",pci_bus_id="00000000:{gpu + 1}B:00.0"'
    return f'{metric}{{{ids},device="nvidia{gpu}",modelName="Tesla V100-SXM2-16GB",Hostname="{host}"{labels}}} {value}'


METRICS = "\n".join([
    "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).", "# TYPE DCGM_FI_DEV_GPU_TEMP gauge",
    _sample("DCGM_FI_DEV_GPU_TEMP", 0, "34"), _sample("DCGM_FI_DEV_GPU_TEMP", 1, "9223372036854775794"),
    _sample("DCGM_FI_DEV_POWER_USAGE", 0, "51.250000"), _sample("DCGM_FI_DEV_MEMORY_TEMP", 0, "0"),
    _sample("DCGM_FI_DEV_RETIRED_DBE", 0, "2"), _sample("DCGM_FI_DEV_RETIRED_PENDING", 0, "1"),
    _sample("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0, "1.5e+01"), _sample("DCGM_FI_DEV_FB_USED", 0, "NaN"),
    _sample("DCGM_FI_DEV_XID_ERRORS", 0, "48", labels=',err_code="48",err_msg="Double Bit ECC Error"'),
    _sample("DCGM_FI_DEV_XID_ERRORS", 1, "0"), _sample("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 1, "7"),
    _sample("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 0, "64"), _sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0, "0.5"),
])  # fmt: skip


def test_metrics_of_dcgm_exporter() -> None:
    found = one(fields.read_metrics, METRICS)
    assert unread([found], METRICS) == []
    assert found.host == "gpu07"
    first, second = _answers(found, "0000:1b:00.0"), _answers(found, "0000:2b:00.0")
    assert (first["Temperature 0"], first["PowerUsage"], first["TotalEccErrors 1 0"]) == (34, 51_250, 15)
    assert (first["RetiredPagesPendingStatus"], first["CurrentClocksEventReasons"]) == (1, 64)
    assert first["RetiredPages 1"] == [{"address": 0}, {"address": 0}]
    assert "FieldValues 82" not in first
    assert {"Temperature 0", "MemoryInfo"}.isdisjoint(second)
    assert second["Name"] == "Tesla V100-SXM2-16GB"
    assert _reports(found) == {
        "GPU0 dcgm-exporter-xid-48": "ecc-uncorrected", "GPU1 dcgm-exporter-nvlink-crc-flit-errors": "",
    }  # fmt: skip


@pytest.mark.parametrize(("metric", "value", "more"), [
    ("DCGM_FI_DEV_MEMORY_TEMP", "0", 0), ("DCGM_FI_DEV_MEMORY_TEMP", "60", 1),
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "0", 0),
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "1", 1),
])  # fmt: skip
def test_a_zero_is_no_temperature_and_no_error(metric: str, value: str, more: int) -> None:
    temperature = _sample("DCGM_FI_DEV_GPU_TEMP", 0, "34")
    both = one(fields.read_metrics, f"{temperature}\n{_sample(metric, 0, value)}").facts
    assert len(both) - len(one(fields.read_metrics, temperature).facts) == more


@pytest.mark.parametrize(("xid", "value", "many"), [("48", "1", 1), ("48", "0", 0), ("none", "1", 0), ("48", "NaN", 0)])
def test_xids_that_the_exporter_counted(xid: str, value: str, many: int) -> None:
    sample = _sample("DCGM_EXP_XID_ERRORS_COUNT", 0, value, labels=f',xid="{xid}"')
    found = one(fields.read_metrics, f"{METRICS.splitlines()[2]}\n{sample}")
    assert len(_reports(found)) == many


def test_metrics_of_two_hosts_are_two_machines() -> None:
    text = "\n".join(_sample("DCGM_FI_DEV_GPU_TEMP", 0, "34", host) for host in ("gpu07.example.org", "gpu08"))
    assert [found.host for found in fields.read_metrics(tuple(text.splitlines()))] == ["gpu07", "gpu08"]


def test_metrics_of_the_first_exporter() -> None:
    labels = 'gpu="0",uuid="GPU-12345678-0000-0000-0000-000000000000"'
    text = f"dcgm_gpu_temp{{{labels}}} 41\ndcgm_xid_errors{{{labels}}} 79\n"
    found = one(fields.read_metrics, text)
    assert _answers(found, unplaced(0))["Temperature 0"] == 41
    assert _reports(found) == {"GPU0 dcgm-exporter-xid-79": "gpu-lost"}


@pytest.mark.parametrize(("model", "fault"), [
    ("NVIDIA A100-SXM4-40GB", Fault.XID), ("Tesla V100-SXM2-16GB", Fault.RETIREMENT_FAILED),
])  # fmt: skip
def test_the_last_xid_64_is_the_fault_that_the_kernel_log_makes_of_it(model: str, fault: FaultKind) -> None:
    assert messages.of_xid(64, model) == ("warn", fault)


def test_every_path_has_a_short_name_and_a_metric() -> None:
    metrics = {*NAMES.values()}
    assert {*TAGS.values()} <= metrics
    assert all(path.startswith(("nvlink ", "c2c ")) for path in metrics - {*TAGS.values()})  # of NVLink 5


@pytest.mark.parametrize("name", ["COUNT_LINK_RECOVERY_FAILED_EVENTS", "RECOVERY_FAILED_TOTAL"])
def test_a_link_of_nvlink_5_that_did_not_recover(name: str) -> None:
    """NVIDIA/dcgm-exporter issue 581; the name since DCGM 4.7"""
    assert _reports(one(fields.read_metrics, _sample(f"DCGM_FI_DEV_NVLINK_{name}", 1, "7"))) == {
        "GPU1 dcgm-exporter-nvlink-failed-link-recoveries": "nvlink-errors"
    }


PREFLIGHT = """\
{
  "event": "Diagnostic summary",
  "level": "info",
  "passed": 3,
  "failed": 2,
  "total": 5,
  "module": "preflight-dcgm-diag"
}
{
  "event": "Test fail",
  "level": "error",
  "test": "memory",
  "error_code": 80,
  "detail": "GPU 2 has uncorrectable memory errors.",
"""


def test_preflight_results_laid_out_and_cut() -> None:
    found = one(preflight.read, PREFLIGHT)
    assert unread([found], PREFLIGHT) == []
    assert _reports(found) == {"GPU2 preflight-memory": "ecc-uncorrected", "host preflight-summary": "test-failed"}


@pytest.mark.parametrize(("entry", "found"), [
    ('"event": "started"', ()), ('"passed": 5, "failed": 0, "total": 5', ("pass",)),
    ('"passed": 4, "failed": 0, "total": 5', ()), ('"passed": "5", "failed": "0", "total": 5', ()),
    ('"passed": 4, "failed": 1, "total": 5', ("fail",)), ('"test": "memory", "level": "error"', ("fail",)),
])  # fmt: skip
def test_a_record_of_preflight(entry: str, found: tuple[str, ...]) -> None:
    facts = [fact for part in preflight.read((f'{{"module": "preflight", {entry}}}',)) for fact in part.facts.values()]
    assert tuple(fact["outcome"] for fact in facts if isinstance(fact, dict)) == found
    assert not [fact for fact in facts if isinstance(fact, dict) and str(fact["text"]).endswith(": ")]


def test_preflight_results_on_one_line() -> None:
    entry = '{"level":"warning","test":"software","detail":"Persistence mode for GPU 1 is disabled","module":"%s"}'
    found = one(preflight.read, entry % "preflight-dcgm-diag")
    assert _reports(found) == {"GPU1 preflight-software": "persistence-off"}
    assert preflight.read((entry % "web",)) == ()


NODE = """\
# TYPE node_infiniband_state_id gauge
node_infiniband_info{board_id="MT_8",device="mlx5_0",firmware_version="16.28.1002",hca_type="MT4119"} 1
node_infiniband_state_id{device="mlx5_0",port="1"} 4
node_infiniband_physical_state_id{device="mlx5_0",port="1"} 5
node_infiniband_physical_state_id{device="mlx5_0",port="2"} 6
node_infiniband_symbol_error_total{device="mlx5_0",port="1"} 1.2e+03
node_infiniband_link_downed_total{device="mlx5_0",port="1"} NaN
node_infiniband_link_downed_total{device="mlx5_0",port="1"} 1e+999
node_infiniband_link_downed_total{device="mlx5_0",port="1"} 2.5
node_infiniband_link_downed_total{device="mlx5_0",port="1"} 1.1e15
node_infiniband_link_downed_total{device="mlx5_0",port="100"} 7
node_infiniband_link_downed_total{device="mlx5_0",port="1"} 1E15
node_infiniband_state_id{device="../mlx5_9",port="1"} 4
node_edac_uncorrectable_errors_total{controller="1"} 2
node_edac_uncorrectable_errors_total{controller="x"} 2
node_edac_uncorrectable_errors_total{controller="2"} NaN
node_infiniband_of_tomorrow_total{device="mlx5_0",port="1"} 3
node_dmi_info{product_name="DGX-1 with V100",system_vendor="NVIDIA"} 1
node_load1 0.21
"""


def test_metrics_of_node_exporter_are_the_files_that_it_read() -> None:
    found = one(node_exporter.read_node_exporter, NODE)
    assert unread([found], NODE) == []
    port, edac = "text /sys/class/infiniband/mlx5_0/ports/1", "/sys/devices/system/edac/mc"
    assert found.facts == {
        "names /sys/class/infiniband": ["mlx5_0"], "names /sys/class/infiniband/mlx5_0/ports": ["1", "2"],
        "text /sys/class/infiniband/mlx5_0/fw_ver": "16.28.1002\n",
        "text /sys/class/infiniband/mlx5_0/hca_type": "MT4119\n",
        "text /sys/class/infiniband/mlx5_0/board_id": "MT_8\n",
        f"{port}/state": "4: ACTIVE\n", f"{port}/phys_state": "5: LinkUp\n",
        f"{port}/counters/symbol_error": "1200\n", f"{port}/counters/link_downed": f"{10**15}\n",
        "text /sys/class/infiniband/mlx5_0/ports/2/phys_state": "6: LinkErrorRecovery\n",
        f"names {edac}": ["mc1"], f"text {edac}/mc1/ue_count": "2\n",
        "text /sys/class/dmi/id/product_name": "DGX-1 with V100\n", "text /sys/class/dmi/id/sys_vendor": "NVIDIA\n",
    }  # fmt: skip
