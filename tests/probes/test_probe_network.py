"""Network interfaces."""

from __future__ import annotations

import pytest
from fake_source import FakeSource

from dgxcheck.facts.host import NetInterface
from dgxcheck.facts.missing import Gap, Missing
from probes.host.host import network

NET = "/sys/class/net"


def test_interfaces() -> None:
    files: dict[str, str | bytes | Missing] = {
        f"{NET}/enp1s0f0/operstate": "up\n",
        f"{NET}/enp1s0f0/carrier": "1\n",
        f"{NET}/enp1s0f0/carrier_down_count": "2\n",
        f"{NET}/enp1s0f0/speed": "10000\n",
        f"{NET}/enp1s0f0/mtu": "1500\n",
        f"{NET}/enp1s0f0/type": "1\n",
        f"{NET}/enp1s0f0/address": "00:25:90:AB:cd:ef\n",
        f"{NET}/ib0/speed": "-1\n",
        f"{NET}/ib0/carrier": Missing(Gap.UNSUPPORTED, "c"),
        f"{NET}/ib0/address": ":".join(["80"] * 20),
        f"{NET}/lo/speed": "4294967295\n",
        f"{NET}/bonding_masters": "bond0\n",
    }
    links: dict[str, str | Missing] = {
        f"{NET}/enp1s0f0/device": "../../../0000:01:00.0",
        f"{NET}/ib0/device": "../../../virtio0",
    }
    got = network(FakeSource(files, links))
    assert not isinstance(got, Missing)
    assert [each.name for each in got] == ["enp1s0f0", "ib0", "lo"]
    assert got[0] == NetInterface(
        name="enp1s0f0",
        operstate="up",
        carrier=True,
        carrier_down_count=2,
        speed_mbit=10000,
        mtu=1500,
        type=1,
        mac="00:25:90:ab:cd:ef",
        bdf="0000:01:00.0",
    )
    for each in got[1:]:
        assert isinstance(each.speed_mbit, Missing)
        assert each.speed_mbit.gap is Gap.UNSUPPORTED
        assert isinstance(each.bdf, Missing)
        assert each.bdf.gap is Gap.ABSENT
    assert got[1].carrier == Missing(Gap.UNSUPPORTED, "c")
    assert got[1].mac == ":".join(["80"] * 20)


def test_no_network_class() -> None:
    assert isinstance(network(FakeSource({})), Missing)


@pytest.mark.parametrize(("text", "value"), [
    ("down\n", "down"), ("lowerlayerdown\n", "lowerlayerdown"), ("UP\n", Gap.GARBLED), ("\ufffd\ufffd", Gap.GARBLED),
    ("", Gap.ABSENT),
])  # fmt: skip
def test_a_link_state_is_a_word_of_the_kernel(text: str, value: str | Gap) -> None:
    got = network(FakeSource({f"{NET}/eno1/operstate": text}))
    assert not isinstance(got, Missing)
    state = got[0].operstate
    assert (state.gap if isinstance(state, Missing) else state) == value
