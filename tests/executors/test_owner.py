"""Whose a container is."""

from __future__ import annotations

import os
import subprocess
import sys

from greenlane.executors import owner


def test_this_process_has_not_ended() -> None:
    assert not owner.has_ended(owner.me())


def test_a_process_that_ended_is_known_to_have() -> None:
    command = [sys.executable, "-c", "from greenlane.executors import owner; print(owner.me())"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert owner.has_ended(ended)


def test_a_number_that_another_process_got_since_is_not_its_owner() -> None:
    world, _, _ = owner.me().rpartition(":")
    assert owner.has_ended(f"{world}:1")


def test_another_machines_container_is_left_alone() -> None:
    assert not owner.has_ended(f"another-boot:4026531836:{os.getpid()}:1")
    assert not owner.has_ended("nonsense")
