"""The samples for Kubernetes: manifests by the API's schemas, the plug-in by node-problem-detector's protocol."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import kubernetes_validate
import pytest
import yaml
from checkout import ROOT
from programs import program

from dgxcheck import __version__
from dgxcheck.cli import main
from dgxcheck.integrate import INTEGRATIONS

FOLDER = ROOT / "dgxcheck" / "integrations"
SCRIPT = "npd-dgxcheck.sh"
OPTIONS = ("-q", "--fail-on", "fail", "--format", "nagios")
API = ("1.25", "1.37")
"""The oldest with all that the manifests use (CronJob v1, and seccompProfile in Pod Security), and the newest."""
Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))


def pods() -> dict[str, Manifest]:
    """Pod specs by the kind that makes them."""
    of_kind = {each["kind"]: each["spec"] for each in manifests() if "spec" in each}
    cron = of_kind["CronJob"]["jobTemplate"]["spec"]["template"]["spec"]
    return {"DaemonSet": of_kind["DaemonSet"]["template"]["spec"], "CronJob": cron}


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod.get("initContainers", []), *pod["containers"]]


@pytest.mark.parametrize("version", API)
def test_the_manifests_are_what_the_api_takes(version: str) -> None:
    for manifest in manifests():
        kubernetes_validate.validate(manifest, version, strict=True)
    broken = manifests()[1]
    broken["spec"]["template"]["spec"]["containers"][0]["privilleged"] = False
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, version, strict=True)


@pytest.mark.parametrize("kind", ["DaemonSet", "CronJob"])
def test_a_pod_has_least_privilege(kind: str) -> None:
    pod = pods()[kind]
    assert not {"hostPID", "hostNetwork", "hostIPC"} & pod.keys()
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in pod["tolerations"]
    for container in containers(pod):
        context = container["securityContext"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert "privileged" not in context
        assert {"requests", "limits"} <= container["resources"].keys()
        assert {"name": "host", "mountPath": "/host", "readOnly": True} in container["volumeMounts"]
        assert container["image"] == f"registry.example.org/dgxcheck:{__version__}"
    as_root = [container["name"] for container in containers(pod) if container["securityContext"].get("runAsUser") == 0]
    assert as_root == (["labels"] if kind == "DaemonSet" else [])
    written = {mount["name"] for each in containers(pod) for mount in each["volumeMounts"] if not mount.get("readOnly")}
    assert written == ({"features", "state"} if kind == "DaemonSet" else set())


def test_what_the_pods_run_is_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [" ".join(each.get("args", [])) for pod in pods().values() for each in containers(pod)]
    lines = [
        line for text in commands for line in re.findall(r"(?:dgxcheck )?((?:health|topo) --root /host[^|\n]*)", text)
    ]
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line.replace("--root /host", "--from dgx-1-v100").replace("--extended", "--quick")
                            .replace("/features.d", str(tmp_path)))  # fmt: skip
        assert main(words) == 0, capsys.readouterr().err
    assert "dgxcheck.nvlink-graph=dgx-1-v100\n" in (tmp_path / "dgxcheck").read_text(encoding="utf-8")


def test_the_shell_of_a_pod_ends_when_it_is_told_to(tmp_path: Path) -> None:
    (container,) = pods()["DaemonSet"]["containers"]
    (tmp_path / "dgxcheck").write_text("#!/bin/sh\necho '{}'\n", encoding="ascii")
    (tmp_path / "dgxcheck").chmod(0o755)
    words = [*container["command"], *container["args"]]
    with subprocess.Popen(words, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"{}\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0


def test_the_image_is_that_of_the_manifests() -> None:
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG BASE=\S+:[\w.]+-\w+", text, re.MULTILINE)
    (user,) = re.findall(r"^USER (\d+):", text, re.MULTILINE)
    assert {pod["securityContext"]["runAsUser"] for pod in pods().values()} == {int(user)}
    assert f"registry.example.org/dgxcheck:{__version__}" in text
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert f" dgxcheck.pyz {json.loads(entry)[0]}\n" in text


def npd() -> Manifest:
    config: Manifest = json.loads((FOLDER / "npd-dgxcheck.json").read_text(encoding="utf-8"))
    return config


def test_the_configuration_is_one_of_node_problem_detector() -> None:
    """What its ``Validate`` asks for, and what its results need."""
    config, (rule,) = npd(), npd()["rules"]
    assert config["plugin"] == "custom"
    assert (rule["type"], rule["condition"]) == ("permanent", config["conditions"][0]["type"])
    timeouts = {config["pluginConfig"]["timeout"], rule["timeout"]}
    assert timeouts == {"40s"}  # of a rule at most that of all; more than the script takes
    assert config["pluginConfig"]["enable_message_change_based_condition_update"] is True
    (place,) = (each.files[SCRIPT] for each in INTEGRATIONS if each.name == "npd")
    assert rule["path"] == place


def test_nvsentinel_asks_for_the_condition_and_reason() -> None:
    values = yaml.safe_load((FOLDER / "nvsentinel.yaml").read_text(encoding="utf-8"))
    policies = values["kubernetes-object-monitor"]["policies"]
    (rule,) = npd()["rules"]
    for policy in policies:
        asked = dict(re.findall(r'c\.(\w+) == "(\w+)"', policy["predicate"]["expression"]))
        assert asked == {"type": rule["condition"], "reason": rule["reason"], "status": "True"}


@pytest.mark.parametrize(
    ("message", "action"),
    [
        ("GPU2 (0a:00.0): Xid 62 -> drain, nvidia-smi -r -i 0000:0a:00.0", "RESTART_BM"),
        ("GPU2 (0a:00.0): 2 uncorrected memory errors -> drain, reset GPU", "RESTART_BM"),
        ("GPU (0a:00.0): lost, NVML cannot open it -> drain, reboot", "RESTART_BM"),
        ("GPU1 (07:00.0): 63 retired pages -> dcgmi diag -r 3", "RUN_FIELDDIAG"),
        ("GPU2 (0a:00.0): PCIe x8 instead of x16 -> drain, cold power cycle", "CONTACT_SUPPORT"),
        ("GPU (0a:00.0): lost, NVML cannot open it -> drain, reboot; 2 more", "CONTACT_SUPPORT"),
    ],
)
def test_nvsentinel_takes_the_action_of_the_fault_from_one_policy(message: str, action: str) -> None:
    values = yaml.safe_load((FOLDER / "nvsentinel.yaml").read_text(encoding="utf-8"))
    taken = []
    for policy in values["kubernetes-object-monitor"]["policies"]:
        asked = re.search(r'(!?)c\.message\.matches\("(.*)"\)', policy["predicate"]["expression"])
        assert asked is not None
        if (re.search(asked[2], message) is None) == bool(asked[1]):
            taken.append(policy["healthEvent"]["recommendedAction"])
    assert taken == [action]


class Plugin(NamedTuple):
    """What node-problem-detector has of a run."""

    status: str
    message: str


def run(folder: Path, dgxcheck: str, *args: str, limit: float = 20) -> Plugin:
    """As its ``plugin.go`` does: stdout cut, 0 is OK, 1 is not, everything else and a time-out is unknown."""
    most = npd()["pluginConfig"]["max_output_length"]
    (folder / "dgxcheck").write_text(f"#!/bin/bash\n{dgxcheck}\n", encoding="utf-8")
    (folder / "dgxcheck").chmod(0o755)
    text = (FOLDER / SCRIPT).read_text(encoding="utf-8")
    text = text.replace("\nPATH=", f"\nPATH={folder}:").replace("/etc/default/", f"{folder}/default-")
    (folder / SCRIPT).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [program("bash"), str(folder / SCRIPT), *args], capture_output=True, timeout=limit, check=False
    )
    message = done.stdout.strip()
    assert message == message[:most], "node-problem-detector would cut it"
    return Plugin({0: "OK", 1: "NonOK"}.get(done.returncode, "Unknown"), message.decode("ascii"))


def said(name: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """A ``dgxcheck`` that says what it says of a recording."""
    code = main(["health", *OPTIONS, *more, "--from", name])
    return f"printf '%s' {shlex.quote(capsys.readouterr().out)}; exit {code}"


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        ("dgx-1-v100", ("OK", " checks passed")),
        ("dgx-1-v100-power-cap", ("OK", "")),
        ("dgx-1-v100-gpu-lost", ("NonOK", "GPU (0a:00.0): lost, NVML cannot open it -> drain, reboot")),
        ("dgx-1-v100-hot", ("NonOK", "GPU2: 88 C -> drain, check this GPU's heat ..")),
    ],
)
def test_a_fault_is_a_condition(
    recording: str, expected: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(tmp_path, said(recording, capsys))
    assert found.status == expected[0]
    assert expected[1] in found.message
    assert found.message


@pytest.mark.parametrize(
    "broken",
    ["exit 127", 'echo "python: no module" >&2; exit 1', "echo Traceback; exit 2", "exit 0", "kill -9 $$",
     "echo 'DGXCHECK UNKNOWN - x | y'; exit 0"],
)  # fmt: skip
def test_no_answer_is_unknown_and_no_fault(broken: str, tmp_path: Path) -> None:
    assert run(tmp_path, broken).status == "Unknown"


def test_a_long_message_ends_at_a_word(tmp_path: Path) -> None:
    words = " ".join(f"fault{number}" for number in range(40))
    found = run(tmp_path, f"echo 'DGXCHECK CRITICAL - {words} | a=1'; exit 2")
    assert found.status == "NonOK"
    assert re.fullmatch(r"(fault\d+ )+\.\.", found.message)
    assert len(found.message) > 70


def test_a_message_is_ascii(tmp_path: Path) -> None:
    """A character that is cut in half is no UTF-8, and the API takes nothing else."""
    words = "88 °C " * 14
    found = run(tmp_path, f"echo 'DGXCHECK CRITICAL - {words} | a=1'; exit 2")
    assert found.message.startswith("88 C 88 C ")


def test_arguments_and_options_of_the_host_go_to_dgxcheck(tmp_path: Path) -> None:
    (tmp_path / "default-dgxcheck").write_text('DGXCHECK_OPTIONS="--root /host"\n', encoding="ascii")
    found = run(tmp_path, 'echo "DGXCHECK CRITICAL - ${*:7}"; exit 2', "--only", "nvlink")
    assert found == ("NonOK", "--deadline 20 --root /host --only nvlink")


def test_a_driver_that_hangs_is_given_up_in_time(tmp_path: Path) -> None:
    text = (FOLDER / SCRIPT).read_text(encoding="utf-8")
    kill_after, limit = map(int, re.findall(r"timeout -k (\d+) (\d+) dgxcheck", text)[0])
    assert kill_after + limit < int(npd()["rules"][0]["timeout"].removesuffix("s"))
    (tmp_path / "timeout").write_text('#!/bin/bash\nexec /usr/bin/timeout -k 0.1 0.2 "${@:4}"\n', encoding="ascii")
    (tmp_path / "timeout").chmod(0o755)
    assert run(tmp_path, "trap '' TERM; sleep 5").status == "Unknown"
