"""The dashboard: what Grafana needs is there, and a real Prometheus that holds boxes answers each of its queries."""

from __future__ import annotations

import json
import re
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from judging import judged
from programs import program
from sample import BOXES, swept
from servers import answer, free_port, running, until
from test_watch_output import EVENT, known

from dgxcheck.assessment import Request, assess
from dgxcheck.facts.missing import Missing
from dgxcheck.output import watch
from dgxcheck.output.exposition import STATES
from dgxcheck.output.health.for_programs import prometheus
from dgxcheck.output.report import HealthReport

DASHBOARD: dict[str, Any] = json.loads(
    (ROOT / "dgxcheck" / "integrations" / "grafana-dashboard.json").read_text(encoding="utf-8")
)
PANELS: list[dict[str, Any]] = [each for each in DASHBOARD["panels"] if each["type"] != "row"]
SIX = (
    "dgx-1-v100-gpu-lost", "dgx-1-v100", "dgx-1-v100-host-copy-slow", "dgx-1-p100-nccl-over-pcie",
    "dgx-1-p100-memory-slow", "dgx-a100-copies-slow",
)  # fmt: skip
TWENTY = (
    *SIX, *(box for box in BOXES if box not in SIX), "dgx-1-v100-hot", "dgx-1-v100-gpu-x8", "dgx-1-v100-port-down",
    "dgx-1-v100-switch-aer", "dgx-2-nvlink-slow", "dgx-a100-memory-unreadable", "k80-x8-driver-hangs",
)  # fmt: skip
GROWING = "dgx-1-v100"
"""Its NVLinks count errors while Prometheus looks, too few for an alert."""
CONTENT = {"prometheus": "text/plain; version=0.0.4", "openmetrics": "application/openmetrics-text; version=1.0.0"}


def queries() -> list[tuple[str, str, str]]:
    """Title of the panel, query for all nodes, legend."""
    return [
        (panel["title"], re.sub(r"\$(job|instance)\b", ".*", target["expr"]), target["legendFormat"])
        for panel in PANELS
        for target in panel["targets"]
    ]


def test_panels_have_ids_places_and_the_chosen_data_source() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        taken = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert taken.isdisjoint(cells), panel["title"]
        assert max(x for x, _ in taken) < 24
        cells |= taken
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert all(target["datasource"] == chosen == panel["datasource"] for panel in PANELS for target in panel["targets"])
    assert all(panel["targets"] and panel["title"] for panel in PANELS)
    assert "__inputs" not in DASHBOARD  # asked when somebody imports it by hand; provisioning does not know them


def test_every_variable_is_defined_and_every_query_is_of_the_chosen_nodes() -> None:
    names = {each["name"] for each in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([panel["targets"] for panel in PANELS])))
    assert used == names == {"datasource", "job", "instance"}
    for panel in PANELS:
        for target in panel["targets"]:
            metrics = re.findall(r"\bdgxcheck_\w+(\{[^}]*\})?", target["expr"])
            assert set(metrics) == {'{job=~"$job", instance=~"$instance"}'}, panel["title"]


def test_columns_that_a_table_renames_are_labels_or_values() -> None:
    known = {"Time", "Value", "__name__", "job", "instance", "kind", "component", "action", "pci_bus_id", "gpu",
             "model", "UUID", "driver_version", "vbios", "profile"} | {f"Value #{ref}" for ref in "ABCD"}  # fmt: skip
    for panel in PANELS:
        for step in panel.get("transformations", ()):
            options = step["options"]
            named = [
                *options.get("excludeByName", ()),
                *options.get("renameByName", ()),
                *options.get("indexByName", ()),
            ]
            assert {*named} <= known


def texts(nodes: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Content type and metrics of each node, every other as OpenMetrics; of one those of the watch too."""
    found = {}
    for number, name in enumerate(nodes):
        assessment = assess(name, Request(profile="k80-x8" if name.startswith("k80-x8") else "auto"))
        report = HealthReport(assessment=assessment, exit_code=0, every_metric=True)
        kind, render = (("openmetrics", prometheus.openmetrics), ("prometheus", prometheus.render))[number % 2]
        found[name] = (CONTENT[kind], render(report))
    kind, text = found[GROWING]
    assert kind == CONTENT["prometheus"]
    found[GROWING] = (kind, text + watch.metrics(known(EVENT)) + of_dcgm_exporter(GROWING))
    return found


def of_dcgm_exporter(name: str) -> str:
    """Temperatures as dcgm-exporter renders them, with the bus id as NVML spells it: upper case, a domain of 8 digits.

    https://github.com/NVIDIA/dcgm-exporter/blob/main/internal/pkg/rendermetrics/render_metrics.go
    """
    nvml = assess(name, Request()).snapshot.gpu
    assert not isinstance(nvml, Missing)
    return "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n" + "".join(
        f'DCGM_FI_DEV_GPU_TEMP{{gpu="{gpu.index}",UUID="{gpu.uuid}",pci_bus_id="0000{gpu.bdf.upper()}",'
        f'device="nvidia{gpu.minor}",modelName="{gpu.name}",Hostname="dgx1"}} 40\n'
        for gpu in nvml.gpus
    )


class Nodes(ThreadingHTTPServer):
    """All nodes on one port, each at the path of its name."""

    daemon_threads = True

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(("127.0.0.1", 0), Scraped)
        self.texts = texts(names)
        self.asked = 0


class Scraped(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        nodes = self.server
        assert isinstance(nodes, Nodes)
        name = self.path.strip("/")
        kind, text = nodes.texts[name]
        if name == GROWING:
            nodes.asked += 1
            text = re.sub(r"(?m)^(dgxcheck_nvlink_errors_total{.*}) 0$", rf"\1 {min(nodes.asked, 50)}", text)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def fleet(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """The address of a Prometheus that has scraped every node at least twice."""
    prometheus, port = program("prometheus"), free_port()
    with Nodes(names) as nodes:
        threading.Thread(target=nodes.serve_forever, daemon=True).start()
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            f"rule_files: ['{ROOT}/dgxcheck/integrations/dgxcheck-alerts.yml']\n"
            "scrape_configs:\n"
            "- job_name: node\n"
            f"  static_configs: [{{targets: {json.dumps(names)}}}]\n"
            "  relabel_configs:\n"
            "  - {source_labels: [__address__], target_label: instance}\n"
            "  - {source_labels: [__address__], target_label: __metrics_path__, replacement: /$1}\n"
            f"  - {{target_label: __address__, replacement: '127.0.0.1:{nodes.server_port}'}}\n",
            encoding="utf-8",
        )
        with running(
            folder / "prometheus.log", prometheus, f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
        ) as server:  # fmt: skip
            url = f"http://127.0.0.1:{port}"
            ready = f"count(count_over_time(dgxcheck_up[1m]) > 1) == {len(names)}"
            until(lambda: bool(asked(url, ready)), "all nodes are scraped twice", folder, [server])
            yield url
        nodes.shutdown()


def asked(url: str, query: str) -> list[dict[str, Any]]:
    """The series that a query gives; none while Prometheus does not answer."""
    text = answer(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    result: list[dict[str, Any]] = json.loads(text)["data"]["result"] if text else []
    return result


def named(url: str, alert: str) -> set[str]:
    """The nodes of an alert, firing or pending."""
    return {each["metric"]["instance"] for each in asked(url, f'ALERTS{{alertname=~"{alert}"}}')}


def severities(name: str) -> set[str]:
    return {cause["severity"] for cause in judged(name)[1]["causes"]}


@pytest.mark.parametrize("names", swept([(SIX,), (TWENTY,)], 2), ids=["six", "twenty"])
def test_prometheus_answers_every_query_of_every_panel(names: Sequence[str], tmp_path: Path) -> None:
    with fleet(tmp_path, names) as url:
        found = {(title, query): asked(url, query) for title, query, _ in queries()}
        assert [key for key, series in found.items() if not series] == []
        for title, query, legend in queries():
            labels = set(re.findall(r"{{(\w+)}}", legend))
            assert all(any(label in each["metric"] for each in found[title, query]) for label in labels), title
        shown = {title: series for (title, _), series in found.items()}
        verdicts = {each["metric"]["instance"]: float(each["value"][1]) for each in shown["Verdict"]}
        assert verdicts == {name: STATES[judged(name)[1]["verdict"]] for name in names}
        for code, word in enumerate(("pass", "warn", "fail", "unknown")):
            assert [float(each["value"][1]) for each in shown[f"Nodes: {word}"]] == [[*verdicts.values()].count(code)]
        causes = {(each["metric"]["instance"], each["metric"]["component"]) for each in
                  shown["Components to blame"]}  # fmt: skip
        assert ("dgx-1-v100-gpu-lost", "GPU@0000:0a:00.0") in causes
        assert {node for node, _ in causes} == {node for node in names if judged(node)[1]["causes"]}
        assert {node for node, _ in causes}.isdisjoint(BOXES)
        # the alerts: pending, for they fire after minutes
        failed = {name for name, code in verdicts.items() if code == STATES["fail"]}
        until(lambda: named(url, "DgxcheckFail") == failed, "the alerts see the verdicts", tmp_path, [])
        bad = {name for name, code in verdicts.items() if code}
        until(lambda: named(url, ".*") >= bad, "each rule in its turn", tmp_path, [])
        blamed = {node for node in names if "fail" in severities(node)}
        until(lambda: named(url, "DgxcheckCause") == blamed, "the alerts see the causes", tmp_path, [])
        until(lambda: len(watched := named(url, "DgxcheckWatch.*")) == 1 and named(url, ".*") == bad | watched,
              "no other alert", tmp_path, [])  # fmt: skip
        joined = asked(url, "dgxcheck_gpu_info * on (instance, gpu, UUID, pci_bus_id) DCGM_FI_DEV_GPU_TEMP")
        assert [each["value"][1] for each in joined] == ["40"] * 8
        grown = {each["metric"]["instance"] for each in shown["NVLink"] if float(each["value"][1]) > 0}
        assert grown == {GROWING}
