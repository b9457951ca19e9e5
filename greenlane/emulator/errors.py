"""How the emulator fails, beyond the house's own errors."""

from __future__ import annotations

from greenlane.errors import EnvironmentMissing, GreenlaneError


class BadCodeObject(GreenlaneError):
    """The bytes are no AMDGPU code object, or not for the architecture that was asked for."""

    exit_code = 2


class UnknownInstruction(EnvironmentMissing):
    """The translator does not know an instruction (or one of its modifiers), so the kernel can't run here."""

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(f"instruction '{text}' is not known to the emulator" + (f" ({why})" if why else ""))
        self.text = text
        self.why = why
