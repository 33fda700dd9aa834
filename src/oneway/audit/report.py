"""The audit's report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from oneway.audit.privacy import Audit
from oneway.errors import StoreError
from oneway.files.atomic import write_atomically

_COLUMNS = 6
"""Features of an example that are shown."""
NOT_COVERED = (
    "how many samples there are, and when they came: pushes are counted and have a time",
    "the centres and scales of the features in the task, if they were taken from the data",
    "learning rates and other settings, if they were chosen by trying them on the data",
    "that a participant has labelled samples of this kind at all",
    "a machine that is broken into, or an owner who shares the samples in other ways",
    "other attacks than those run here: an audit can refute a guarantee, it cannot prove one",
)
VERDICTS = {
    None: "nothing is promised",
    True: "the promise withstood these attacks",
    False: "the promise is BROKEN: more leaks than promised",
}

TITLE = "# Privacy audit"
"""How a report begins."""


def facts_of(audit: Audit) -> dict[str, str]:
    """What each attack found, and the verdict."""
    evidence, facts = audit.evidence, {}
    for one in audit.findings:
        score = one.score
        facts[one.attacker] = (
            f"read {score.rows_read_exactly:,} of {score.rows:,} samples exactly; nearest guess at "
            f"a median cosine of {score.cosine:.2f} (for samples it never had: "
            f"{score.cosine_by_chance:.2f})"
        )
    facts["membership"] = (
        f"{evidence.canaries:,} canaries: {evidence.false_alarms:.1%} false alarms, "
        f"{evidence.misses:.1%} misses"
    )
    facts["promised"] = audit.settings.privacy.brief
    facts["measured"] = (
        f"epsilon is at least {evidence.epsilon_lower_bound:.3g} at delta {audit.delta:g}, with "
        f"{evidence.confidence:.0%} confidence"
    )
    facts["verdict"] = VERDICTS[audit.is_kept]
    return facts


def page_of(audit: Audit) -> str:
    """The whole report."""
    settings = audit.settings
    about = {
        "data": f"{settings.data}; the samples of {audit.victim}",
        "model": f"{settings.model}, learned by {settings.method} with learning rate "
        f"{settings.learning_rate} ({settings.schedule}), step {settings.step}",
        "pushes": f"of at least {settings.samples_per_push} samples",
        "seed": str(settings.seed),
        "versions": ", ".join(f"{name} {value}" for name, value in audit.versions.items()),
    }
    parts = [
        TITLE,
        "Participants of this network learn a common model. Samples stay with their owner; pushes "
        "carry shares of a model. This report says whether the receivers of pushes can find out "
        "what the samples were. The attacks were run on a simulation of the whole network.",
        _table(("", ""), facts_of(audit).items()),
        *_examples(audit),
        "## Not covered",
        "\n".join(f"- {item}" for item in NOT_COVERED),
        "## Settings",
        _table(("", ""), about.items()),
    ]
    return "\n\n".join(parts) + "\n"


def write(path: Path, audit: Audit) -> None:
    """Write the report atomically.

    Raises:
        StoreError: The file cannot be written.
    """
    try:
        write_atomically(path, page_of(audit).encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; choose another file with --out"
        ) from error


def _examples(audit: Audit) -> list[str]:
    """Samples of the victim beside the nearest guesses of the attacker that read most."""
    worst = audit.worst
    if not worst.examples:
        return []
    names = list(worst.examples[0].true)[:_COLUMNS]
    rows = []
    for example in worst.examples:
        note = "exactly" if example.exact else f"cosine {example.cosine:.2f}"
        rows.append(["true", *(_shown(example.true[name]) for name in names), ""])
        rows.append(["read", *(_shown(example.read[name]) for name in names), note])
    return [f"## Samples, and what was read by {worst.attacker}", _table(("", *names, ""), rows)]


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: float) -> str:
    """A number of a sample, in few digits.

    >>> _shown(1013.25), _shown(0.00012345), _shown(-0.0)
    ('1013.25', '0.00012345', '0')
    """
    text = f"{value:.6g}"
    return "0" if text == "-0" else text
