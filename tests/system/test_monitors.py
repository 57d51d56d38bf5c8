"""Files for other monitors, each read by its program where Debian has it, else held to its documented protocol."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from getpass import getuser
from pathlib import Path

import pytest
import yaml
from checkout import ROOT
from programs import program
from prometheus_client.parser import text_string_to_metric_families
from sample import swept

from dgxcheck.cli import main
from dgxcheck.input_file import load as load_toml

FOLDER = ROOT / "dgxcheck" / "integrations"
REAL = "/usr/local/bin/dgxcheck"
BROKEN = {
    "not there": "exit 127",
    "no Python": 'echo "python: cannot open file" >&2; exit 2',
    "a traceback": "echo Traceback >&2; exit 1",
    "killed": "kill -9 $$",
}


def ran(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, timeout=120, check=False)


def installed(name: str, folder: Path, body: str) -> Path:
    """A shipped script with a program of this body in the place of dgxcheck."""
    stand_in = folder / "dgxcheck"
    stand_in.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    script = folder / name
    script.write_text((FOLDER / name).read_text(encoding="utf-8").replace(REAL, str(stand_in)), encoding="utf-8")
    for file in (stand_in, script):
        file.chmod(0o755)
    return script


def saying(box: str, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """A dgxcheck that answers whatever it is asked as ``health`` does about a recording."""
    code = main(["health", *options, "--from", box])
    return f"printf '%s' {shlex.quote(capsys.readouterr().out)}; exit {code}"


@pytest.mark.parametrize(
    ("box", "state"),
    [("dgx-1-v100", "0"), ("dgx-1-v100-power-cap", "1"), ("dgx-1-v100-gpu-lost", "2"), ("dgx-1-v100-no-nvml", "2"),
     ("k80-x8-driver-hangs", "2")],
)  # fmt: skip
def test_checkmk_gets_one_line_of_four_parts(
    box: str, state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = installed("checkmk-local", tmp_path, saying(box, capsys, "--format", "nagios"))
    done = ran(str(script))
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    given, name, metrics, text = line.split(" ", 3)
    assert (given, name) == (state, "dgxcheck")
    values = dict(pair.split("=") for pair in metrics.split("|"))
    assert all(re.fullmatch(r"[A-Za-z]\w*", key) and re.fullmatch(r"-?[\d.]+", value) for key, value in values.items())
    assert {"fail", "coverage"} <= values.keys()
    assert text.count("\\n") == sum(int(values[key]) for key in ("warn", "fail", "unknown"))
    lost = "GPU (0a:00.0): lost, NVML cannot open it -> drain, reboot\\nFAIL gpu.lost "
    assert box != "dgx-1-v100-gpu-lost" or text.startswith(lost)


@pytest.mark.parametrize("how", BROKEN)
def test_a_dgxcheck_that_does_not_run_is_unknown_to_checkmk(how: str, tmp_path: Path) -> None:
    done = ran(str(installed("checkmk-local", tmp_path, BROKEN[how])))
    assert done.stdout.startswith("3 dgxcheck - dgxcheck did not run (exit code ")
    assert done.stdout.count("\n") == 1


def test_nagios_takes_the_command_and_the_service(tmp_path: Path) -> None:
    nagios = program("nagios4")
    (tmp_path / "objects.cfg").write_text(
        "define contact {\n contact_name a\n host_notifications_enabled 0\n service_notifications_enabled 0\n"
        " host_notification_period t\n service_notification_period t\n host_notification_commands c\n"
        " service_notification_commands c\n}\n"
        "define timeperiod {\n timeperiod_name t\n alias t\n}\n"
        "define command {\n command_name c\n command_line /bin/true\n}\n"
        "define host {\n host_name dgx1\n address 127.0.0.1\n max_check_attempts 1\n contacts a\n check_period t\n"
        " notification_period t\n check_command c\n}\n"
        "define hostgroup {\n hostgroup_name dgx\n members dgx1\n}\n"
        "define service {\n name generic-service\n register 0\n max_check_attempts 3\n contacts a\n check_period t\n"
        " notification_period t\n}\n",
        encoding="utf-8",
    )
    main_file = tmp_path / "nagios.cfg"
    main_file.write_text(
        f"nagios_user={getuser()}\nnagios_group={getuser()}\ncfg_file={tmp_path}/objects.cfg\ncfg_file={FOLDER}/nagios.cfg\nlog_file={tmp_path}/log\n"
        f"check_result_path={tmp_path}\ntemp_file={tmp_path}/t\ncommand_file={tmp_path}/c\nlock_file={tmp_path}/l\n"
        f"status_file={tmp_path}/s\nobject_cache_file={tmp_path}/o\nstate_retention_file={tmp_path}/r\n",
        encoding="utf-8",
    )
    done = ran(nagios, "-v", str(main_file))
    assert done.returncode == 0, done.stdout
    assert "Checked 1 services." in done.stdout


@pytest.mark.parametrize("broken", ["", "command_endpoint", "CheckCommand"])
def test_icinga_takes_the_command_and_the_service(broken: str, tmp_path: Path) -> None:
    icinga = program("icinga2")
    text = (FOLDER / "icinga2.conf").read_text(encoding="utf-8")
    (tmp_path / "dgxcheck.conf").write_text(text.replace(broken, "no_such_word") if broken else text, encoding="utf-8")
    (tmp_path / "icinga2.conf").write_text(
        'object Endpoint "master" {}\nobject Zone "master" { endpoints = [ "master" ] }\n'
        'object Endpoint "dgx1" { host = "127.0.0.1" }\n'
        'object Zone "dgx1" { endpoints = [ "dgx1" ]; parent = "master" }\n'
        'object CheckCommand "alive" { command = [ "/bin/true" ] }\n'
        'object Host "dgx1" { zone = "master"; check_command = "alive"; vars.dgx = true }\n'
        f'include "{tmp_path}/dgxcheck.conf"\n',
        encoding="utf-8",
    )
    places = [f"-D{name}={tmp_path}" for name in ("DataDir", "LogDir", "CacheDir", "InitRunDir", "SpoolDir")]
    done = ran(
        icinga,
        "daemon",
        "-C",
        "-c",
        str(tmp_path / "icinga2.conf"),
        "-DNodeName=master",
        *places,
        ICINGA2_USER=getuser(),
        ICINGA2_GROUP=getuser(),
    )
    assert (done.returncode == 0) == (not broken), done.stdout
    assert broken or "Instantiated 1 Service." in done.stdout


@pytest.mark.parametrize("box", ["dgx-1-v100", "dgx-1-v100-gpu-lost"])
def test_telegraf_gets_metrics_and_exit_code_0(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It ignores what a command printed that failed."""
    (given,) = load_toml(str(FOLDER / "telegraf.conf"))["inputs"]["exec"]
    assert given["data_format"] == "prometheus"
    (command,) = given["commands"]
    words = shlex.split(command)
    assert words[0] == REAL
    assert main([*words[1:], "--from", box]) == 0
    assert [*text_string_to_metric_families(capsys.readouterr().out)]
    assert float(words[words.index("--deadline") + 1]) + 5 < float(given["timeout"].rstrip("s"))


def test_the_agent_of_zabbix_answers_with_the_metrics(tmp_path: Path) -> None:
    agent = program("zabbix_agentd")
    file = tmp_path / "dgxcheck.prom"
    main(["health", "--format", "prometheus", "--from", "dgx-1-v100-gpu-lost", "-o", str(file)])
    text = (FOLDER / "zabbix-agent.conf").read_text(encoding="utf-8")
    assert text.count("/var/lib/prometheus/node-exporter/dgxcheck.prom") == 1
    conf = tmp_path / "agent.conf"
    conf.write_text("Server=127.0.0.1\nHostname=dgx1\n" + re.sub(r"/\S+/dgxcheck\.prom", str(file), text))
    done = ran(agent, "-c", str(conf), "-t", "dgxcheck.metrics")
    assert done.returncode == 0, done.stderr
    assert "dgxcheck_verdict 2" in done.stdout


@pytest.mark.parametrize("box", ["dgx-1-v100-gpu-lost", "dgx-h100-nvlink-down", "gb200-nvl72-c2c-down"])
def test_the_template_of_zabbix_finds_its_metrics(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every pattern gives one value, every macro a label, every trigger an item."""
    (template,) = yaml.safe_load((FOLDER / "zabbix-template.yml").read_text(encoding="utf-8"))["zabbix_export"][
        "templates"
    ]
    main(["health", "--format", "prometheus", "--from", box])
    samples = [sample for family in text_string_to_metric_families(capsys.readouterr().out)
               for sample in family.samples]  # fmt: skip

    def matching(pattern: str, macros: dict[str, str]) -> list[float]:
        name, _, rest = pattern.partition("{")
        for macro, value in macros.items():
            rest = rest.replace(macro, value)
        wanted = set(re.findall(r'(\w+)="([^"]*)"', rest))
        return [each.value for each in samples if each.name == name and wanted <= {*each.labels.items()}]

    items = list(template["items"])
    values = {}
    for rule in template["discovery_rules"]:
        (step,) = rule["preprocessing"]
        found = [each.labels for each in samples if each.name == step["parameters"][0]]
        assert found
        items += rule["item_prototypes"]
        for labels in found:
            macros = {path["lld_macro"]: labels[re.findall(r"'(\w+)'", path["path"])[0]]
                      for path in rule["lld_macro_paths"]}  # fmt: skip
            for item in rule["item_prototypes"]:
                step = item["preprocessing"][0]
                value = matching(step["parameters"][0], macros)
                # pages are retired up to Volta, rows remapped from Ampere on
                assert len(value) == 1 or (value == [] and step["error_handler"] == "DISCARD_VALUE")
                if value:
                    key = (item["key"], *macros.values())
                    values[key] = value[0]
    kinds = ("dgxcheck.gpu.pages[{#BUS}]", "dgxcheck.gpu.rows[{#BUS}]")
    set_aside = Counter(key[1:] for key in values if key[0] in kinds)
    assert {*set_aside.values()} == {1}
    assert sum(key[0] == "dgxcheck.gpu.temperature[{#BUS}]" for key in values) == len(set_aside)
    cause = ("dgxcheck.cause[{#COMPONENT}]", "GPU@0000:0a:00.0", "reboot")
    assert values.get(cause, 2) == 2
    assert (cause in values) is (box == "dgx-1-v100-gpu-lost")
    for item in template["items"][1:]:
        assert item["master_item"] == {"key": template["items"][0]["key"]}
        assert len(matching(item["preprocessing"][0]["parameters"][0], {})) == 1
    keys = {item["key"] for item in items}
    triggers = [each for item in items for each in (*item.get("triggers", ()), *item.get("trigger_prototypes", ()))]
    assert {key for each in triggers for key in re.findall(r"/dgxcheck/([^,)]+)", each["expression"])} <= keys
    uuids = re.findall(r"uuid: (\w+)", (FOLDER / "zabbix-template.yml").read_text(encoding="utf-8"))
    assert len(uuids) == len({*uuids})
    assert all(re.fullmatch(r"[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}", each) for each in uuids)


def test_logrotate_moves_a_log_that_is_still_written_to(tmp_path: Path) -> None:
    logrotate = program("logrotate")
    log, conf = tmp_path / "health.log", tmp_path / "conf"
    text = (FOLDER / "logrotate.conf").read_text(encoding="utf-8")
    assert text.count("/var/log/dgxcheck/") == 1
    conf.write_text(text.replace("/var/log/dgxcheck", str(tmp_path)).replace("root root", f"{getuser()} {getuser()}"))
    conf.chmod(0o644)
    tmp_path.chmod(0o750)
    words = ["health", "-q", "--from", "dgx-1-v100", "-o", os.devnull, "-d", str(log)]
    with log.open("ab", buffering=0) as held:
        main(words)
        before = log.read_bytes()
        assert before
        done = ran(logrotate, "-v", "-f", "-s", str(tmp_path / "state"), str(conf))
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr
        held.write(b"later\n")
    assert (tmp_path / "health.log.1").read_bytes() == before
    assert log.read_bytes() == b"later\n"


@pytest.mark.parametrize("runs", swept((1, 2), 2))
def test_ansible_installs_once_and_reports_a_fault(
    runs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    playbook = program("ansible-playbook")
    facts = saying("dgx-1-v100-gpu-lost", capsys, "-q", "--format", "jsonl", "--fail-on", "never")
    stand_in = tmp_path / "dgxcheck"
    own = f"PYTHONPATH='{ROOT}' exec '{sys.executable}' -m dgxcheck"
    stand_in.write_text(f'#!/bin/bash\n[ $1 = health ] || {own} "$@"\n{facts}\n')
    stand_in.chmod(0o755)
    root, inventory = tmp_path / "root", tmp_path / "inventory"
    root.mkdir()
    inventory.write_text("[dgx]\nlocalhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n")
    given = json.dumps({"dgxcheck": str(stand_in), "root": str(root)})
    words = [playbook, "-i", str(inventory), "-e", given, str(FOLDER / "ansible-playbook.yml")]
    for number in range(runs):
        done = ran(*words, HOME=str(tmp_path), ANSIBLE_NOCOLOR="1", LC_ALL="C.UTF-8")
        assert f"changed={0 if number else 1} " in done.stdout, done.stdout + done.stderr
        assert "GPU@0000:0a:00.0: reboot" in done.stdout
        assert done.returncode == 2
    assert (root / "etc/systemd/system/dgxcheck-textfile.timer").is_file()
