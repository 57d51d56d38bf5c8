"""Facts of one made-up machine and what they are called once they are pseudonyms."""

from __future__ import annotations

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import GroupedFacts, flatten, insert

KEY = b"the site's key"
GPU, OTHER = "0000:06:00.0", "0000:07:00.0"
IB = "/sys/class/infiniband/mlx5_0"
GUID = "0c42:a103:005e:7709"
UUID = "5b3ae7f2-11c8-e0ab-93d1-6c0f21aa97e4"


def lines_of(facts: dict[str, Json]) -> GroupedFacts:
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return lines


def replaced(facts: dict[str, Json], key: bytes = KEY) -> dict[str, Json]:
    return flatten(anonymized(lines_of(facts), [], key)[0])


def one(key: str, fact: Json, site: bytes = KEY) -> str:
    found = replaced({key: fact}, site)[key]
    assert isinstance(found, str)
    return found
