"""Differential privacy as arithmetic: what noise promises, and how banded noise is made."""

from oneway.privacy.accounting import Guarantee, Unit, delta_of, epsilon_of, mu_for
from oneway.privacy.banded_noise import LARGEST_BAND, coefficients, sensitivity

__all__ = [
    "LARGEST_BAND",
    "Guarantee",
    "Unit",
    "coefficients",
    "delta_of",
    "epsilon_of",
    "mu_for",
    "sensitivity",
]
