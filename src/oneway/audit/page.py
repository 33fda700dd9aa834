"""The audit's report: one self-contained HTML page, in plain words."""

from __future__ import annotations

from pathlib import Path

from oneway.audit.privacy import Audit
from oneway.errors import StoreError
from oneway.files.atomic import write_atomically
from oneway.report.pages import render

_COLUMNS = 6
"""Of an example so many features are shown."""

NOT_COVERED = (
    "how many samples there are, and when they came: pushes are counted and have a time",
    "the centres and scales of the features in the task, if they were taken from the data",
    "learning rates and other settings, if they were chosen by trying them on the data",
    "that somebody has samples of this kind at all, with labels",
    "a machine that is broken into, or an owner who shares the samples in other ways",
    "other attacks than those played here: an audit can refute a promise, it cannot prove one",
)


def page_of(audit: Audit) -> str:
    """The whole page as text."""
    evidence, worst, promised = audit.evidence, audit.worst, audit.epsilon_promised
    names = list(worst.examples[0].true)[:_COLUMNS] if worst.examples else []
    told = len(worst.examples[0].true) - len(names) if worst.examples else 0
    settings = audit.settings
    return render(
        __package__,
        "page.html",
        title="Privacy audit",
        introduction=[
            "Participants of this network learn a common model. Samples stay with their owner; "
            "what is sent are shares of a model. This page reports whether somebody who receives "
            "them, as is intended, can find out what the samples were.",
        ],
        audit=audit,
        guarantee=settings.privacy.guarantee,
        worst=worst,
        evidence=evidence,
        promised=promised,
        names=names,
        left_out=told,
        not_covered=NOT_COVERED,
        shown=_shown,
        facts={
            "attacked": {
                "simulation": "a simulation of the whole network",
                "lab": "two real peers over encrypted connections on one machine; the membership "
                "test a simulation of them",
            }[audit.against],
            "data": f"{settings.data}; the samples of {audit.victim}",
            "samples": f"{worst.score.rows:,} of this participant",
            "model": f"{settings.model}, learned by {settings.method} with learning rate "
            f"{settings.learning_rate} ({settings.schedule}), step {settings.step}",
            "pushes": f"of at least {settings.samples_per_push} samples",
            "privacy": settings.privacy.brief,
            "seed": str(settings.seed),
            "versions": ", ".join(f"{name} {value}" for name, value in audit.versions.items()),
            "again": _command(audit),
        },
    )


def write(path: Path, audit: Audit) -> None:
    """Write the page; it appears whole or not at all.

    Raises:
        StoreError: The file cannot be written.
    """
    try:
        write_atomically(path, page_of(audit).encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; choose another file with --out"
        ) from error


def _command(audit: Audit) -> str:
    settings, privacy = audit.settings, audit.settings.privacy
    words = ["oneway audit privacy", f"--data {settings.data}", f"--rounds {settings.rounds}"]
    if settings.nodes is not None:
        words.append(f"--nodes {settings.nodes}")
    words.append(f"--method {settings.method}")
    if audit.against != "simulation":
        words.append(f"--against {audit.against}")
    words.append(f"--samples-per-push {settings.samples_per_push}")
    words.append(f"--epsilon {privacy.epsilon:g}" if privacy else "--privacy none")
    if settings.seed:
        words.append(f"--seed {settings.seed}")
    return " ".join(words) + ", and further flags or files as they were given"


def _shown(value: float) -> str:
    """A number of a sample, in few digits.

    >>> _shown(1013.25), _shown(0.00012345), _shown(-0.0)
    ('1013.25', '0.00012345', '0')
    """
    text = f"{value:.6g}"
    return "0" if text == "-0" else text
