"""Calibration: the fit finds what measurements were made of; without a GPU it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Tierloom

from tierloom.errors import MeasurementError
from tierloom.gpu_copies import fit, into_set
from tierloom.gpu_expansion import ParameterSet


def measured(gb_s: float, cost_ns: float, noise: float = 0.0, extra_ns: float = 700.0) -> dict:
    sizes = [64, *(128 * 4**k for k in range(13))]
    copies = [[size, (cost_ns + size / gb_s) * (1 + noise * (-1) ** at)] for at, size in enumerate(sizes)]
    return {"gpu": "made up", "copies": copies, "host_load_ns": 500.0 + extra_ns, "device_load_ns": 500.0}


@given(st.floats(2.0, 60.0), st.floats(500.0, 20_000.0), st.floats(0.0, 0.03), st.floats(100.0, 2000.0))
def test_the_fit_finds_what_the_measurements_were_made_of(gb_s: float, cost: float, noise: float, extra: float) -> None:
    found = fit(measured(gb_s, cost, noise, extra))
    assert found.copy_gb_s == pytest.approx(gb_s, rel=2 * noise + 1e-6)
    assert found.copy_ns == pytest.approx(cost, rel=0.1 + 2 * noise)
    assert found.extra_load_ns == pytest.approx(extra, abs=1e-6)


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(MeasurementError, match="too few copies"):
        fit({**measured(20, 1000), "copies": [[64, 1000.0], [1 << 20, 5000.0]]})
    with pytest.raises(MeasurementError, match="not slower"):
        fit(measured(20, 1000, extra_ns=-1.0))


def test_fitted_figures_go_into_a_set_that_can_be_used(tmp_path: Path) -> None:
    file = tmp_path / "here.toml"
    file.write_text(into_set(ParameterSet.load().text, fit(measured(20.0, 1000.0))))
    data = ParameterSet.load(file).data
    assert data["uvm"]["copy_gb_s"]["value"] == pytest.approx(20.0)
    assert (data["link"]["round_trip_ns"]["value"], data["link"]["round_trip_ns"]["kind"]) == (700.0, "measured")


def test_without_a_compiler_nothing_is_measured(tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = tierloom("expand", "calibrate")
    assert result.exit_code == 1
    assert "hint: install the CUDA toolkit" in " ".join(result.stderr.split())


def test_measurements_of_another_machine_are_read(tierloom: Tierloom, folder: Path) -> None:
    (folder / "copies.json").write_text(json.dumps(measured(20.0, 1000.0)))
    result = tierloom("expand", "calibrate", "--measured", "copies.json", "--json")
    assert json.loads(result.stdout)["fit"]["copy_gb_s"] == pytest.approx(20.0)
    (folder / "copies.json").write_text("[]")
    assert tierloom("expand", "calibrate", "--measured", "copies.json").exit_code == 2
