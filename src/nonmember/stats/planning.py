"""How large an audit must be: documents, distillation seeds and controls for a wanted error and power.

The audit that is planned clears a target where its Delta lies above a bound from m planted controls of the dose that is
to be excluded, mean + K s (`margins.margin`). Of every model's Delta a pilot tells the variance,

    V = tau^2 + (sigma^2 + v / n) / k + u / n,

tau: standard deviation between models with one reading, which more documents or seeds do not reduce;   sigma: between
distillation seeds, of which k are averaged;   v / n: what is particular to a seed and the n documents;   u / n: of the
documents, less what is common to target and controls, since they are measured on the same documents. With the gap
between the Delta of an untouched target and that of the controls, s having nu degrees of freedom, and everything
normal, exactly

    error = P(T_nu > K / sqrt(1 + 1/m)),    power = P(T_nu(gap / sqrt(V (1 + 1/m))) > K / sqrt(1 + 1/m)),

a central and a noncentral t. Where the controls are made of a stand-in the target differs from them by an extra e^2
(`margin.Extra`): V becomes V + e^2, m the number of controls whose mean would be as exact, (V + e^2) / (V / m), and nu
that of the sum, which makes both approximate. Whatever the size, power stays below Phi(gap / sqrt(tau^2 + e^2) -
Phi^-1(content)): where that is less than wanted the audit cannot succeed, and only a heavier dose, another stand-in or
another distillation can help.

What it leaves out: the pilot's numbers are taken as known, and the spread as equal for untouched and control models.

Estimates from pilot audits for planning: effect of reading, and variance between models.

Of each control of an audit there is one Delta, the mean over k distillation seeds, on the n documents of the audit.
Controls with one reading differ by the variance s^2 of `margins.pooled_spread`, which has three parts,

    s^2 = tau^2 + seed_variance / k + (1 - shared) document_variance,

of which the variance between distillation seeds and the documents' part are measured apart from it, so that tau^2, what
is left, follows; it is 0 where nothing is. Of what the seeds differ by on these documents, `interaction` is particular
to a seed and the documents and would be less on more of them; the rest, sigma^2, would not. All variances are pooled
over the audits, and a document's is taken to be the same in each.

`shared` is what the documents do to all models alike: the mean covariance of two models' Deltas over the mean variance
of one, by the jackknife over documents. What is shared does not stand between a target and its controls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from nonmember.stats._arrays import FloatArray
from nonmember.stats.margins import NO_EXTRA, Extra, bound_factor

Outcome = Literal["found", "beyond_limits", "impossible"]


@dataclass(frozen=True)
class Pilot:
    """What is known before planning, all in units of Delta.

    Attributes:
        delta_untouched: Mean of models that read nothing.
        delta_controls: Mean of models that read at the dose.
        tau: Standard deviation between models of one reading, seeds and documents aside.
        sigma: Between distillation seeds, documents aside.
        document_variance: Of one model's Delta, on `num_documents` documents.
        num_documents: At least 1.
        shared: Part of that variance in [0, 1] that is common to target and controls; 0 is the careful choice.
        interaction: Variance of one distillation's Delta that is particular to its seed and these documents; where it
            cannot be told from sigma^2, 0 is careful.
        extra: By how much more the target differs from the controls than these from one another.

    Raises:
        ValueError: For numbers that are not finite, and spreads below 0.
    """

    delta_untouched: float
    delta_controls: float
    tau: float
    sigma: float
    document_variance: float
    num_documents: int
    shared: float
    interaction: float
    extra: Extra = NO_EXTRA

    def __post_init__(self) -> None:
        spreads = (self.tau, self.sigma, self.document_variance, self.interaction)
        if not all(map(math.isfinite, (self.delta_untouched, self.delta_controls, *spreads))) or min(spreads) < 0:
            raise ValueError(
                f"Expected finite numbers, with standard deviations and variances of 0 or more; got {self}."
            )
        if self.num_documents < 1 or not 0 <= self.shared <= 1:
            raise ValueError(f"Expected at least 1 document and a shared part between 0 and 1; got {self}.")

    @property
    def gap(self) -> float:
        """How far an untouched target lies above the controls."""
        return self.delta_untouched - self.delta_controls

    @property
    def per_document(self) -> float:
        """u: variance of one document, less what is shared."""
        return self.document_variance * self.num_documents * (1 - self.shared)

    @property
    def between_models(self) -> float:
        """Standard deviation of the target about the controls that no number of documents and seeds reduces."""
        return math.hypot(self.tau, math.sqrt(self.extra.variance))

    def variance(self, num_documents: float, num_seeds: float) -> float:
        """V of one model's Delta."""
        return self.tau**2 + self.sigma**2 / num_seeds + self.falling(num_seeds) / num_documents

    def falling(self, num_seeds: float) -> float:
        """v / k + u: what is divided by the number of documents."""
        return self.interaction * self.num_documents / num_seeds + self.per_document


@dataclass(frozen=True)
class Rule:
    """When a target is cleared.

    Attributes:
        content: Of the bound (`margins.margin`), in (0.5, 1).
        confidence: Of the bound, in [0.5, 1) or None.
        num_doses: How many are planted, at least 1; their controls pool their spread.
        negatives: Whether as many controls are trained that read nothing. They cost what others do, and the decision
            does not rest on them.

    Raises:
        ValueError: Outside these ranges.
    """

    content: float
    confidence: float | None
    num_doses: int
    negatives: bool

    def __post_init__(self) -> None:
        if not (0.5 < self.content < 1 and (self.confidence is None or 0.5 <= self.confidence < 1)):
            raise ValueError(
                f"Expected a content above 0.5 and below 1, and a confidence from 0.5 up or none; got {self.content} "
                f"and {self.confidence}. For an error of 5% pass a content of 0.95."
            )
        if self.num_doses < 1:
            raise ValueError(f"Expected at least 1 dose of controls; got {self.num_doses}.")

    def df(self, num_controls: int) -> int:
        """Of s, with so many controls of each dose."""
        return self.num_doses * (num_controls - 1)


@dataclass(frozen=True)
class Costs:
    """What controls and distillations cost, in any one unit.

    Attributes:
        control: Of training one.
        distillation_per_document: Of distilling a reference and observing it, for each document.
    """

    control: float
    distillation_per_document: float


@dataclass(frozen=True)
class Design:
    """One audit that has the power wanted.

    Attributes:
        num_controls: Controls of each dose.
        error: Probability to clear a model that read at the dose.
        power: To clear one that read nothing.
        num_trained: All controls.
        num_distillations: Of the target and of every control.
        cost: See `Costs`.
    """

    num_documents: int
    num_seeds: int
    num_controls: int
    error: float
    power: float
    num_trained: int
    num_distillations: int
    cost: float


@dataclass(frozen=True)
class Plan:
    """The audits that would do, or why there is none.

    Attributes:
        outcome: "found"; "beyond_limits": there is an audit, but a larger one than was allowed; "impossible": there is
            none.
        ceiling: The power that no size of audit exceeds.
        designs: Those that no other one beats both in cost and in documents, the cheapest first.
    """

    outcome: Outcome
    ceiling: float
    designs: tuple[Design, ...]
    explanation: str


def error_and_power(
    pilot: Pilot, rule: Rule, *, num_documents: float, num_seeds: float, num_controls: int
) -> tuple[float, float]:
    """Error and power of an audit of a given size, by a central and a noncentral t: see the module.

    Args:
        pilot: What is known of Delta.
        rule: When a target is cleared.
        num_documents: Documents; above 0.
        num_seeds: Distillation seeds; above 0.
        num_controls: Controls of each dose; above 0.

    Returns:
        The probabilities to clear a model that read at the dose, and one that read nothing; NaN where the controls
        leave no degree of freedom.

    Raises:
        ValueError: For numbers below 0 that make a variance negative.
        ZeroDivisionError: For 0.

    Source: Ours; docs/methods/planning.md.

    >>> measured = {"tau": 0.01, "sigma": 0.01, "document_variance": 4e-4, "shared": 0.0, "interaction": 0.0}
    >>> pilot = Pilot(delta_untouched=0.01, delta_controls=-0.10, num_documents=300, **measured)
    >>> rule = Rule(content=0.95, confidence=None, num_doses=2, negatives=False)
    >>> error, power = error_and_power(pilot, rule, num_documents=300, num_seeds=3, num_controls=5)
    >>> round(error, 3), round(power, 3)
    (0.05, 0.989)
    """
    return _error_and_power(pilot, rule, pilot.variance(num_documents, num_seeds), num_controls)


def _error_and_power(pilot: Pilot, rule: Rule, variance: float, num_controls: int) -> tuple[float, float]:
    """With V as given."""
    df, as_exact = float(rule.df(num_controls)), float(num_controls)
    total = variance + pilot.extra.variance
    if pilot.extra.variance and variance:
        as_exact = total / (variance / num_controls)
        of_controls = variance if rule.confidence is not None else variance * (1 + 1 / num_controls)
        _, df = pilot.extra.added_to(of_controls, df)
    elif pilot.extra.variance:
        as_exact, df = math.inf, pilot.extra.df
    scale = math.sqrt(total * (1 + 1 / as_exact))
    factor = bound_factor(as_exact, df, content=rule.content, confidence=rule.confidence)
    critical = factor / math.sqrt(1 + 1 / as_exact)
    error = float(scipy.special.stdtr(df, -critical))
    if scale == 0:
        return error, float(pilot.gap > 0)
    return error, float(scipy.stats.nct.sf(critical, df, pilot.gap / scale))


def power_ceiling(gap: float, between_models: float, content: float) -> float:
    """Power with endless documents, seeds and controls: Phi(gap / between_models - Phi^-1(content)).

    Args:
        gap: Delta of an untouched target minus that of the controls.
        between_models: Standard deviation of the target about the controls, in units of Delta.
        content: Of the bound, in (0, 1).

    Returns:
        A probability in [0, 1].

    Source: Ours; docs/methods/planning.md.

    >>> round(power_ceiling(gap=0.1, between_models=0.03, content=0.95), 3)
    0.954
    """
    if between_models == 0:
        return float(gap > 0)
    return float(scipy.special.ndtr(gap / between_models - scipy.special.ndtri(content)))


def plan(
    pilot: Pilot,
    rule: Rule,
    *,
    power: float,
    costs: Costs,
    min_documents: int,
    max_documents: int,
    max_seeds: int,
    max_controls: int,
) -> Plan:
    """The audits within the limits that have a wanted power.

    For every number of seeds up to `max_seeds` and of controls of each dose from 2 to `max_controls`, the fewest
    documents within their limits are looked for.

    Args:
        pilot: As in `error_and_power`.
        rule: As in `error_and_power`.
        power: Wanted, between 1 - content and 1.
        costs: Of controls and distillations, in any one unit.
        min_documents: Lower limit on the documents.
        max_documents: Upper limit on the documents.
        max_seeds: Upper limit on the seeds.
        max_controls: Upper limit on the controls of each dose.

    Returns:
        The designs that no other one beats both in cost and in documents, the cheapest first, or why there is none.

    Raises:
        ValueError: For a power of 1 or more or not above the error 1 - content, and for limits that leave nothing.

    Source: Ours; docs/methods/planning.md.

    >>> measured = {"tau": 0.01, "sigma": 0.01, "document_variance": 4e-4, "shared": 0.0, "interaction": 0.0}
    >>> pilot = Pilot(delta_untouched=0.01, delta_controls=-0.10, num_documents=300, **measured)
    >>> found = plan(
    ...     pilot, Rule(content=0.95, confidence=None, num_doses=2, negatives=False), power=0.9, costs=Costs(1.0, 0.01),
    ...     min_documents=100, max_documents=1000, max_seeds=3, max_controls=5
    ... )
    >>> found.outcome, found.designs[0].num_documents
    ('found', 240)
    """
    if not 1 - rule.content < power < 1:
        raise ValueError(
            f"Expected a power above the error {1 - rule.content:g} and below 1; got {power}. Pass 0.9 or so."
        )
    if not (2 <= min_documents <= max_documents and max_seeds >= 1 and max_controls >= 2):
        raise ValueError(
            "Expected room for 2 documents, 1 seed and 2 controls of each dose at least; got documents from "
            f"{min_documents} to {max_documents}, up to {max_seeds} seeds and up to {max_controls} controls."
        )
    ceiling = power_ceiling(pilot.gap, pilot.between_models, rule.content)
    if ceiling < power:
        return Plan("impossible", ceiling, (), _impossible(pilot, rule, power, ceiling))
    found: list[Design] = []
    for num_controls in range(2, max_controls + 1):
        allowed = _allowed_variance(pilot, rule, power, num_controls)
        for num_seeds in range(1, max_seeds + 1):
            num_documents = _fewest_documents(pilot, allowed, num_seeds)
            if num_documents <= max_documents:
                found.append(
                    _design(pilot, rule, costs, max(min_documents, math.ceil(num_documents)), num_seeds, num_controls)
                )
    designs = _unbeaten(found)
    if designs:
        return Plan("found", ceiling, designs, _as_details(designs[0], power))
    _, most = error_and_power(pilot, rule, num_documents=max_documents, num_seeds=max_seeds, num_controls=max_controls)
    explanation = (
        f"The largest audit allowed ({max_documents} documents, {max_seeds} distillation seeds, {max_controls} "
        f"controls of each dose) clears an untouched target with probability {most:.2f}, and {power:.2f} is wanted; "
        f"without limits it could be up to {ceiling:.2f}. Allow more of them, or exclude a heavier dose only."
    )
    return Plan("beyond_limits", ceiling, (), explanation)


def _allowed_variance(pilot: Pilot, rule: Rule, power: float, num_controls: int) -> float:
    """The largest V that gives this power; 0 where none does."""
    if pilot.gap <= 0:
        return 0.0

    def missing(log_variance: float) -> float:
        return power - _error_and_power(pilot, rule, math.exp(log_variance), num_controls)[1]

    lowest, highest = (2 * math.log(pilot.gap) + math.log(factor) for factor in (1e-12, 1e2))
    if missing(lowest) > 0:
        return 0.0
    return math.exp(scipy.optimize.brentq(missing, lowest, highest, xtol=1e-12))


def _fewest_documents(pilot: Pilot, allowed_variance: float, num_seeds: int) -> float:
    """n with V = allowed; infinity where documents alone cannot bring V down so far."""
    left = allowed_variance - pilot.tau**2 - pilot.sigma**2 / num_seeds
    return pilot.falling(num_seeds) / left if left > 0 else math.inf


def _design(pilot: Pilot, rule: Rule, costs: Costs, num_documents: int, num_seeds: int, num_controls: int) -> Design:
    error, power = error_and_power(
        pilot, rule, num_documents=num_documents, num_seeds=num_seeds, num_controls=num_controls
    )
    num_trained = (rule.num_doses + rule.negatives) * num_controls
    num_distillations = num_seeds * (num_trained + 1)
    cost = num_trained * costs.control + num_distillations * num_documents * costs.distillation_per_document
    return Design(num_documents, num_seeds, num_controls, error, power, num_trained, num_distillations, cost)


def _unbeaten(designs: list[Design]) -> tuple[Design, ...]:
    """By cost; each has fewer documents than every cheaper one."""
    kept: list[Design] = []
    for design in sorted(designs, key=lambda item: (item.cost, item.num_documents, item.num_seeds, item.num_controls)):
        if not kept or design.num_documents < kept[-1].num_documents:
            kept.append(design)
    return tuple(kept)


def _as_details(design: Design, power: float) -> str:
    seeds = f"{design.num_seeds} distillation seed{'s' * (design.num_seeds > 1)}"
    return (
        f"{design.num_documents} documents, {seeds} and {design.num_controls} controls of each dose clear an untouched "
        f"target with probability {design.power:.2f} (wanted: {power:.2f}), and one that read at the dose with "
        f"probability {design.error:.3f}."
    )


def _impossible(pilot: Pilot, rule: Rule, power: float, ceiling: float) -> str:
    if pilot.gap <= 0:
        return (
            f"An untouched model's Delta ({pilot.delta_untouched:+.3f}) is not above that of models which read at this "
            f"dose ({pilot.delta_controls:+.3f}), so no audit of any size can tell them apart. Exclude a heavier dose "
            "only, or change the distillation or the reference."
        )
    needed = (scipy.special.ndtri(rule.content) + scipy.special.ndtri(power)) * pilot.between_models
    return (
        f"An untouched model's Delta lies {pilot.gap:.3f} above that of models which read at this dose, but models of "
        f"one reading differ by {pilot.between_models:.3f} (standard deviation) whatever the number of documents and "
        f"seeds; a gap of {needed:.3f} would be needed. No audit of any size has more power than {ceiling:.2f}, and "
        f"{power:.2f} is wanted. Exclude a heavier dose only, or change the distillation or the reference."
    )


# From pilot audits ----------------------------------------------------------------------------------------------------


Exposure = tuple[float, float]  # share of the documents in (0, 1], times they were read


@dataclass(frozen=True)
class PilotAudit:
    """What the controls of one set showed.

    Attributes:
        controls: Reading -> Delta of each control; 0 times means that it read nothing.
        num_documents: n.
        num_seeds: k.
        seed_variance: Between seeds on these documents; 0 with one seed.
        seed_df: Degrees of freedom that `seed_variance` rests on; 0 with one seed.
        interaction: See the module; 0 where it is not known.
        document_variance: See the module.
        shared: See the module.
    """

    controls: Mapping[Exposure, Sequence[float]]
    num_documents: int
    num_seeds: int
    seed_variance: float
    seed_df: int
    interaction: float
    document_variance: float
    shared: float

    @property
    def untouched(self) -> list[float]:
        return [delta for (_, times), deltas in self.controls.items() if not times for delta in deltas]

    def mean_of_readers(self, reading: Exposure) -> float:
        """The largest mean Delta over this reading and every heavier one: whom it is hardest to tell."""
        return max(
            float(np.mean(deltas))
            for other, deltas in self.controls.items()
            if deltas and other[1] and other[0] >= reading[0] and other[1] >= reading[1]
        )

    def gap(self, reading: Exposure) -> float:
        return float(np.mean(self.untouched)) - self.mean_of_readers(reading)

    @property
    def squares(self) -> tuple[float, int]:
        """Sum of squares of Delta about the mean of its reading, and degrees of freedom."""
        samples = [np.asarray(deltas) for deltas in self.controls.values() if len(deltas)]
        return sum(float(((item - item.mean()) ** 2).sum()) for item in samples), sum(item.size - 1 for item in samples)


@dataclass(frozen=True)
class PilotSpread:
    """What Delta varies by, pooled over audits.

    Attributes:
        variance: s^2 of all audits.
        df: Degrees of freedom of `variance`.
        tau: Standard deviation between models.
        sigma: Standard deviation between seeds.
        sigma_df: Of the seeds.
        per_document: Variance if there were one document.
        interaction: Variance that is particular to a seed and the documents, if there were one document.
        shared: As of `PilotAudit`.
    """

    variance: float
    df: int
    tau: float
    sigma: float
    sigma_df: int
    per_document: float
    interaction: float
    shared: float


def spread(audits: Sequence[PilotAudit]) -> PilotSpread:
    """Pooled over the audits.

    Raises:
        ValueError: Where no reading has two controls, so that nothing tells how much models differ.
    """
    squares, dfs = zip(*(audit.squares for audit in audits), strict=True)
    df = sum(dfs)
    if df < 1:
        raise ValueError(
            "Expected at least 2 controls of one reading, since one says nothing about how much models differ. Add a "
            "seed to the controls of the pilot."
        )
    sigma_df = sum(audit.seed_df for audit in audits)
    sigma_squared = sum((audit.seed_variance - audit.interaction) * audit.seed_df for audit in audits)
    whole, own, interaction = (
        float(np.mean([variance * audit.num_documents for variance, audit in zip(variances, audits, strict=True)]))
        for variances in (
            [audit.document_variance for audit in audits],
            [audit.document_variance * (1 - audit.shared) for audit in audits],
            [audit.interaction for audit in audits],
        )
    )
    explained = sum(
        (audit.seed_variance / audit.num_seeds + own / audit.num_documents) * item
        for audit, item in zip(audits, dfs, strict=True)
    )
    return PilotSpread(
        variance=sum(squares) / df,
        df=df,
        tau=math.sqrt(max(sum(squares) - explained, 0.0) / df),
        sigma=math.sqrt(max(sigma_squared, 0.0) / max(sigma_df, 1)),
        sigma_df=sigma_df,
        per_document=whole,
        interaction=interaction,
        shared=1 - own / whole if whole > 0 else 0.0,
    )


def pilot(audits: Sequence[PilotAudit], reading: Exposure) -> Pilot:
    """For excluding this reading and all heavier ones; means over the audits.

    Raises:
        ValueError: As `spread`, and where no control read nothing.
    """
    if not all(audit.untouched for audit in audits):
        raise ValueError(
            "Expected controls that read nothing of the set in every audit of the pilot; one has none. Plant a reading "
            "of 0 exposures there."
        )
    found = spread(audits)
    num_documents = round(float(np.mean([audit.num_documents for audit in audits])))
    return Pilot(
        delta_untouched=float(np.mean([np.mean(audit.untouched) for audit in audits])),
        delta_controls=float(np.mean([audit.mean_of_readers(reading) for audit in audits])),
        tau=found.tau,
        sigma=found.sigma,
        document_variance=found.per_document / num_documents,
        num_documents=num_documents,
        shared=found.shared,
        interaction=found.interaction / num_documents,
    )


def shared_part(without_MG: FloatArray, interaction: float) -> float:
    """`shared` in [0, 1] from Delta of M models [M, G] without each of G documents in turn; 0 of fewer than two.

    Args:
        interaction: Variance of these Deltas that is particular to their seeds and the documents, and no part of
            theirs.
    """
    num_models, num_documents = without_MG.shape
    if num_models < 2:
        return 0.0
    covariance_MM = (num_documents - 1) * np.cov(without_MG, bias=True)
    own = float(np.trace(covariance_MM)) / num_models - interaction
    common = float(covariance_MM.sum() - np.trace(covariance_MM)) / (num_models * (num_models - 1))
    return min(max(common / own, 0.0), 1.0) if own > 0 else 0.0
