"""Every way to fail: a class and an exit code each. A message says what, where and what to do, in one line."""

from __future__ import annotations


class EngineError(Exception):
    """What the command line turns into one line on stderr and an exit code; never a traceback."""

    exit_code = 2


class ModelFileError(EngineError):
    """The model file is missing, damaged or hostile."""


class UnsupportedModel(EngineError):
    """The model is well-formed, but this engine lacks what it needs."""


class RequestError(EngineError):
    """A request that can't be served as asked: its prompt, its sampling parameters, its schema."""


class ArgumentsError(EngineError):
    """A mistake on the command line or in the engine's configuration."""


class KVCacheTooSmall(EngineError):
    """The KV cache asked for doesn't fit, or can't hold one request."""


class CoreMissing(EngineError):
    """The compiled core isn't installed."""

    exit_code = 3


class DeviceFailed(EngineError):
    """The device or the core failed while running."""

    exit_code = 3
