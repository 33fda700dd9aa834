"""Personal predictions of many rounds, compiled: `oneway.personal` for models with one score.

Experts feed nothing back, so the engine hands out the scores of its shared models, and a group of
nodes at a time is walked through a stretch of rounds. Nodes of a group are the lanes of vectors:
the last axis of its arrays. Equal to the functions of `oneway.personal` to the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np

from oneway.personal import Personal
from oneway.personal.experts import BY_COORDINATE, FAR, NORMS, PARAMS, SQUARES
from oneway.personal.mixtures import FAINTEST, LEAST, SHARE
from oneway.personal.personal import HEARD, PRIOR, REACH, SAME
from oneway.records import Floats, Ints, Matrix, Vector
from oneway.simulator.kernel import prefetch_row

LOGISTIC, SQUARED, HINGE = range(3)
"""The losses it knows."""
LANES = 16
"""Nodes that are walked together: what they remember fits into a core's own cache."""
_compiled = numba.njit(cache=True, error_model="numpy", fastmath={"contract", "nsz"})
_summing = numba.njit(
    cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, nogil=True
)
"""Sums may be taken in another order; nothing is assumed about infinities and nan."""

_AHEAD, _AHEAD_BYTES = 2, 192
"""Samples lie anywhere in the table; the beginning of each is asked for rounds before."""
_ROUNDING = 1.5 * 2.0**52
"""Adding this rounds to an integer, which then stands in the lowest bits."""
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
"""ln 2 to 33 bits, so that small multiples of it are exact."""
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LOG2_E = 1.0 / math.log(2.0)
_ROOT_HALF = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2)."""
_PRIOR_SHARED, _PRIOR_ALONE, _PRIOR_ADAPTED = (float(it) for it in PRIOR)
_LN2, _LN3 = math.log(2.0), math.log(3.0)

# Rows of a group's state; all of it is one flat array, so that compilers see what is apart.
_ACTIVE, _LABEL, _SHARED, _LENGTH, _ANSWER = range(5)
_SCORES, _SLOPES, _LOSSES, _PAIRS = 5, 9, 13, 17
_TOP, _NORMS, _PAIR_GAPS, _TOP_GAP, _STEPS, _HEARD = 21, 24, 26, 28, 29, 31
_REACH, _EXPERTS, _NUM_ROWS = 32, 33, 35
_BAYES = {NORMS: _NORMS, HEARD: _HEARD, "pairs.weights": _PAIRS, "top.weights": _TOP}
_HEDGE = {
    NORMS: _NORMS,
    HEARD: _HEARD,
    REACH: _REACH,
    "pairs.losses": _PAIRS,
    "pairs.gaps": _PAIR_GAPS,
    "top.losses": _TOP,
    "top.gaps": _TOP_GAP,
}
"""Where the state has what is remembered."""


def walk(
    personal: Personal,
    kind: int,
    rows: Ints,
    scores: Matrix,
    features: Floats,
    targets: Vector,
    memory: Mapping[str, Matrix],
    sums: Matrix,
    node_sums: Matrix,
) -> Matrix:
    """Walk every node through a stretch of rounds.

    Args:
        personal: The experts.
        kind: Of the loss.
        rows: The table's row of each round and node; -1 means none.
        scores: Of the shared models, `[round, node]`.
        features: The table, `[row, feature]`.
        targets: Its labels as scores see them.
        memory: Of `personal`; this and what follows is changed.
        sums: Losses per round of mixture, shared, alone, adapted.
        node_sums: The same per node.

    Returns:
        What was predicted, `[round, node]`: the probability of the second class, or a score.
    """
    linear, num_nodes = personal.linear, rows.shape[1]
    rates = np.array([[it.reach, it.most(linear.num_features + 1)] for it in linear.rates])
    curvature, start = linear.link.curvature or 0.0, float(linear.start[0])
    answers = np.zeros(rows.shape)
    mixtures = _BAYES if personal.has_probabilities else _HEDGE
    params = memory[PARAMS].reshape(num_nodes, 4, -1)
    squares = memory[SQUARES].reshape(num_nodes, 2, -1)
    for first in range(0, num_nodes, LANES):
        nodes, count = slice(first, first + LANES), min(LANES, num_nodes - first)
        state, models = np.zeros((_NUM_ROWS, LANES)), np.zeros((params.shape[2], 7, LANES))
        seen = np.full((len(rows), LANES), -1)
        seen[:, :count] = rows[:, nodes]
        said = np.zeros((len(rows), LANES))
        said[:, :count] = scores[:, nodes]
        own_sums = np.zeros((4, LANES))
        models[:, :4, :count] = params[nodes].transpose(2, 1, 0)
        models[:, 4:6, :count] = squares[nodes].transpose(2, 1, 0)
        for name, row in mixtures.items():
            state[row : row + memory[name].shape[1], :count] = memory[name][nodes].T
        _walk_group(
            kind, seen, said, features, targets, rates, curvature, start,
            state.reshape(-1), models.reshape(-1), sums, own_sums,
        )  # fmt: skip
        params[nodes] = models[:, :4, :count].transpose(2, 1, 0)
        squares[nodes] = models[:, 4:6, :count].transpose(2, 1, 0)
        for name, row in mixtures.items():
            memory[name][nodes] = state[row : row + memory[name].shape[1], :count].T
        node_sums[nodes] += own_sums[:, :count].T
        answers[:, nodes] = said[:, :count]
    return answers


@_compiled
def _tail(size: float) -> float:
    """exp(-size) of a size from 0 on, in arithmetic that compilers turn into vectors.

    As `kernel.softplus` does it: 2^-k exp(r), with a Taylor polynomial for exp(r).
    """
    size = min(size, 708.0)
    shifted = size * _LOG2_E + _ROUNDING
    whole = shifted - _ROUNDING
    r = whole * _LN2_HIGH - size
    r = whole * _LN2_LOW + r
    series = 1.6059043836821613e-10
    series = series * r + 2.08767569878681e-09
    series = series * r + 2.505210838544172e-08
    series = series * r + 2.755731922398589e-07
    series = series * r + 2.7557319223985893e-06
    series = series * r + 2.48015873015873e-05
    series = series * r + 0.0001984126984126984
    series = series * r + 0.001388888888888889
    series = series * r + 0.008333333333333333
    series = series * r + 0.041666666666666664
    series = series * r + 0.16666666666666666
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    bits = np.int64(1023 << 52) - (np.float64(shifted).view(np.int64) << np.int64(52))
    return series * np.int64(bits).view(np.float64)


@_compiled
def _log(x: float) -> float:
    """The logarithm of a normal number above 0: k ln 2 + 2 atanh(q), q = (m - 1) / (m + 1)."""
    bits = np.float64(x).view(np.int64)
    power = (bits - np.int64(_ROOT_HALF)) >> np.int64(52)
    m = np.int64(bits - (power << np.int64(52))).view(np.float64)
    q = (m - 1.0) / (m + 1.0)
    s = q * q
    series = 0.043478260869565216
    series = series * s + 0.047619047619047616
    series = series * s + 0.05263157894736842
    series = series * s + 0.058823529411764705
    series = series * s + 0.06666666666666667
    series = series * s + 0.07692307692307693
    series = series * s + 0.09090909090909091
    series = series * s + 0.1111111111111111
    series = series * s + 0.14285714285714285
    series = series * s + 0.2
    series = series * s + 0.3333333333333333
    series = series * s + 1.0
    # A small whole number as a float: its bits below those of a large one.
    whole = np.int64(power + np.float64(_ROUNDING).view(np.int64)).view(np.float64) - _ROUNDING
    return whole * _LN2_HIGH + (2.0 * q * series + whole * _LN2_LOW)


@_summing
def _walk_group(
    kind: int,
    rows: Any,
    scores: Any,
    features: Any,
    targets: Any,
    rates: Any,
    curvature: float,
    start: float,
    state: Any,
    models: Any,
    sums: Any,
    node_sums: Any,
) -> None:
    """Walk a group of nodes.

    Args:
        kind: Of the loss.
        rows: `[round, node]`.
        scores: The same, of the shared models; replaced by what was predicted.
        features: The table, `[row, feature]`.
        targets: Its labels as scores see them.
        rates: Reach and ceiling of the rate by norm, `[kind, 2]`.
        curvature: Of the loss; 0 at a kink.
        start: The score that all start from.
        state: `[row, node]`, flat: see the numbers of rows above.
        models: `[input, row, node]`, flat. Rows: parameters of alone by norm and by coordinate and
            of adapted, squares of alone and adapted, and the input itself.
        sums: `[round, 4]`.
        node_sums: `[4, node]`.
    """
    width = features.shape[1]
    for t in range(len(rows)):
        for lane in range(LANES):
            if t + _AHEAD < len(rows):
                soon = max(0, rows[t + _AHEAD, lane])
                prefetch_row(features, soon, _AHEAD_BYTES)
                prefetch_row(targets, soon, 8)
            _gather(rows[t, lane], scores[t, lane], lane, features, targets, state, models)
        _find_scores(width, state, models)
        if kind == LOGISTIC:
            _mix_chances(state)
        else:
            _mix_scores(kind, state)
        for lane in range(LANES):
            scores[t, lane] = state[_ANSWER * LANES + lane]
            away = abs(state[_SHARED * LANES + lane] - start)
            says = SAME < away < math.inf and state[_ACTIVE * LANES + lane] > 0.0
            state[_HEARD * LANES + lane] = 1.0 if says else state[_HEARD * LANES + lane]
        for column in range(4):
            total = 0.0
            for lane in range(LANES):
                loss = state[(_LOSSES + column) * LANES + lane]
                total += loss
                node_sums[column, lane] += loss
            sums[t, column] += total
        _find_steps(rates, curvature, state)
        _learn(width, state, models)


@_compiled
def _gather(
    row: int, score: float, lane: int, features: Any, targets: Any, state: Any, models: Any
) -> None:
    """Put a sample into its lane: features, the shared score as an input, and 1."""
    width = features.shape[1]
    place, length = 6 * LANES + lane, 1.0
    state[_ACTIVE * LANES + lane] = 1.0 if row >= 0 else 0.0
    state[_LABEL * LANES + lane] = targets[row] if row >= 0 else 1.0
    state[_SHARED * LANES + lane] = score
    if row >= 0:
        for i in range(width):
            value = np.float64(features[row, i])
            models[place] = value
            place += 7 * LANES
            length += value * value
        models[place] = min(FAR, max(-FAR, score)) if math.isfinite(score) else 0.0
        models[place + 7 * LANES] = 1.0
    else:
        for _ in range(width + 2):
            models[place] = 0.0
            place += 7 * LANES
    state[_LENGTH * LANES + lane] = length


@_compiled
def _find_scores(width: int, state: Any, models: Any) -> None:
    """The scores of alone (by norm, by coordinate) and adapted."""
    for lane in range(4 * LANES):
        state[_SCORES * LANES + lane] = 0.0
    for i in range(width + 2):
        base = i * 7 * LANES
        for lane in range(LANES):
            value = models[base + 6 * LANES + lane]
            # Alone does not see the shared score; its parameter of it stays 0.
            state[_SCORES * LANES + lane] += models[base + lane] * value
            state[(_SCORES + 1) * LANES + lane] += models[base + LANES + lane] * value
            state[(_SCORES + 2) * LANES + lane] += models[base + 2 * LANES + lane] * value
            state[(_SCORES + 3) * LANES + lane] += models[base + 3 * LANES + lane] * value


@_compiled
def _of_label(score: float, label: float) -> tuple[float, float]:
    """The probabilities of the label and of the other class."""
    tail = _tail(abs(score))
    large = 1.0 / (1.0 + tail)
    small = tail * large
    agrees = label * score >= 0.0
    return (large if agrees else small), (small if agrees else large)


@_compiled
def _mix_chances(state: Any) -> None:
    """Mix probabilities by Bayes' rule, and take over what the labels say about the weights."""
    keep, scale, half = 1.0 - SHARE, 1.0 - 2.0 * LEAST, 0.5 * SHARE
    for lane in range(LANES):
        label = state[_LABEL * LANES + lane]
        active = state[_ACTIVE * LANES + lane]
        there = active > 0.0
        q0, o0 = _of_label(state[_SCORES * LANES + lane], label)
        q1, o1 = _of_label(state[(_SCORES + 1) * LANES + lane], label)
        q2, o2 = _of_label(state[(_SCORES + 2) * LANES + lane], label)
        q3, o3 = _of_label(state[(_SCORES + 3) * LANES + lane], label)
        state[_SLOPES * LANES + lane] = -label * o0
        state[(_SLOPES + 1) * LANES + lane] = -label * o1
        state[(_SLOPES + 2) * LANES + lane] = -label * o2
        state[(_SLOPES + 3) * LANES + lane] = -label * o3
        v0, v1 = state[_PAIRS * LANES + lane], state[(_PAIRS + 1) * LANES + lane]
        v2, v3 = state[(_PAIRS + 2) * LANES + lane], state[(_PAIRS + 3) * LANES + lane]
        j0, j1 = v0 * (scale * q0 + LEAST), v1 * (scale * q1 + LEAST)
        j2, j3 = v2 * (scale * q2 + LEAST), v3 * (scale * q3 + LEAST)
        alone, adapted = j0 + j1, j2 + j3
        score = state[_SHARED * LANES + lane]
        chance, _ = _of_label(score, label)
        # A score that is not a number takes no part, nor does a model that says nothing yet.
        known = score == score
        heard = known and state[_HEARD * LANES + lane] > 0.0
        shared = scale * chance + LEAST if known else 1.0
        w0, w1 = state[_TOP * LANES + lane], state[(_TOP + 1) * LANES + lane]
        w2 = state[(_TOP + 2) * LANES + lane]
        u0 = w0 if heard else 0.0
        sum_there = u0 + w1 + w2
        total = 1.0 / sum_there
        t0, t1, t2 = u0 * total * shared, w1 * total * alone, w2 * total * adapted
        mixed = t0 + t1 + t2
        state[_ANSWER * LANES + lane] = mixed if label > 0.0 else 1.0 - mixed
        state[_LOSSES * LANES + lane] = -active * _log(mixed)
        loss = -active * _log(shared)
        state[(_LOSSES + 1) * LANES + lane] = loss if known or not there else math.nan
        state[(_LOSSES + 2) * LANES + lane] = -active * _log(alone)
        state[(_LOSSES + 3) * LANES + lane] = -active * _log(adapted)
        by_alone, by_adapted, by_mixed = keep / alone, keep / adapted, keep * sum_there / mixed
        # Who takes no part counts as if it had said what the mixture says.
        n0 = t0 * by_mixed if heard else keep * w0
        state[_PAIRS * LANES + lane] = j0 * by_alone + half if there else v0
        state[(_PAIRS + 1) * LANES + lane] = j1 * by_alone + half if there else v1
        state[(_PAIRS + 2) * LANES + lane] = j2 * by_adapted + half if there else v2
        state[(_PAIRS + 3) * LANES + lane] = j3 * by_adapted + half if there else v3
        state[_TOP * LANES + lane] = n0 + SHARE * _PRIOR_SHARED if there else w0
        state[(_TOP + 1) * LANES + lane] = t1 * by_mixed + SHARE * _PRIOR_ALONE if there else w1
        state[(_TOP + 2) * LANES + lane] = t2 * by_mixed + SHARE * _PRIOR_ADAPTED if there else w2


@_compiled
def _loss(kind: int, score: float, label: float) -> float:
    far = score - label
    return 0.5 * far * far if kind == SQUARED else max(0.0, 1.0 - label * score)


@_compiled
def _slope(kind: int, score: float, label: float) -> float:
    return score - label if kind == SQUARED else (-label if label * score < 1.0 else 0.0)


@_compiled
def _within(score: float, reach: float) -> float:
    """A score as an answer; one that is not finite takes no part, and is 0 here."""
    return min(reach, max(-reach, score)) if score - score == 0.0 else 0.0


@_compiled
def _faint(rate: float, loss: float) -> float:
    return _tail(min(rate * loss, FAINTEST))


@_compiled
def _finite(excess: float) -> float:
    return excess if excess - excess == 0.0 else 0.0


@_compiled
def _mix_scores(kind: int, state: Any) -> None:
    """Mix scores by AdaHedge, and take over what the labels say about the weights."""
    for k in range(2):
        for lane in range(LANES):
            label, reach = state[_LABEL * LANES + lane], state[_REACH * LANES + lane]
            active = state[_ACTIVE * LANES + lane] > 0.0
            s0 = state[(_SCORES + 2 * k) * LANES + lane]
            s1 = state[(_SCORES + 2 * k + 1) * LANES + lane]
            slope_0, slope_1 = _slope(kind, s0, label), _slope(kind, s1, label)
            state[(_SLOPES + 2 * k) * LANES + lane] = slope_0 if active else 0.0
            state[(_SLOPES + 2 * k + 1) * LANES + lane] = slope_1 if active else 0.0
            e0 = state[(_PAIRS + 2 * k) * LANES + lane]
            e1 = state[(_PAIRS + 2 * k + 1) * LANES + lane]
            gap = state[(_PAIR_GAPS + k) * LANES + lane]
            rate = _LN2 / gap
            # One of two losses is 0, as they are counted from that of the better one.
            faint = _faint(rate, e0 + e1)
            v0, v1 = 1.0 if e0 <= e1 else faint, 1.0 if e1 <= e0 else faint
            there_0, there_1 = s0 - s0 == 0.0, s1 - s1 == 0.0
            u0, u1 = v0 if there_0 else 0.0, v1 if there_1 else 0.0
            a0, a1 = _within(s0, reach), _within(s1, reach)
            answer = (u0 * a0 + u1 * a1) / (u0 + u1)  # nan if neither takes part
            loss = _loss(kind, answer, label)
            f0 = _finite(_loss(kind, a0, label) - loss) if active and there_0 else 0.0
            f1 = _finite(_loss(kind, a1, label) - loss) if active and there_1 else 0.0
            n0, n1 = e0 + f0, e1 + f1
            least = min(n0, n1)
            n0, n1 = n0 - least, n1 - least
            gained = least + _log((1.0 + faint) / (1.0 + _faint(rate, n0 + n1))) / rate
            state[(_PAIRS + 2 * k) * LANES + lane] = n0
            state[(_PAIRS + 2 * k + 1) * LANES + lane] = n1
            state[(_PAIR_GAPS + k) * LANES + lane] = gap + max(0.0, -gained)
            state[(_EXPERTS + k) * LANES + lane] = answer
            state[(_LOSSES + 2 + k) * LANES + lane] = loss if active else 0.0
    for lane in range(LANES):
        label, reach = state[_LABEL * LANES + lane], state[_REACH * LANES + lane]
        active = state[_ACTIVE * LANES + lane] > 0.0
        e0, e1 = state[_TOP * LANES + lane], state[(_TOP + 1) * LANES + lane]
        e2 = state[(_TOP + 2) * LANES + lane]
        gap = state[_TOP_GAP * LANES + lane]
        rate = _LN3 / gap
        v0, v1 = _PRIOR_SHARED * _faint(rate, e0), _PRIOR_ALONE * _faint(rate, e1)
        v2 = _PRIOR_ADAPTED * _faint(rate, e2)
        score = state[_SHARED * LANES + lane]
        known = score - score == 0.0
        shared = _within(score, reach)
        alone, adapted = state[_EXPERTS * LANES + lane], state[(_EXPERTS + 1) * LANES + lane]
        # A score that is not a number takes no part, nor does a model that says nothing yet.
        heard = known and state[_HEARD * LANES + lane] > 0.0
        u0 = v0 if heard else 0.0
        u1, u2 = v1 if alone == alone else 0.0, v2 if adapted == adapted else 0.0
        a1, a2 = alone if alone == alone else 0.0, adapted if adapted == adapted else 0.0
        answer = (u0 * shared + u1 * a1 + u2 * a2) / (u0 + u1 + u2)
        loss, shared_loss = _loss(kind, answer, label), _loss(kind, shared, label)
        f0 = _finite(shared_loss - loss) if active and heard else 0.0
        f1 = _finite(_loss(kind, alone, label) - loss) if active else 0.0
        f2 = _finite(_loss(kind, adapted, label) - loss) if active else 0.0
        n0, n1, n2 = e0 + f0, e1 + f1, e2 + f2
        least = min(n0, min(n1, n2))
        n0, n1, n2 = n0 - least, n1 - least, n2 - least
        after = _PRIOR_SHARED * _faint(rate, n0) + _PRIOR_ALONE * _faint(rate, n1)
        after += _PRIOR_ADAPTED * _faint(rate, n2)
        gained = least + _log((v0 + v1 + v2) / after) / rate
        state[_TOP * LANES + lane] = n0
        state[(_TOP + 1) * LANES + lane] = n1
        state[(_TOP + 2) * LANES + lane] = n2
        state[_TOP_GAP * LANES + lane] = gap + max(0.0, -gained)
        state[_REACH * LANES + lane] = max(reach, abs(label)) if active else reach
        state[_ANSWER * LANES + lane] = answer
        state[_LOSSES * LANES + lane] = loss if active else 0.0
        shared_loss = shared_loss if known else math.nan
        state[(_LOSSES + 1) * LANES + lane] = shared_loss if active else 0.0


@_compiled
def _rate(norm: float, reach: float, ceiling: float) -> float:
    return min(ceiling, reach / math.sqrt(norm))


@_compiled
def _find_steps(rates: Any, curvature: float, state: Any) -> None:
    """How far the experts by norm go; a node whose step is not finite takes none."""
    reach, ceiling, reach_2, ceiling_2 = rates[0, 0], rates[0, 1], rates[1, 0], rates[1, 1]
    bends = 2.0 * curvature
    for lane in range(LANES):
        score = state[_SHARED * LANES + lane]
        shared = min(FAR, max(-FAR, score)) if score - score == 0.0 else 0.0
        length = state[_LENGTH * LANES + lane]
        length_2 = length + shared * shared
        norm, norm_2 = state[_NORMS * LANES + lane], state[(_NORMS + 1) * LANES + lane]
        limit = 1.0 / (bends * length * _rate(norm, reach, ceiling))
        limit_2 = 1.0 / (bends * length_2 * _rate(norm_2, reach_2, ceiling_2))
        factor = state[_SLOPES * LANES + lane] * min(1.0, limit)
        factor_2 = state[(_SLOPES + 2) * LANES + lane] * min(1.0, limit_2)
        grown, grown_2 = norm + factor * factor * length, norm_2 + factor_2 * factor_2 * length_2
        slope, slope_2 = state[(_SLOPES + 1) * LANES + lane], state[(_SLOPES + 3) * LANES + lane]
        checked = grown + grown_2 + slope + slope_2
        sound = state[_ACTIVE * LANES + lane] > 0.0 and checked - checked == 0.0
        step, step_2 = (
            _rate(grown, reach, ceiling) * factor,
            _rate(grown_2, reach_2, ceiling_2) * factor_2,
        )
        state[_STEPS * LANES + lane] = step if sound else 0.0
        state[(_STEPS + 1) * LANES + lane] = step_2 if sound else 0.0
        state[(_SLOPES + 1) * LANES + lane] = slope if sound else 0.0
        state[(_SLOPES + 3) * LANES + lane] = slope_2 if sound else 0.0
        state[_NORMS * LANES + lane] = grown if sound else norm
        state[(_NORMS + 1) * LANES + lane] = grown_2 if sound else norm_2


@_compiled
def _one_over_root(x: float) -> float:
    """1 / sqrt(x) by Newton's method, in half the time of both; finite at 0."""
    half = 0.5 * max(x, 1e-300)
    bits = np.float64(2.0 * half).view(np.int64)
    y = np.int64(np.int64(0x5FE6EB50C7B537A9) - (bits >> np.int64(1))).view(np.float64)
    y *= 1.5 - half * y * y
    y *= 1.5 - half * y * y
    y *= 1.5 - half * y * y
    return y * (1.5 - half * y * y)


@_compiled
def _learn(width: int, state: Any, models: Any) -> None:
    """One step of all four experts of every node."""
    for i in range(width + 2):
        base = i * 7 * LANES
        # Alone does not see the shared score.
        sees = 0.0 if i == width else 1.0
        for lane in range(LANES):
            value = models[base + 6 * LANES + lane]
            seen = sees * value
            models[base + lane] -= state[_STEPS * LANES + lane] * seen
            models[base + 2 * LANES + lane] -= state[(_STEPS + 1) * LANES + lane] * value
            first = state[(_SLOPES + 1) * LANES + lane] * seen
            second = state[(_SLOPES + 3) * LANES + lane] * value
            grown = models[base + 4 * LANES + lane] + first * first
            grown_2 = models[base + 5 * LANES + lane] + second * second
            models[base + 4 * LANES + lane] = grown
            models[base + 5 * LANES + lane] = grown_2
            models[base + LANES + lane] -= BY_COORDINATE * first * _one_over_root(grown)
            models[base + 3 * LANES + lane] -= BY_COORDINATE * second * _one_over_root(grown_2)
