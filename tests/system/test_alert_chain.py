"""The whole way of an alert: dgxcheck writes metrics, node_exporter serves them, Prometheus fires, and clears."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from checkout import ROOT
from programs import program
from servers import answer, free_port, running, until

from dgxcheck.cli import main

RULES = ROOT / "dgxcheck" / "integrations" / "dgxcheck-alerts.yml"


def test_an_alert_fires_for_a_lost_gpu_and_clears(tmp_path: Path) -> None:
    exporter, prometheus = program("prometheus-node-exporter"), program("prometheus")
    metrics = tmp_path / "textfile"
    metrics.mkdir()
    file = metrics / "dgxcheck.prom"

    def judge(box: str) -> int:
        return main(["health", "--format", "prometheus", "-o", str(file), "--from", box])

    rules, waited = re.subn(r"for: \d+m", "for: 1s", RULES.read_text(encoding="utf-8"))
    assert waited
    (tmp_path / "rules.yml").write_text(rules, encoding="utf-8")
    there, here = free_port(), free_port()
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
        "rule_files: [rules.yml]\n"
        f"scrape_configs: [{{job_name: node, static_configs: [{{targets: ['127.0.0.1:{there}']}}]}}]\n",
        encoding="utf-8",
    )

    seen: list[tuple[str, dict[str, str]]] = []

    def firing() -> list[tuple[str, dict[str, str]]] | None:
        """Names and labels of the alerts that fire; None while Prometheus does not answer."""
        text = answer(f"http://127.0.0.1:{here}/api/v1/alerts")
        found: list[dict[str, Any]] = json.loads(text)["data"]["alerts"] if text else []
        told = [(each["labels"]["alertname"], each["labels"]) for each in found if each["state"] == "firing"]
        return told if text else None

    def fire(*due: str) -> bool:
        """Do these alerts fire, and no other?"""
        if (told := firing()) is None:
            return False
        seen[:] = told
        return {name for name, _ in told} == set(due)

    def scraped(verdict: int) -> bool:
        query = f"http://127.0.0.1:{here}/api/v1/query?query=dgxcheck_verdict"
        text = answer(query)
        values = [each["value"][1] for each in json.loads(text)["data"]["result"]] if text else []
        return values == [str(verdict)]

    assert judge("dgx-1-v100-gpu-lost") == 2
    with running(
        tmp_path / "exporter.log", exporter, f"--web.listen-address=127.0.0.1:{there}", "--collector.disable-defaults",
        "--collector.textfile", f"--collector.textfile.directory={metrics}",
    ) as first, running(
        tmp_path / "prometheus.log", prometheus, f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{here}",
    ) as second:  # fmt: skip
        servers = [first, second]
        until(lambda: "node_textfile_scrape_error 0" in answer(f"http://127.0.0.1:{there}/metrics"),
              "node_exporter reads the file", tmp_path, servers)  # fmt: skip
        # a low score beside a verdict of fail is no alert of its own
        until(lambda: fire("DgxcheckFail", "DgxcheckCause"), "the alerts fire", tmp_path, servers)
        (failing,) = (labels for name, labels in seen if name == "DgxcheckCause")
        assert failing["component"] == "GPU@0000:0a:00.0"
        assert failing["pci_bus_id"] == "00000000:0A:00.0"
        assert failing["severity"] == "critical"

        assert judge("dgx-1-v100") == 0
        until(lambda: scraped(0), "the new file is scraped", tmp_path, servers)
        until(fire, "the alerts clear", tmp_path, servers)

        file.unlink()
        until(lambda: fire("DgxcheckGone"), "the alert for a missing file fires", tmp_path, servers)
