"""The bench gate's decision rule, simulated: how often it is wrong, and how often it finds what is there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from greenlane.gates import rule, student
from greenlane.gates.rule import LOSS, UNDECIDED, WASH, WIN, Rule

TRIALS = 4000
MARGIN = math.log(1.01)
DRIFT = -0.004  # per run
Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def gaussian(cv: float) -> Noise:
    return lambda rng, shape: rng.normal(0, cv, shape)


def bimodal(cv: float, slow: float = 0.03, share: float = 0.3) -> Noise:
    """A host that is slower by 3 % in three runs of ten."""
    return lambda rng, shape: rng.normal(0, cv, shape) - slow * (rng.random(shape) < share)


def sticky(cv: float, slow: float = 0.03) -> Noise:
    """A host that stays slow, or fast, for five runs on average."""

    def noise(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        mode = (rng.random(shape) < 0.2).cumsum(axis=-1) % 2
        return rng.normal(0, cv, shape) - slow * mode

    return noise


def differences(effect: float, noise: Noise, pairs: int, *, drift: float = 0.0, metrics: int = 1) -> np.ndarray:
    """(trials, metrics, pairs) of head minus base, in the gate's order: head base control, control base head."""
    rng = np.random.default_rng(20_260_101)
    blocks = pairs // 2
    runs = noise(rng, (TRIALS * metrics, 6 * blocks)) + drift * np.arange(6 * blocks)
    runs = runs.reshape(TRIALS, metrics, blocks, 6)
    first, second = runs[..., 0] - runs[..., 1], runs[..., 5] - runs[..., 4]
    return np.stack([first, second], axis=-1).reshape(TRIALS, metrics, pairs) + math.log1p(effect)


def simulate(effect: float, noise: Noise, *, pairs: int = 30, drift: float = 0.0) -> dict[int, float]:
    """Share of the trials that end with each verdict, when at most `pairs` of 30 pairs are run."""
    series = differences(effect, noise, 30, drift=drift)
    judge = Rule((MARGIN,), 0.05, 30, TRIALS)
    for look in rule.looks(4, 30):
        if look <= pairs:
            judge.look(series[..., :look])
    counts = Counter(judge.overall().tolist())
    return {verdict: counts[verdict] / TRIALS for verdict in (UNDECIDED, WASH, WIN, LOSS)}


HOSTS = {
    "1 % noise": (gaussian(0.01), 0.0),
    "2 % noise": (gaussian(0.02), 0.0),
    "1 % noise, drift": (gaussian(0.01), DRIFT),
    "2 % noise, drift": (gaussian(0.02), DRIFT),
    "bimodal": (bimodal(0.01), 0.0),
    "bimodal, drift": (bimodal(0.01), DRIFT),
    "sticky bimodal": (sticky(0.01), 0.0),
    "far bimodal": (bimodal(0.002, slow=0.1, share=0.1), 0.0),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("effect", [0.0, 0.0099, -0.0099])
def test_a_true_wash_is_called_win_or_loss_in_at_most_5_percent(host: str, effect: float) -> None:
    noise, drift = HOSTS[host]
    found = simulate(effect, noise, drift=drift)
    assert found[WIN] + found[LOSS] <= 0.05


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("effect", [-0.01, -0.03, -0.05])
def test_a_loss_is_never_called_a_win(host: str, effect: float) -> None:
    noise, drift = HOSTS[host]
    assert simulate(effect, noise, drift=drift)[WIN] <= 0.001


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("effect", [-0.0101, 0.0101, -0.03, -0.05])
def test_an_effect_beyond_the_margin_is_called_a_wash_in_at_most_5_percent(host: str, effect: float) -> None:
    noise, drift = HOSTS[host]
    assert simulate(effect, noise, drift=drift)[WASH] <= 0.05


@pytest.mark.parametrize("drift", [0.0, DRIFT])
def test_a_loss_of_5_percent_is_found_within_12_pairs(drift: float) -> None:
    assert simulate(-0.05, gaussian(0.01), pairs=12, drift=drift)[LOSS] >= 0.95


@pytest.mark.parametrize("drift", [0.0, DRIFT])
def test_a_win_of_5_percent_is_found_within_12_pairs(drift: float) -> None:
    assert simulate(0.05, gaussian(0.01), pairs=12, drift=drift)[WIN] >= 0.95


@pytest.mark.parametrize("drift", [0.0, DRIFT])
def test_no_effect_at_1_percent_noise_ends_as_a_wash_within_30_pairs(drift: float) -> None:
    assert simulate(0.0, gaussian(0.01), drift=drift)[WASH] >= 0.80


def test_a_loss_of_3_percent_is_found_at_1_percent_noise() -> None:
    assert simulate(-0.03, gaussian(0.01))[LOSS] >= 0.95


def test_arms_run_one_after_the_other_would_be_fooled_by_a_drift() -> None:
    """The same rule without interleaving: why the gate runs ABBA."""
    rng = np.random.default_rng(1)
    runs = rng.normal(0, 0.01, (TRIALS, 1, 60)) + DRIFT * np.arange(60)
    judge = Rule((MARGIN,), 0.05, 30, TRIALS)
    judge.look(runs[..., 30:] - runs[..., :30], last=True)
    assert (judge.overall() == LOSS).mean() > 0.95


def test_five_metrics_without_effect_give_a_false_verdict_in_at_most_5_percent() -> None:
    series = differences(0.0099, gaussian(0.002), 30, metrics=5)
    judge = Rule((MARGIN,) * 5, 0.05, 30, TRIALS)
    for look in rule.looks(4, 30):
        judge.look(series[..., :look])
    assert ((judge.verdicts == WIN) | (judge.verdicts == LOSS)).any(axis=1).mean() <= 0.05


def test_holm_gives_the_second_metric_the_next_level() -> None:
    """A score between the levels for one and for two metrics is enough only beside a clear one."""
    judge = Rule((MARGIN, MARGIN), 0.05, 10)
    between = (judge.threshold(1.0, 1, 10) + judge.threshold(1.0, 2, 10)) / 2
    errors = np.array([[0.001, 0.001]])
    judge.changed(-MARGIN - np.array([[between, between]]) * errors, errors, 10, 1.0)
    assert judge.verdicts.tolist() == [[UNDECIDED, UNDECIDED]]
    judge.changed(-MARGIN - np.array([[between, 50.0]]) * errors, errors, 10, 1.0)
    assert judge.verdicts.tolist() == [[LOSS, LOSS]]


def test_a_decided_metric_keeps_its_verdict() -> None:
    judge = Rule((MARGIN,), 0.05, 12)
    steady = np.full((1, 1, 6), -0.2) + np.array([0.001, -0.001] * 3)
    judge.look(steady)
    judge.look(np.concatenate([steady, -steady], axis=-1), last=True)
    assert judge.verdicts.tolist() == [[LOSS]]


def test_one_lost_metric_loses_the_run_and_one_undecided_leaves_it_open() -> None:
    judge = Rule((MARGIN, MARGIN), 0.05, 12)
    for verdicts, word in (
        ([WIN, LOSS], LOSS),
        ([WIN, UNDECIDED], UNDECIDED),
        ([WIN, WASH], WIN),
        ([WASH, WASH], WASH),
    ):
        judge.verdicts[:] = verdicts
        assert judge.overall().tolist() == [word]


def test_equal_values_without_any_noise_are_a_wash() -> None:
    judge = Rule((MARGIN,), 0.05, 4)
    judge.look(np.zeros((1, 1, 4)), last=True)
    assert judge.verdicts.tolist() == [[WASH]]


def test_looks_are_even_and_end_with_the_last_pair() -> None:
    for low, high in ((3, 3), (4, 30), (10, 11), (30, 30), (4, 1000)):
        chosen = rule.looks(low, high)
        assert all(pairs % 2 == 0 for pairs in chosen)
        assert chosen[0] >= low and high <= chosen[-1] <= high + 1


@pytest.mark.parametrize(
    ("tail", "degrees", "expected"),
    [(0.025, 1, 12.7062), (0.025, 5, 2.5706), (0.005, 10, 3.1693), (0.05, 29, 1.6991), (0.0005, 11, 4.4370)],
)
def test_critical_values_are_those_of_the_tables(tail: float, degrees: int, expected: float) -> None:
    assert student.critical(tail, degrees) == pytest.approx(expected, abs=1e-4)


def test_the_smallest_visible_effect_is_found_with_the_power_it_promises() -> None:
    series = differences(0.0, gaussian(0.01), 30)[:, 0]
    once = Rule((MARGIN,), 0.05, 30)
    visible = np.median([rule.described(row, MARGIN, once)["smallest_visible_effect"] for row in series[:200]])
    judge = Rule((MARGIN,), 0.05, 30, TRIALS)
    judge.look((series + math.log1p(float(visible)))[:, None, :], last=True)
    assert 0.7 <= (judge.overall() == WIN).mean() <= 0.9
