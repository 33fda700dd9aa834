"""Whether polars is there, which reads whole tables; peers do without."""

from __future__ import annotations

from oneway.errors import MissingExtraError


def require_polars() -> None:
    """Check that polars can be imported.

    Raises:
        MissingExtraError: If it is not installed; says how to.
    """
    try:
        import polars  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "loading data needs polars; install it with pip install 'oneway[lab]'"
        ) from None
