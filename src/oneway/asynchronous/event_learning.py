"""What a node does alone: the loss of a sample, its step, deposits, and whether its model moved.

As `peer.learner` and `methods` do it, in floating point, for the linear models.
"""

from __future__ import annotations

import math
from typing import Any

from oneway.asynchronous.event_pool import uniform
from oneway.asynchronous.event_world import (
    CORRECT,
    DRAWN,
    HEARD,
    LEARNED,
    LIAR,
    LOSS_SUM,
    LOSSES,
    NUMBER,
    SAMPLES,
    SHUT,
    UNFINISHED,
    Numbers,
    Samples,
    World,
    batch_of,
    edge_facts_of,
    gradient_of,
    held_of,
    in_edges_of,
    in_start_of,
    labels_of,
    lies_of,
    model_of,
    node_facts_of,
    part_of_loop,
    past_of,
    pool_facts_of,
    pool_of,
    pushed_of,
    random_of,
    rates_of,
    squares_of,
    sums_of,
    tally_of,
    weights_of,
)
from oneway.simulator.kernels import (
    LOGISTIC,
    RIDGE,
)

MOVED = 1e-6
"""As in `peer.push_pace`."""


@part_of_loop
def loss_of(kind: int, score: float, label: float) -> tuple[float, float]:
    """The loss of a score and its derivative."""
    if kind == RIDGE:
        return 0.5 * (score - label) ** 2, score - label
    margin = label * score
    if kind == LOGISTIC:
        tail = math.exp(-abs(margin))
        loss = math.log1p(tail) + max(-margin, 0.0)
        return loss, -label * (tail if margin > 0.0 else 1.0) / (1.0 + tail)
    return max(1.0 - margin, 0.0), (-label if margin < 1.0 else 0.0)


@part_of_loop
def norm(row: Any, length: int) -> float:
    """The Euclidean norm of the first numbers of a row."""
    total = 0.0
    for c in range(length):
        total += row[c] * row[c]
    return math.sqrt(total)


@part_of_loop
def read_model(world: World, numbers: Numbers, node: int) -> float:
    """Put the estimate of a node into `model_of(world)`; return its norm."""
    held, model = held_of(world)[numbers.parts * node], model_of(world)
    mass = held[numbers.dim]
    if numbers.copied:
        _average(world, numbers, node)
    else:
        for c in range(numbers.dim):
            model[c] = held[c] / mass if mass > 0.0 else pushed_of(world)[node, c]
    return norm(model, numbers.dim)


@part_of_loop
def _average(world: World, numbers: Numbers, node: int) -> None:
    """The average of a node's own model and the last ones of its senders, none of them far away."""
    dim, own, model = numbers.dim, held_of(world)[node], model_of(world)
    for c in range(dim):
        model[c] = own[c]
    limit, count = numbers.nearness * (1.0 + norm(own, dim)), 1
    for place in range(in_start_of(world)[node], in_start_of(world)[node + 1]):
        edge = in_edges_of(world)[place]
        total = edge_facts_of(world)[edge, HEARD]
        if pool_facts_of(world)[total, NUMBER] == 0 or edge_facts_of(world)[edge, SHUT]:
            continue
        square = 0.0
        for c in range(dim):
            square += (pool_of(world)[total, c] - own[c]) ** 2
        distance = math.sqrt(square)
        part = limit / distance if distance > limit else 1.0
        for c in range(dim):
            model[c] += own[c] + part * (pool_of(world)[total, c] - own[c])
        count += 1
    for c in range(dim):
        model[c] /= count


@part_of_loop
def take_average(world: World, numbers: Numbers, node: int) -> bool:
    """Hold the average of the models that came; whether that is another model."""
    read_model(world, numbers, node)
    changes = False
    for c in range(numbers.dim):
        changes |= held_of(world)[node, c] != model_of(world)[c]
        held_of(world)[node, c] = model_of(world)[c]
    return changes


@part_of_loop
def learn(world: World, numbers: Numbers, samples: Samples, node: int) -> bool:
    """Suffer the loss of the node's next sample, learn from it; whether a step came of it."""
    dim, facts = numbers.dim, node_facts_of(world)
    index = facts[node, LEARNED]
    row = samples.rows[index, node]
    size = read_model(world, numbers, node)
    model, features = model_of(world), samples.features[row]
    score, square = 0.0, 0.0
    for c in range(numbers.num_features):
        score += model[c] * features[c]
        square += float(features[c]) * features[c]
    if numbers.intercept:
        score += model[dim - 1]
        square += 1.0
    label = labels_of(world)[row]
    loss, slope = loss_of(numbers.kind, score, label)
    sums_of(world)[LOSS_SUM] += loss + 0.5 * numbers.l2 * size * size
    tally_of(world)[LOSSES] += 1
    tally_of(world)[SAMPLES] += 1
    tally_of(world)[CORRECT] += (score >= 0.0) == (label > 0.0)
    facts[node, LEARNED] = index + 1
    gradient = gradient_of(world)
    for c in range(dim):
        gradient[c] = numbers.l2 * model[c]
    for c in range(numbers.num_features):
        gradient[c] += slope * features[c]
    if numbers.intercept:
        gradient[dim - 1] += slope
    # One of the step rules of `oneway.methods.step_rules`, as in `simulator.kernels`.
    mass = max(held_of(world)[numbers.parts * node, dim], 0.0)
    bearing = 1.0 if numbers.relayed or numbers.copied else mass
    share = min(numbers.cap, bearing) if numbers.cap > 0.0 else 1.0
    rate = rates_of(world)[index]
    if numbers.auto:
        squares = squares_of(world)[node]
        rate = (
            min(numbers.ceiling, numbers.reach / math.sqrt(squares)) if squares else numbers.ceiling
        )
    step = rate * share
    limit = math.inf
    if numbers.stable > 0.0:
        limit = numbers.stable * bearing / (numbers.bend * square + numbers.l2)
    if not numbers.batched:
        _descend(world, numbers, node, gradient, min(step, limit))
        return True
    return _add_to_batch(world, numbers, node, rate, limit, share)


@part_of_loop
def _add_to_batch(
    world: World, numbers: Numbers, node: int, rate: float, limit: float, share: float
) -> bool:
    """As `methods.batches`: clip, sum, and when the batch is full noise it and take the step."""
    dim, facts, batch, gradient = (
        numbers.dim,
        node_facts_of(world),
        batch_of(world)[node],
        gradient_of(world),
    )
    factor = 1.0
    if numbers.stable > 0.0:
        factor = min(rate, limit) / (rate * share) if rate * share > 0.0 else 0.0
    length = factor * norm(gradient, dim)
    if length > numbers.batch_clip:
        factor *= numbers.batch_clip / length
    for c in range(dim):
        batch[c] += factor * gradient[c]
    facts[node, UNFINISHED] += 1
    if facts[node, UNFINISHED] < numbers.batch_samples:
        return False
    facts[node, UNFINISHED] = 0
    if numbers.noise > 0.0:
        _add_noise(world, numbers, node)
    if numbers.auto:
        squares_of(world)[node] += norm(batch, dim) ** 2
        squares = squares_of(world)[node]
        rate = (
            min(numbers.ceiling, numbers.reach / math.sqrt(squares)) if squares else numbers.ceiling
        )
    _descend(world, numbers, node, batch, rate * share)
    for c in range(dim):
        batch[c] = 0.0
    return True


@part_of_loop
def _add_noise(world: World, numbers: Numbers, node: int) -> None:
    """Noise of this batch, and of those before it as much as is taken back."""
    weights, past = weights_of(world), past_of(world)
    band, drawn = world.band, node_facts_of(world)[node, DRAWN]
    node_facts_of(world)[node, DRAWN] = drawn + 1
    for c in range(numbers.dim):
        far, around = 1.0 - uniform(random_of(world)), uniform(random_of(world))
        past[node * band + drawn % band, c] = math.sqrt(-2.0 * math.log(far)) * math.cos(
            2.0 * math.pi * around
        )
    scale = numbers.noise * numbers.batch_clip
    for before in range(min(band, drawn + 1)):
        for c in range(numbers.dim):
            batch_of(world)[node, c] += (
                scale * weights[before] * past[node * band + (drawn - before) % band, c]
            )


@part_of_loop
def _descend(world: World, numbers: Numbers, node: int, direction: Any, step: float) -> None:
    """Take a step, or put it into the parcel and deposit what the mass can bear."""
    held = held_of(world)
    if numbers.copied:
        for c in range(numbers.dim):
            held[node, c] = model_of(world)[c]
    if not numbers.relayed:
        for c in range(numbers.dim):
            held[numbers.parts * node, c] -= step * direction[c]
        return
    for c in range(numbers.dim):
        held[2 * node + 1, c] += step * direction[c]
    held[2 * node + 1, numbers.dim] += 1.0
    deposit(world, numbers, node)


@part_of_loop
def deposit(world: World, numbers: Numbers, node: int) -> bool:
    """As `Relay.before_push`, no further than others may move a model; whether anything was."""
    dim = numbers.dim
    held, parcel = held_of(world)[2 * node], held_of(world)[2 * node + 1]
    mass, length = held[dim], norm(parcel, dim)
    if not mass > 0.0 or (length == 0.0 and parcel[dim] == 0.0):
        return False
    bearable = numbers.amount * mass
    if numbers.by_count:
        root = math.sqrt(max(parcel[dim], 0.0))
        bearable = bearable / root if root > bearable else 1.0
    fraction = min(1.0, bearable)
    most = numbers.nearness * (1.0 + norm(held, dim) / mass) * mass
    if fraction * length > most:
        fraction = most / length
    for c in range(dim):
        held[c] -= fraction * parcel[c]
    for c in range(dim + 1):
        parcel[c] *= 1.0 - fraction
    return True


@part_of_loop
def moved(world: World, numbers: Numbers, node: int) -> bool:
    """Whether the estimate moved since the last push, or there is a parcel to pass on."""
    size = read_model(world, numbers, node)
    least = MOVED * (1.0 + size)
    if numbers.relayed:
        for c in range(numbers.dim):
            if abs(held_of(world)[2 * node + 1, c]) > least:
                return True
    total = 0.0
    for c in range(numbers.dim):
        total += (model_of(world)[c] - pushed_of(world)[node, c]) ** 2
    return math.sqrt(total) > least


@part_of_loop
def has_parcel(world: World, numbers: Numbers, node: int) -> bool:
    """Whether there is a parcel to deposit or to pass on."""
    least = MOVED * (1.0 + read_model(world, numbers, node))
    for c in range(numbers.dim):
        if numbers.relayed and abs(held_of(world)[2 * node + 1, c]) > least:
            return True
    return False


@part_of_loop
def lie(world: World, numbers: Numbers, node: int) -> None:
    """Hold the lie instead of a model; the mass stays."""
    held, lies = (
        held_of(world)[numbers.parts * node],
        lies_of(world)[node_facts_of(world)[node, LIAR] - 1],
    )
    mass = 1.0 if numbers.copied else held[numbers.dim]
    if held[numbers.dim] > 0.0:
        for c in range(numbers.dim):
            held[c] = mass * lies[c]
