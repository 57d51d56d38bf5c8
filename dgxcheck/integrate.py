"""The catalogue of integrations for monitors and schedulers, and where their files go on a host."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.package_files import FOLDER, read
from dgxcheck.rootfs import read_bytes
from dgxcheck.source.recording.save import create_file

_UNITS = "/etc/systemd/system"
_RULES = "/etc/prometheus/dgxcheck"
_NPD = "/etc/node-problem-detector"
_KUBERNETES = "/etc/dgxcheck/kubernetes"
_RELOAD = "systemctl daemon-reload"


class Integration(Record, kw_only=False):
    """``files`` maps names in ``dgxcheck/integrations/`` to places on the host, ``steps`` follow their installation.

    Each step is a command or a short sentence. A place is an absolute path, Debian's where distributions differ.
    """

    name: str
    purpose: str
    files: Mapping[str, str]
    steps: tuple[str, ...]


INTEGRATIONS = (
    Integration("node-exporter", "metrics for the textfile collector of node_exporter, every five minutes",
                {name: f"{_UNITS}/{name}" for name in ("dgxcheck-textfile.service", "dgxcheck-textfile.timer")},
                (_RELOAD, "systemctl enable --now dgxcheck-textfile.timer")),
    Integration("watch",
                "dgxcheck watch as a service: Xids, errors and changes of health in the journal and as metrics",
                {"dgxcheck-watch.service": f"{_UNITS}/dgxcheck-watch.service"},
                (_RELOAD, "systemctl enable --now dgxcheck-watch.service")),
    Integration("logrotate", "rotation of /var/log/dgxcheck/*.log, for the debug log and the log of burn-ins",
                {"logrotate.conf": "/etc/logrotate.d/dgxcheck"},
                ("mkdir -m 750 /var/log/dgxcheck", "logrotate -d /etc/logrotate.d/dgxcheck")),
    Integration("prometheus", "alert rules with their unit tests, on the Prometheus server",
                {name: f"{_RULES}/{name}" for name in ("dgxcheck-alerts.yml", "dgxcheck-alerts.test.yml")},
                (f"add to rule_files in /etc/prometheus/prometheus.yml: {_RULES}/dgxcheck-alerts.yml",
                 f"promtool test rules {_RULES}/dgxcheck-alerts.test.yml", "systemctl reload prometheus")),
    Integration("grafana", "dashboard of all nodes, on the Grafana server with a Prometheus data source",
                {"grafana-dashboard.json": "/etc/grafana/dgxcheck/dgxcheck.json",
                 "grafana-provider.yml": "/etc/grafana/provisioning/dashboards/dgxcheck.yml"},
                ("systemctl restart grafana-server",)),
    Integration("nrpe", "command for the NRPE server of Nagios or Icinga, on the box",
                {"nrpe.cfg": "/etc/nagios/nrpe.d/dgxcheck.cfg"}, ("systemctl reload nagios-nrpe-server",)),
    Integration("nagios", "command and service that ask NRPE, on the monitoring host",
                {"nagios.cfg": "/etc/nagios4/conf.d/dgxcheck.cfg"},
                ("define the host group dgx", "nagios4 -v /etc/nagios4/nagios.cfg", "systemctl reload nagios4")),
    Integration("icinga2", "check command and service that an agent runs on the box, on the Icinga master",
                {"icinga2.conf": "/etc/icinga2/zones.d/global-templates/dgxcheck.conf"},
                ("set vars.dgx = true in the Host objects", "icinga2 daemon -C", "systemctl reload icinga2")),
    Integration("checkmk", "local check for the agent of Checkmk, every five minutes, on the box",
                {"checkmk-local": "/usr/lib/check_mk_agent/local/300/dgxcheck"},
                ("discover the services of the host in Checkmk",)),
    Integration("zabbix", "items for the Zabbix agent on the box, and the template to import on the server",
                {"zabbix-agent.conf": "/etc/zabbix/zabbix_agentd.conf.d/dgxcheck.conf",
                 "zabbix-template.yml": "/etc/zabbix/dgxcheck-template.yml"},
                ("mkdir -p /var/lib/prometheus/node-exporter",
                 "dgxcheck integrate node-exporter, whose timer writes the metrics", "systemctl restart zabbix-agent",
                 "import the template and link it to the host")),
    Integration("telegraf", "input with the metrics, every five minutes, on the box",
                {"telegraf.conf": "/etc/telegraf/telegraf.d/dgxcheck.conf"}, ("systemctl reload telegraf",)),
    Integration("ansible", "local facts: the verdict and the causes of the box in every playbook",
                {"ansible.fact": "/etc/ansible/facts.d/dgxcheck.fact"},
                ("ansible -m setup -a filter=ansible_local HOST",)),
    Integration("ansible-playbook", "playbook that installs integrations and reports faults, on the control node",
                {"ansible-playbook.yml": "/etc/ansible/dgxcheck.yml"}, ("ansible-playbook /etc/ansible/dgxcheck.yml",)),
    Integration("slurm", "drain and resume nodes: HealthCheckProgram, prolog, epilog and a batch job",
                {**{name: f"/etc/slurm/dgxcheck/{name}"
                    for name in ("slurm-healthcheck.sh", "slurm-nodes.sh", "slurm-sweep.sh")},
                 "slurm-prolog.sh": "/etc/slurm/prolog.d/50-dgxcheck",
                 "slurm-epilog.sh": "/etc/slurm/epilog.d/50-dgxcheck"},
                ("add the lines in the heads of health check, prolog and epilog to slurm.conf",
                 "scontrol reconfigure")),
    Integration("nhc", "lines for LBNL Node Health Check",
                {"nhc.conf": "/etc/nhc/dgxcheck.conf"}, ("append /etc/nhc/dgxcheck.conf to /etc/nhc/nhc.conf",)),
    Integration("npd", "plug-in of node-problem-detector: the node condition GPUUnhealthy in Kubernetes",
                {"npd-dgxcheck.sh": f"{_NPD}/plugin/dgxcheck.sh", "npd-dgxcheck.json": f"{_NPD}/dgxcheck.json"},
                (f"start node-problem-detector with --config.custom-plugin-monitor={_NPD}/dgxcheck.json, too",)),
    Integration("kubernetes", "image recipe, DaemonSet and CronJob for Kubernetes, on an administrator's machine",
                {name: f"{_KUBERNETES}/{name}" for name in ("Containerfile", "kubernetes.yaml")},
                ("build the image from dgxcheck.pyz and push it to a registry of yours",
                 "set its name in kubernetes.yaml", f"kubectl apply -f {_KUBERNETES}/kubernetes.yaml")),
    Integration("nvsentinel", "policies of NVIDIA NVSentinel for the condition of node-problem-detector",
                {"nvsentinel.yaml": f"{_KUBERNETES}/nvsentinel.yaml"},
                ("add the policies to the list in the values of your NVSentinel; Helm replaces lists",)),
)  # fmt: skip
"""In the order of the listing. A new integration is one entry; the test of the catalogue finds files without one."""


COMMAND = "/usr/local/bin/dgxcheck"
"""The path of dgxcheck as the shipped files have it."""
PlaceState = Literal["new", "unchanged", "differs", "unusable"]
CommandProblem = Literal["", "missing", "hidden"]
_HOMES = ("/home/", "/root/", "/run/user/")
"""What ProtectHome= hides from a service, see systemd.exec(5)."""


class PlannedFile(Record):
    """One file: its text, where it goes, and what is there now."""

    source: str
    place: str
    text: str
    state: PlaceState
    reason: str = ""
    """Why the place is unusable."""

    @property
    def mode(self) -> int:
        """Scripts are executable. Installers and archives lose modes, so the first line decides."""
        return 0o755 if self.text.startswith("#!") else 0o644


def plan(integration: Integration, root: str = "/", command: str = COMMAND) -> tuple[PlannedFile, ...]:
    """The files of an integration below ``root``, with ``command`` as the path of dgxcheck.

    BadInput for a command that is no plain absolute path, or where no file of the integration names one.
    """
    texts = {source: shipped_text(source) for source in integration.files}
    if command != COMMAND:
        if not re.fullmatch(r"(/[\w.+-]+)+", command, re.ASCII):
            raise BadInput(f"{command}: must be an absolute path of letters, digits and ._+-")
        if not any(COMMAND in text for text in texts.values()):
            raise BadInput(f"{integration.name}: none of its files contains the path of dgxcheck")
    found = []
    for source, where in integration.files.items():
        place, text = _below(root, where), texts[source].replace(COMMAND, command)
        state, reason = _state(place, text, root)
        found.append(PlannedFile(source=source, place=place, text=text, state=state, reason=reason))
    return tuple(found)


def shipped_text(source: str) -> str:
    """A file of ``dgxcheck/integrations/``, from an installed package or a zip application."""
    return read(os.path.join(FOLDER, "integrations", source)).decode()


def write(files: Sequence[PlannedFile]) -> None:
    """Create what is new; directories that are missing too. OSError, also for a file that appeared meanwhile."""
    for file in files:
        if file.state == "new":
            _make_directory(os.path.dirname(file.place))
            create_file(file.place, file.text, file.mode)


def _make_directory(path: str) -> None:
    """With those above it; services of other users read them, and the umask of root may be 077."""
    if not os.path.isdir(path):
        _make_directory(os.path.dirname(path))
        os.mkdir(path)
        os.chmod(path, 0o755)


def command_problem(files: Sequence[PlannedFile], root: str, command: str) -> CommandProblem:
    """Why the files that name ``command`` will not be able to run it; empty where they will."""
    if not any(command in file.text for file in files):
        return ""
    if command.startswith(_HOMES) and any("ProtectHome=yes" in file.text for file in files):
        return "hidden"
    return "" if os.access(_below(root, command), os.X_OK) else "missing"


def _below(root: str, place: str) -> str:
    return os.path.join(root, place.lstrip("/"))


def _state(place: str, text: str, root: str) -> tuple[PlaceState, str]:
    top = os.path.realpath(root)
    if os.path.commonpath([top, os.path.realpath(place)]) != top:
        return "unusable", f"a symbolic link leads out of {root}"  # into the running system, from its image
    try:
        same = read_bytes(place) == text.encode()
    except FileNotFoundError:
        return ("unusable", "a symbolic link without target") if os.path.islink(place) else ("new", "")
    except OSError as error:
        too_large = error.errno == errno.EFBIG
        return ("differs", "") if too_large else ("unusable", str(error.strerror))
    return ("unchanged" if same else "differs"), ""
