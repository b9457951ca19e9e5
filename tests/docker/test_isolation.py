"""Attacks from inside a lane. Each tries to break one wall and says what it got."""

# ruff: noqa: E501  (an attack reads best on one line)

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docker.conftest import box, log
from tests.lanes.conftest import Project


def attack(project: Project, script: str, **more: object) -> str:
    """Runs the script as the lane's test and returns what it printed."""
    box(project, script, **more)
    done = project.greenlane("run", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    return "\n".join(line for line in log(project).splitlines() if not line.startswith("$ "))


def test_the_lane_is_not_root(boxed: Project) -> None:
    expected = 65532 if os.getuid() == 0 else os.getuid()
    assert attack(boxed, "id -u") == str(expected)


def test_the_source_cant_be_written(boxed: Project) -> None:
    said = attack(
        boxed,
        "touch {source}/new 2>&1 || true; echo x >> {source}/matrix.yaml 2>&1 || true; rm -f {source}/docker/box.Dockerfile 2>&1 || true",
    )
    assert said.count("Read-only file system") >= 2
    assert not (boxed.root / "new").exists() and (boxed.root / "docker/box.Dockerfile").exists()


def test_the_image_cant_be_written(boxed: Project) -> None:
    said = attack(boxed, "touch /usr/bin/evil 2>&1 || true; touch /etc/evil 2>&1 || true")
    assert said.count("touch: cannot touch") == 2


def test_only_the_lanes_own_folders_can_be_written(boxed: Project) -> None:
    script = r"find / -xdev -writable -type d 2>/dev/null | sort; for d in {build} {prefix} {artifacts}; do touch $d/x && echo wrote $d; done"
    said = attack(boxed, script)
    assert [line for line in said.splitlines() if line.startswith("wrote ")] == [
        "wrote /greenlane/build", "wrote /greenlane/prefix", "wrote /greenlane/artifacts",
    ]  # fmt: skip
    there = [line for line in said.splitlines() if line.startswith(("/usr", "/etc", "/opt", "/root", "/var"))]
    assert set(there) <= {"/var/tmp"}, "podman puts an empty file system of the container's own there"


def test_there_is_no_network(boxed: Project) -> None:
    script = (
        "ls /sys/class/net; "
        "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) or die; "
        'print connect(S, sockaddr_in(80, inet_aton("10.0.0.1"))) ? "connected" : "failed: $!", "\\n"\'; '
        'perl -MSocket -e \'print inet_aton("example.org") ? "resolved" : "no name", "\\n"\''
    )
    said = attack(boxed, script).splitlines()
    assert said == ["lo", "failed: Network is unreachable", "no name"]


def test_no_capability_is_left_and_none_can_be_gained(boxed: Project) -> None:
    said = dict(line.split(":\t") for line in attack(boxed, "grep -E 'Cap|NoNewPrivs' /proc/self/status").splitlines())
    assert {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert said["NoNewPrivs"] == "1"


def test_a_setuid_program_gives_no_rights(boxed: Project) -> None:
    (boxed.root / "docker/box.Dockerfile").write_text("FROM debian:forky\nRUN cp /usr/bin/id /id && chmod 4755 /id\n")
    assert attack(boxed, "ls -l /id | cut -c1-10; /id -u").splitlines()[0] == "-rwsr-xr-x"
    assert log(boxed).splitlines()[-1] != "0"


def test_mounting_is_refused(boxed: Project) -> None:
    said = attack(
        boxed,
        "mount -t tmpfs none /tmp 2>&1 || true; mount -o remount,rw {source} 2>&1 || true; unshare -m true 2>&1 || true",
    )
    assert said.count("must be superuser") == 2
    assert "unshare failed: Operation not permitted" in said


def test_memory_beyond_the_limit_is_red_and_says_so(boxed: Project) -> None:
    box(boxed, "perl -e '$x = \"x\" x (700*1024*1024); print length $x'", memory="64MiB")
    done = boxed.greenlane("run", "cpu")
    assert done.returncode == 1
    assert "out of memory (limit 0.1 GiB)" in str(boxed.stages()["test"]["reason"])


def test_a_fork_bomb_meets_the_limit(boxed: Project) -> None:
    # It kills its own children alone: `kill -1` would take the shell too, at times before the number is written.
    bomb = "while (1) { my $p = fork(); last unless defined $p; if (!$p) { sleep 60; exit } push @p, $p }"
    script = f"perl -e '$| = 1; my @p; {bomb} print scalar(@p), \"\\n\"; kill 9, @p'"
    box(boxed, script, pids=40)
    boxed.greenlane("run", "cpu")
    numbers = [int(line) for line in log(boxed).splitlines() if line.isdigit()]
    assert numbers and numbers[0] < 40


def test_nothing_of_the_hosts_environment_enters_but_what_the_matrix_names(boxed: Project) -> None:
    box(boxed, "env | sort", env={"NAMED": "by the matrix"}, passthrough=["LET_IN"])
    boxed.greenlane("run", "cpu", LET_IN="from outside", SOME_TOKEN="secret-secret")
    said = log(boxed)
    assert "NAMED=by the matrix" in said and "LET_IN=***" in said
    assert "secret-secret" not in said
    names = {line.partition("=")[0] for line in said.splitlines() if "=" in line and not line.startswith("$")}
    shell = {"HOME", "TMPDIR", "LANG", "PATH", "PWD", "HOSTNAME", "_", "OLDPWD", "SHLVL"}
    assert names <= {"NAMED", "LET_IN", *shell, "container", "TERM"}, "the last two are podman's own"


def test_host_paths_and_the_daemons_socket_are_invisible(boxed: Project, tmp_path: Path) -> None:
    (tmp_path / "host-secret").write_text("secret")
    script = f"cat {tmp_path}/host-secret 2>&1 || true; ls /var/run/docker.sock /run/docker.sock 2>&1 || true; cut -d' ' -f5 /proc/self/mountinfo"
    said = attack(boxed, script)
    assert "secret\n" not in said
    assert said.count("No such file or directory") >= 3
    assert not [line for line in said.splitlines() if line.startswith("/") and str(tmp_path) in line]


def test_credentials_of_git_and_other_lanes_state_are_hidden(boxed: Project) -> None:
    boxed.git("config", "http.extraheader", "AUTHORIZATION: basic c2VjcmV0")
    said = attack(boxed, "ls -A {source}/.git {source}/.greenlane; cat {source}/.git/config 2>&1 || true")
    assert "c2VjcmV0" not in said
    assert said.splitlines()[-1].endswith("No such file or directory")


def test_processes_of_the_host_are_invisible(boxed: Project) -> None:
    said = attack(boxed, "ls -d /proc/[0-9]* | wc -l; kill -9 1 2>&1 || true; echo still here")
    assert int(said.splitlines()[0]) < 12
    assert said.splitlines()[-1] == "still here"


def test_a_link_that_the_lane_leaves_is_not_followed_by_the_host(boxed: Project, tmp_path: Path) -> None:
    secret = tmp_path / "host-secret"
    secret.write_text('[{"command": "secret"}]')
    box(boxed)
    boxed.write(
        executor="docker", dockerfile="docker/box.Dockerfile", require=["checked"],
        stages={"configure": f"ln -sf {secret} {{build}}/compile_commands.json", "build": "true", "test": "true"},
    )  # fmt: skip
    boxed.commit()
    assert boxed.greenlane("run", "cpu").returncode == 0
    assert not (boxed.root / ".greenlane/lanes/cpu/artifacts/compile_commands.json").exists()


def test_a_lane_cant_read_the_hosts_kernel_log_or_memory(boxed: Project) -> None:
    said = attack(
        boxed,
        "for f in /dev/mem /dev/kmsg /proc/kcore /proc/sysrq-trigger; do head -c1 $f >/dev/null 2>&1 && echo read $f; echo b > $f 2>/dev/null && echo wrote $f; done; true",
    )
    assert "wrote" not in said
    assert "read /dev/mem" not in said and "read /dev/kmsg" not in said


@pytest.mark.parametrize("stream", ["out", "err"])
def test_a_flood_of_output_doesnt_stop_the_lane(boxed: Project, stream: str) -> None:
    to = "" if stream == "out" else " >&2"
    said = attack(boxed, f"head -c 20000000 /dev/zero | tr '\\0' y | fold -w 200{to}; echo; echo done")
    assert said.splitlines().count("done") == 1
    assert said.count("y") == 20_000_000
