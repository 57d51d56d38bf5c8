"""Texts that no tool of GPUs or networks printed, and that look a little as if one had."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "a README": """\
# gpu-cluster-notes

Install CUDA and DCGM, then run `nvidia-smi` to check that all GPUs are there. Xid errors are explained below.

* Step 1: reboot
* Step 2: run the tests; NVLink should be up (see Link 1: the manual)
""",
    "C": """\
#include <stdio.h>
static const struct gpu { int index; const char *name; } gpus[] = {
    { 0, "Tesla V100" }, { 1, "Tesla V100" },
};
int main(void) {
    for (int i = 0; i < 2; i++) printf("GPU %d: %s\\n", gpus[i].index, gpus[i].name);
    return 0;
}
""",
    "a shell script": """\
#!/bin/sh
set -e
for gpu in 0 1 2 3; do
    nvidia-smi -i $gpu --query-gpu=name,temperature.gpu --format=csv,noheader >> log
done
dcgmi diag -r 1 || echo "DCGM failed"
""",
    "a traceback": """\
Traceback (most recent call last):
  File "/opt/train.py", line 12, in <module>
    main()
  File "/opt/train.py", line 8, in main
    model = Net(layers=4).to(device)
TypeError: Net.__init__() got an unexpected keyword argument 'layers'
""",
    "YAML": """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer
spec:
  containers:
    - name: main
      image: registry.example/trainer:1
      resources:
        limits:
          nvidia.com/gpu: 8
""",
    "top": """\
top - 10:11:12 up 3 days,  2:01,  1 user,  load average: 0.10, 0.20, 0.30
Tasks: 301 total,   1 running, 300 sleeping,   0 stopped,   0 zombie
%Cpu(s):  1.0 us,  0.5 sy,  0.0 ni, 98.5 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
MiB Mem : 515000.1 total, 480000.2 free,  20000.3 used,  14999.6 buff/cache
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
   1201 alice     20   0   30.1g   2.1g 100000 R 100.0   0.4  10:01.22 python
""",
    "free": """\
               total        used        free      shared  buff/cache   available
Mem:          515782       12034      480120         120       23628      500112
Swap:              0           0           0
""",
    "kubectl get pods": """\
NAME                                 READY   STATUS             RESTARTS   AGE
prometheus-0-5d9c7f9b7-abcde         1/1     Running            0          12d
grafana-6b7f9c9d5-xk2lp               0/1     CrashLoopBackOff   31         2d
""",
    "ansible": """\
PLAY [gpu] *********************************************************************

TASK [Gathering Facts] *********************************************************
ok: [node01]
fatal: [node02]: UNREACHABLE! => {"changed": false, "msg": "Failed to connect to the host via ssh"}

PLAY RECAP *********************************************************************
node01                     : ok=2    changed=0    unreachable=0    failed=0
""",
    "an e-mail": """\
From: alice@example.org
To: support@example.org
Subject: Re: node 17 is slow
Date: Mon, 2 Mar 2026 10:00:00 +0100

Hello,

since yesterday the node is slow, and GPU 3 seems to be the reason. Could you have a look?

Regards, Alice
""",
    "docker ps": """\
CONTAINER ID   IMAGE           COMMAND       CREATED       STATUS       PORTS     NAMES
0123456789ab   nginx:latest    "nginx -g"    2 days ago    Up 2 days    80/tcp    web
""",
    "docker stats": """\
CONTAINER ID   NAME   CPU %   MEM USAGE / LIMIT    MEM %   NET I/O        BLOCK I/O   PIDS
0123456789ab   web    0.01%   12MiB / 512MiB       2.34%   1.2kB / 0B     0B / 0B     3
""",
    "git log": """\
commit 0123456789abcdef0123456789abcdef01234567
Author: Alice <alice@example.org>
Date:   Mon Mar 2 10:00:00 2026 +0100

    gpu: count NVLinks of every GPU
""",
    "a diff": """\
--- a/train.py
+++ b/train.py
@@ -1,3 +1,3 @@
 import torch
-device = "cuda:0"
+device = "cuda:1"
 print(device)
""",
    "JSON of a web API": """\
{
  "status": "ok",
  "items": [{"id": 1, "name": "GPU hour", "price": 2.5}, {"id": 2, "name": "storage", "price": 0.1}],
  "total": 2
}
""",
    "JSON lines of a service": """\
{"level":"info","ts":"2026-03-02T10:00:00Z","msg":"server started","port":8080}
{"level":"warn","ts":"2026-03-02T10:00:01Z","msg":"slow request","gpu":"none","duration":1.2}
""",
    "CSV": """\
name, count, price
bolt, 100, 0.1
nut, 200, 0.05
""",
    "CSV of samples": """\
0, 23, 1.5
1, 25, 1.6
2, 22, 1.4
""",
    "INI": """\
[global]
workgroup = HOME
log level = 1

[printers]
path = /var/spool
""",
    "TOML": """\
[project]
name = "thing"
version = "1.0"
dependencies = ["click>=8"]
""",
    "a Makefile": """\
all: prog
prog: main.o gpu.o
\tcc -o $@ $^
clean:
\trm -f prog *.o
""",
    "a compiler's errors": """\
main.cu(12): error: identifier "foo" is undefined
1 error detected in the compilation of "main.cu".
make: *** [Makefile:4: main.o] Error 2
""",
    "pip": """\
Collecting torch
  Downloading torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl (899.8 MB)
Installing collected packages: nvidia-cublas-cu12, torch
Successfully installed nvidia-cublas-cu12-12.8.4.1 torch-2.9.0
""",
    "apt": """\
Reading package lists... Done
The following NEW packages will be installed:
  nvidia-driver-550 libnvidia-compute-550
0 upgraded, 2 newly installed, 0 to remove and 3 not upgraded.
""",
    "squeue": """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
             12345       gpu    train    alice  R      10:11      1 node01
             12346       gpu    train    alice PD       0:00      8 (Priority)
""",
    "a training log": """\
Epoch 1/10: loss 2.3012 acc 0.1123 lr 0.001 (1200 img/s)
Epoch 2/10: loss 1.9544 acc 0.2871 lr 0.001 (1210 img/s)
step   100 | loss 1.90 | 52.1 ms/step | 31200 tokens/s
""",
    "pytest": """\
============================= test session starts ==============================
collected 3 items

tests/test_gpu.py ..F                                                    [100%]

=================================== FAILURES ===================================
E       assert 7 == 8
""",
    "lsblk": """\
NAME        MAJ:MIN RM  SIZE RO TYPE MOUNTPOINTS
nvme0n1     259:0    0  1.8T  0 disk
├─nvme0n1p1 259:1    0  512M  0 part /boot/efi
└─nvme0n1p2 259:2    0  1.8T  0 part /
""",
    "ss": """\
State    Recv-Q   Send-Q     Local Address:Port      Peer Address:Port   Process
LISTEN   0        128              0.0.0.0:22             0.0.0.0:*
""",
    "ping": """\
PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.101 ms
--- 10.0.0.2 ping statistics ---
1 packets transmitted, 1 received, 0% packet loss, time 0ms
""",
    "iperf3": """\
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  11.0 GBytes  9.41 Gbits/sec    0             sender
[  5]   0.00-10.00  sec  11.0 GBytes  9.41 Gbits/sec                  receiver
""",
    "fio": """\
Run status group 0 (all jobs):
   READ: bw=6543MiB/s (6861MB/s), 6543MiB/s-6543MiB/s (6861MB/s-6861MB/s), io=64.0GiB (68.7GB), run=10015-10015msec
""",
    "an access log": """\
10.0.0.1 - - [02/Mar/2026:10:00:00 +0100] "GET /gpu HTTP/1.1" 200 512
10.0.0.1 - - [02/Mar/2026:10:00:01 +0100] "GET /favicon.ico HTTP/1.1" 404 0
""",
    "sshd in the journal": """\
Mar 02 10:00:00 node01 sshd[1234]: Accepted publickey for alice from 10.0.0.1 port 50000 ssh2
Mar 02 10:00:00 node01 systemd[1]: Started Session 12 of user alice.
""",
    "XML": """\
<?xml version="1.0"?>
<catalog>
  <book id="1"><title>Parallel programming</title><price>44.95</price></book>
</catalog>
""",
    "Markdown table": """\
| Model | GPUs | Price |
|-------|------|-------|
| small | 1    | 2     |
| large | 8    | 16    |
""",
    "a German note": """\
Der Rechner im Keller ist wieder langsam. Bitte die Karte 3 prüfen, sie wird zu warm.
Temperatur: 85 Grad; Lüfter: 40 %
""",
    "a Chinese note": """\
服务器的第三张显卡温度过高，请检查风扇。
重启之后恢复正常。
""",
    "Prometheus metrics of a web server": """\
# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027
http_requests_total{method="post",code="400"} 3
""",
    "TSV of names": "id\tname\tqty\n1\talpha\t3\n2\tbeta\t4\n",
    "a SQL dump": """\
CREATE TABLE gpu (id int, name text);
INSERT INTO gpu VALUES (0, 'Tesla V100'), (1, 'Tesla V100');
""",
    "a price list": """\
GPU 0 used for the web shop: 12 EUR
A100 80GB PCIe: 15000 EUR
""",
    "key values": """\
   Name                  : node01
   Location              : rack 4
   Owner                 : physics
""",
}
"""By what they are."""
