"""One cluster for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.spark_cluster import Cluster, cluster, missing


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with cluster(tmp_path_factory.mktemp("spark")) as found:
        yield found
