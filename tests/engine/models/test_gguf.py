"""GGUF files: what they hold, and what happens when they are damaged, foreign or hostile."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import gguf as gguf_package
import numpy as np
import pytest

from engine.errors import EngineError, ModelFileError, UnsupportedModel
from engine.models import gguf
from engine.models.gguf_model import architecture_of
from engine.models.locate import locate
from tests.engine.models.tiny import Shape, write_gguf


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    write_gguf(path)
    return path


def test_metadata_and_tensors_are_those_the_gguf_package_reads(smollm2: Path) -> None:
    ours, theirs = gguf.read(smollm2), gguf_package.GGUFReader(smollm2)
    for name, field in theirs.fields.items():
        if not name.startswith("GGUF."):
            assert ours.metadata[name] == field.contents(), name
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert (mine.dtype, mine.shape) == (tensor.tensor_type.name, tuple(reversed(tensor.shape.tolist())))
        assert bytes(mine.data[:64]) == tensor.data.tobytes()[:64] and len(mine.data) == tensor.n_bytes


def test_the_architecture_comes_from_the_metadata(smollm2: Path) -> None:
    found = architecture_of(gguf.read(smollm2))
    assert (found.architecture, found.num_layers, found.hidden_size, found.intermediate_size) == (
        "llama",
        30,
        576,
        1536,
    )
    assert (found.num_heads, found.num_kv_heads, found.head_dim, found.vocab_size) == (9, 3, 64, 49152)
    assert (found.context_length, found.rope_theta, found.rope_interleaved) == (8192, 100000.0, True)


@pytest.mark.parametrize(("name", "interleaved"), [("llama", True), ("qwen2", False), ("qwen3", False)])
def test_only_llama_files_hold_interleaved_rope_pairs(name: str, interleaved: bool, tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", Shape(architecture=name))
    assert architecture_of(gguf.read(tmp_path / "m.gguf")).rope_interleaved is interleaved


def refusal(path: Path, error: type[EngineError] = ModelFileError) -> str:
    with pytest.raises(error) as caught:
        architecture_of(gguf.read(path))
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "no such model file" in refusal(tmp_path / "none.gguf")
    with pytest.raises(ModelFileError, match="no such model file.*smollm2"):
        locate(str(tmp_path / "none.gguf"))


def test_a_folder_a_pipe_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR)  # else opening it would wait for a writer
    (tmp_path / "empty.gguf").touch()
    assert "can't be read" in refusal(tmp_path)
    assert "not a regular file" in refusal(tmp_path / "pipe")
    assert "empty" in refusal(tmp_path / "empty.gguf")
    os.close(descriptor)


def test_something_else_than_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    assert "not a GGUF file" in refusal(path)


@pytest.mark.parametrize("keep", [0.001, 0.01, 0.1, 0.5, 0.99])
def test_a_truncated_file_says_so(keep: float, model: Path) -> None:
    content = model.read_bytes()
    model.write_bytes(content[: max(5, int(len(content) * keep))])
    message = refusal(model)
    assert "truncated" in message or "more than" in message
    assert "fetch it again" in message


@pytest.mark.parametrize("version", [1, 4, 0x03000000])
def test_other_versions_are_refused(version: int, model: Path) -> None:
    patch(model, 4, struct.pack("<I", version))
    assert ("big-endian" if version > 4 else f"version {version}") in refusal(model, UnsupportedModel)


@pytest.mark.parametrize(("at", "what"), [(8, "tensors"), (16, "metadata entries")])
@pytest.mark.parametrize("count", [10**6, 1 << 32, (1 << 64) - 1])
def test_absurd_counts_are_refused_before_memory_is_taken(at: int, what: str, count: int, model: Path) -> None:
    patch(model, at, struct.pack("<Q", count))
    assert f"claims {count} {what}" in refusal(model)


def patch(path: Path, at: int, new: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(new)] = new
    path.write_bytes(content)


def tensor_entry(path: Path, name: str) -> int:
    """Where the fields after the name begin: rank, two dimensions, type, offset."""
    needle = struct.pack("<Q", len(name)) + name.encode()
    return path.read_bytes().index(needle) + len(needle)


@pytest.mark.parametrize(
    ("field", "new", "says"),
    [
        (0, struct.pack("<I", 0), "has 0 dimensions"),
        (0, struct.pack("<I", 4_000_000_000), "dimensions, not 1 to 4"),
        (4, struct.pack("<q", -1), "impossible shape"),
        (4, struct.pack("<Q", 0), "impossible shape"),
        (4, struct.pack("<QQ", 1 << 40, 1 << 40), "impossible shape"),
        (4, struct.pack("<Q", 1 << 30), "lies outside the file"),
        (20, struct.pack("<I", 77), "unknown type 77"),
        (24, struct.pack("<Q", 1 << 40), "lies outside the file"),
        (24, struct.pack("<Q", (1 << 64) - 32), "lies outside the file"),
        (24, struct.pack("<Q", 1), "no multiple of the alignment"),
    ],
)
def test_a_tensor_that_can_not_be_is_named(field: int, new: bytes, says: str, model: Path) -> None:
    patch(model, tensor_entry(model, "blk.0.attn_q.weight") + field, new)
    message = refusal(model)
    assert says in message and "blk.0.attn_q.weight" in message


def test_an_unsupported_quantisation_is_named_with_those_supported(model: Path) -> None:
    patch(model, tensor_entry(model, "blk.0.attn_q.weight") + 20, struct.pack("<I", 10))
    message = refusal(model, UnsupportedModel)
    assert "Q2_K" in message and "Q4_K" in message and "BF16" in message


def test_an_unsupported_architecture_is_named_with_those_supported(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", Shape(architecture="gemma3"))
    message = refusal(tmp_path / "m.gguf", UnsupportedModel)
    assert "gemma3" in message and "llama, qwen2, qwen3" in message


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"llama.attention.scale": 3}, "llama.attention.scale = 3"),
        ({"llama.expert_count": 8}, "expert_count = 8"),
        ({"llama.rope.scaling.type": "yarn"}, "rope scaling 'yarn'"),
        ({"llama.rope.dimension_count": 8}, "rope.dimension_count differs"),
    ],
)
def test_metadata_that_would_change_the_computation_is_refused(
    metadata: dict[str, object], says: str, tmp_path: Path
) -> None:
    write_gguf(tmp_path / "m.gguf", metadata=metadata)
    assert says in refusal(tmp_path / "m.gguf", UnsupportedModel)


def test_missing_misshapen_and_unknown_tensors_are_named(tmp_path: Path) -> None:
    from tests.engine.models.tiny import weights

    path, whole = tmp_path / "m.gguf", weights(Shape())
    norm = "blk.1.ffn_norm.weight"
    write_gguf(path, tensors={name: value for name, value in whole.items() if name != norm})
    assert f"tensor '{norm}' is missing" in refusal(path, UnsupportedModel)
    write_gguf(path, tensors=whole | {norm: np.ones(65, dtype=np.float32)})
    assert "has shape [65], the metadata asks for [64]" in refusal(path, UnsupportedModel)
    write_gguf(path, tensors=whole | {"blk.0.attn_sinks.weight": np.ones(4, dtype=np.float32)})
    assert "'blk.0.attn_sinks.weight' has no place" in refusal(path, UnsupportedModel)


def header(entries: bytes, count: int = 1) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, count) + entries + bytes(64)


def key(name: str) -> bytes:
    return struct.pack("<Q", len(name)) + name.encode()


NESTED = key("deep") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 200


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (header(NESTED), "nests arrays"),
        (header(key("a") + struct.pack("<I", 99)), "unknown type 99"),
        (header(key("a") + struct.pack("<IIQ", 9, 4, 1 << 60)), "1152921504606846976 elements"),
        (header(key("a") + struct.pack("<IIQ", 9, 8, 1 << 60)), "claims 1152921504606846976 elements"),
        (header(key("a") + struct.pack("<IQ", 8, 1 << 62)), "truncated"),
        (header(struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<IB", 0, 1)), "not UTF-8"),
        (header((key("a") + struct.pack("<IB", 0, 1)) * 2, 2), "'a' occurs twice"),
        (header(key("general.alignment") + struct.pack("<II", 4, 0)), "alignment is 0"),
        (header(key("general.alignment") + struct.pack("<II", 4, 24)), "alignment is 24"),
        (header(key("general.architecture") + struct.pack("<IB", 0, 1)), "not a string"),
    ],
)
def test_absurd_metadata_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert says in refusal(path)


def test_every_metadata_type_is_read(tmp_path: Path) -> None:
    writer = gguf_package.GGUFWriter(tmp_path / "m.gguf", "llama")
    values: dict[str, tuple[Callable[..., None], object]] = {
        "u8": (writer.add_uint8, 200), "i8": (writer.add_int8, -3), "u16": (writer.add_uint16, 60000),
        "i16": (writer.add_int16, -300), "u32": (writer.add_uint32, 4_000_000_000), "i32": (writer.add_int32, -9),
        "f32": (writer.add_float32, 0.5), "bool": (writer.add_bool, True), "text": (writer.add_string, "½"),
        "u64": (writer.add_uint64, 1 << 63), "i64": (writer.add_int64, -(1 << 62)), "f64": (writer.add_float64, 0.1),
        "ints": (writer.add_array, [1, 2, 3]), "words": (writer.add_array, ["a", "½", ""]),
        "flags": (writer.add_array, [True, False]), "floats": (writer.add_array, [0.5, 1.5]),
    }  # fmt: skip
    for name, (add, value) in values.items():
        add(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    read = gguf.read(tmp_path / "m.gguf").metadata
    assert {name: read[name] for name in values} == {name: value for name, (_, value) in values.items()}
