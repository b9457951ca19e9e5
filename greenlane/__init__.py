"""One YAML matrix, every backend, one honest verdict."""

__version__ = "0.1.0"
