"""An independent float32 PyTorch implementation of the engine's dense models; it makes the golden ids. Needs torch."""
