"""All integrations: which file of ``dgxcheck/integrations/`` goes where, and what is to be done then."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.record import Record

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
    Integration(
        "node-exporter", "metrics for the textfile collector of node_exporter, every five minutes",
        {name: f"{_UNITS}/{name}" for name in ("dgxcheck-textfile.service", "dgxcheck-textfile.timer")},
        (_RELOAD, "systemctl enable --now dgxcheck-textfile.timer"),
    ),
    Integration(
        "watch", "dgxcheck watch as a service: Xids, errors and changes of health in the journal and as metrics",
        {"dgxcheck-watch.service": f"{_UNITS}/dgxcheck-watch.service"},
        (_RELOAD, "systemctl enable --now dgxcheck-watch.service"),
    ),
    Integration(
        "logrotate", "rotation of /var/log/dgxcheck/*.log, for the debug log and the log of burn-ins",
        {"logrotate.conf": "/etc/logrotate.d/dgxcheck"},
        ("mkdir -m 750 /var/log/dgxcheck", "logrotate -d /etc/logrotate.d/dgxcheck"),
    ),
    Integration(
        "prometheus", "alert rules with their unit tests, on the Prometheus server",
        {name: f"{_RULES}/{name}" for name in ("dgxcheck-alerts.yml", "dgxcheck-alerts.test.yml")},
        (f"add to rule_files in /etc/prometheus/prometheus.yml: {_RULES}/dgxcheck-alerts.yml",
         f"promtool test rules {_RULES}/dgxcheck-alerts.test.yml", "systemctl reload prometheus"),
    ),
    Integration(
        "grafana", "dashboard of all nodes, on the Grafana server with a Prometheus data source",
        {"grafana-dashboard.json": "/etc/grafana/dgxcheck/dgxcheck.json",
         "grafana-provider.yml": "/etc/grafana/provisioning/dashboards/dgxcheck.yml"},
        ("systemctl restart grafana-server",),
    ),
    Integration(
        "nrpe", "command for the NRPE server of Nagios or Icinga, on the box",
        {"nrpe.cfg": "/etc/nagios/nrpe.d/dgxcheck.cfg"}, ("systemctl reload nagios-nrpe-server",),
    ),
    Integration(
        "nagios", "command and service that ask NRPE, on the monitoring host",
        {"nagios.cfg": "/etc/nagios4/conf.d/dgxcheck.cfg"},
        ("define the host group dgx", "nagios4 -v /etc/nagios4/nagios.cfg", "systemctl reload nagios4"),
    ),
    Integration(
        "icinga2", "check command and service that an agent runs on the box, on the Icinga master",
        {"icinga2.conf": "/etc/icinga2/zones.d/global-templates/dgxcheck.conf"},
        ("set vars.dgx = true in the Host objects", "icinga2 daemon -C", "systemctl reload icinga2"),
    ),
    Integration(
        "checkmk", "local check for the agent of Checkmk, every five minutes, on the box",
        {"checkmk-local": "/usr/lib/check_mk_agent/local/300/dgxcheck"},
        ("discover the services of the host in Checkmk",),
    ),
    Integration(
        "zabbix", "items for the Zabbix agent on the box, and the template to import on the server",
        {"zabbix-agent.conf": "/etc/zabbix/zabbix_agentd.conf.d/dgxcheck.conf",
         "zabbix-template.yml": "/etc/zabbix/dgxcheck-template.yml"},
        ("mkdir -p /var/lib/prometheus/node-exporter",
         "dgxcheck integrate node-exporter, whose timer writes the metrics", "systemctl restart zabbix-agent",
         "import the template and link it to the host"),
    ),
    Integration(
        "telegraf", "input with the metrics, every five minutes, on the box",
        {"telegraf.conf": "/etc/telegraf/telegraf.d/dgxcheck.conf"}, ("systemctl reload telegraf",),
    ),
    Integration(
        "ansible", "local facts: the verdict and the causes of the box in every playbook",
        {"ansible.fact": "/etc/ansible/facts.d/dgxcheck.fact"},
        ("ansible -m setup -a filter=ansible_local HOST",),
    ),
    Integration(
        "ansible-playbook", "playbook that installs integrations and reports faults, on the control node",
        {"ansible-playbook.yml": "/etc/ansible/dgxcheck.yml"}, ("ansible-playbook /etc/ansible/dgxcheck.yml",),
    ),
    Integration(
        "slurm", "drain and resume nodes: HealthCheckProgram, prolog, epilog and a batch job",
        {**{name: f"/etc/slurm/dgxcheck/{name}"
            for name in ("slurm-healthcheck.sh", "slurm-nodes.sh", "slurm-sweep.sh")},
         "slurm-prolog.sh": "/etc/slurm/prolog.d/50-dgxcheck",
         "slurm-epilog.sh": "/etc/slurm/epilog.d/50-dgxcheck"},
        ("add the lines in the heads of health check, prolog and epilog to slurm.conf", "scontrol reconfigure"),
    ),
    Integration(
        "nhc", "lines for LBNL Node Health Check",
        {"nhc.conf": "/etc/nhc/dgxcheck.conf"}, ("append /etc/nhc/dgxcheck.conf to /etc/nhc/nhc.conf",),
    ),
    Integration(
        "npd", "plug-in of node-problem-detector: the node condition GPUUnhealthy in Kubernetes",
        {"npd-dgxcheck.sh": f"{_NPD}/plugin/dgxcheck.sh", "npd-dgxcheck.json": f"{_NPD}/dgxcheck.json"},
        (f"start node-problem-detector with --config.custom-plugin-monitor={_NPD}/dgxcheck.json, too",),
    ),
    Integration(
        "kubernetes", "image recipe, DaemonSet and CronJob for Kubernetes, on an administrator's machine",
        {name: f"{_KUBERNETES}/{name}" for name in ("Containerfile", "kubernetes.yaml")},
        ("build the image from dgxcheck.pyz and push it to a registry of yours", "set its name in kubernetes.yaml",
         f"kubectl apply -f {_KUBERNETES}/kubernetes.yaml"),
    ),
    Integration(
        "nvsentinel", "policy of NVIDIA NVSentinel for the condition of node-problem-detector",
        {"nvsentinel.yaml": f"{_KUBERNETES}/nvsentinel.yaml"},
        ("add the policy to the list in the values of your NVSentinel; Helm replaces lists",),
    ),
)  # fmt: skip
"""In the order of the listing. A new integration is one entry; the test of the catalogue finds files without one."""
