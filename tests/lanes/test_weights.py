"""The digest of the model that gates measure with."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.lanes.conftest import Project

ENGINE = '{"requests": [{"prompt_token_ids": [1], "token_ids": [2]}]}'
BENCH = {"command": """echo '{"speed": 1}'""", "metrics": {"speed": {"path": "speed", "direction": "higher"}}}
EXACT = {
    "generate": f"cat {{prompts}} >/dev/null; echo '{ENGINE}'",
    "workloads": {"one": {"prompts": [{"prompt_token_ids": [1]}], "max_tokens": 1}},
    "arms": {"on": {}, "off": {"options": "--off"}},
    "compare": {"mirror": {"left": "on", "right": "off"}},
}


def gated(project: Project, **more: object) -> None:
    project.write(gates={"exact": EXACT}, model="{source}/weights/*.bin", **more)
    (project.root / ".gitignore").write_text(".greenlane/\nweights/\n")
    project.commit()


def model(project: Project) -> object:
    return project.records()[-1]["digests"]["model"]  # type: ignore[index]


def weights(project: Project, name: str, content: bytes) -> Path:
    file = project.root / "weights" / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    return file


def test_a_record_holds_the_digest_of_the_model(project: Project) -> None:
    gated(project)
    weights(project, "a.bin", b"one")
    done = project.greenlane("run", "cpu")
    assert done.returncode == 0, done.stdout
    assert model(project) == hashlib.sha256(b"one").hexdigest()
    weights(project, "b.bin", b"two")
    assert project.greenlane("run", "cpu").returncode == 0
    each = [hashlib.sha256(content).hexdigest() for content in (b"one", b"two")]
    assert model(project) == hashlib.sha256("\n".join(each).encode()).hexdigest()


def test_another_model_is_not_answered_from_the_record_of_the_first(project: Project) -> None:
    gated(project)
    weights(project, "a.bin", b"one")
    project.greenlane("run", "cpu")
    project.greenlane("run", "cpu")
    assert project.records()[-1]["reused_from"] is not None
    weights(project, "a.bin", b"other")
    project.greenlane("run", "cpu")
    assert project.records()[-1]["reused_from"] is None


def test_a_model_that_is_not_there_is_the_machines_lack(project: Project) -> None:
    gated(project)
    done = project.greenlane("run", "cpu")
    assert done.returncode == 3
    assert "no file matches its model" in done.stdout
    exact = project.stages()["exact"]
    assert exact["first_error"]["rule"] == "infra"  # type: ignore[index]


def test_weights_are_hashed_once(project: Project) -> None:
    gated(project)
    file = weights(project, "a.bin", b"one")
    project.greenlane("run", "cpu")
    kept = project.root / ".greenlane/models.json"
    (key,) = json.loads(kept.read_text())
    assert str(file.resolve()) in key
    kept.write_text(json.dumps({key: "remembered"}))
    project.greenlane("run", "cpu", "--fresh")
    assert model(project) == "remembered"


def test_a_lane_without_gates_has_no_model_digest(project: Project) -> None:
    project.write(model="{source}/weights/*.bin")
    assert project.greenlane("run", "cpu").returncode == 0
    assert model(project) is None
