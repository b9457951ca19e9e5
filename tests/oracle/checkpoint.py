"""Reads a GGUF file with the `gguf` package into float32 tensors and plain metadata."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, dequantize


@dataclass(frozen=True)
class Checkpoint:
    metadata: dict[str, Any]
    tensors: dict[str, torch.Tensor]  # float32, outermost dimension first

    @property
    def architecture(self) -> str:
        return str(self.metadata["general.architecture"])

    def parameter(self, key: str, default: Any = None) -> Any:
        return self.metadata.get(f"{self.architecture}.{key}", default)


def load(path: Path) -> Checkpoint:
    reader = GGUFReader(path)
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    tensors = {tensor.name: float_tensor(tensor) for tensor in reader.tensors}
    return Checkpoint(metadata, tensors)


def float_tensor(tensor: Any) -> torch.Tensor:
    values = np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
    return torch.from_numpy(values.reshape([int(n) for n in reversed(tensor.shape)]))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
