"""The engine beside its peers: same file, same machine, same threads, interleaved."""
