"""The table of targets against the second CUDA toolkit, whose image the Docker tier doesn't make."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane.executors.daemon import Daemon
from tests.docker.conftest import daemon  # noqa: F401
from tests.docker.test_targets import compare

pytestmark = pytest.mark.nightly


def test_the_table_knows_what_the_second_cuda_toolkit_knows(
    daemon: Daemon,  # noqa: F811
    tmp_path: Path,
) -> None:
    compare(daemon, tmp_path, "cuda-sm_90-13.2", "ptxas --help", "nvcc", "13.2.86")
