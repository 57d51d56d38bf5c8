"""What is shared between tests is what a survey finds."""

from __future__ import annotations

import pytest
from read_box import facts_in
from sample import BY_NAME, SAMPLE, swept

from dgxcheck.checks.registry import PROBES
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import survey


@pytest.mark.parametrize("name", swept(BY_NAME, SAMPLE[::4]))
def test_facts_that_are_shared_are_those_of_a_survey(name: str) -> None:
    source = open_source(name)
    assert facts_in(source) == survey(source, PROBES)
