"""The stand-in library exports what the vendor's does, under the same versions."""

from __future__ import annotations

from greenlane.emulator import build


def test_each_version_inherits_the_one_before() -> None:
    script = build.version_map({"hipMalloc": "hip_4.2", "hipLate": "hip_6.0", "hipMiddle": "hip_5.1"})
    assert script.splitlines() == [
        "hip_4.2 { global: hipMalloc; local: *; };",
        "hip_5.1 { global: hipMiddle; } hip_4.2;",
        "hip_6.0 { global: hipLate; } hip_5.1;",
    ]


def test_only_names_that_the_runtime_lacks_get_a_stand_in() -> None:
    text = build.missing_functions({"hipMalloc": "hip_4.2", "hipRare": "hip_4.2"}, {"hipMalloc"})
    assert 'int hipRare(void) { return greenlane_missing("hipRare"); }' in text
    assert "hipMalloc" not in text


def test_the_vendors_symbols_are_all_listed() -> None:
    symbols = build.symbol_versions(build.SYMBOLS.read_text())
    assert len(symbols) > 500
    assert symbols["hipGetDevicePropertiesR0600"] == "hip_6.0"
    assert symbols["__hipRegisterFatBinary"] == "hip_4.2"
