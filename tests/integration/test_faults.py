"""Workers, store processes and the broker die while requests flow and the model fails: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.faults import Run
from tests.integration.brokers import ApacheKafka

pytestmark = pytest.mark.apache


def test_every_request_ends_once_whatever_is_killed(apache: ApacheKafka, run_id: str, tmp_path: Path) -> None:
    """Invariants 5 and 8. The large run is `python -m tests.bench.faults`."""
    (logs := tmp_path / run_id).mkdir()
    restarts = 1 if apache.node.can_restart else 0
    found = Run(apache, logs, requests=100, kills=8, restarts=restarts, seed=5)(limit=300)
    assert found.fault == "", found.table()
    assert (found.finals, found.dead) == (98, 2), found.table()
    assert set(found.hops) == {1, 2}
    assert sum(found.kills.values()) >= 6, "a store process that is to be killed may just be starting"
    assert found.restarts == restarts
