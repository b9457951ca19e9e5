"""An interpreter of AMD's pseudo-code: a model of each instruction that the emulator's authors did not write."""
