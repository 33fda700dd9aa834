"""One peer of a lab as a process that ends with the lab, without the command line and its flags.

`python -m oneway.lab.child_peer PARENT FOLDER SAMPLES RATE`
"""

from __future__ import annotations

import sys
from pathlib import Path

from oneway.errors import OnewayError
from oneway.peer.sample_stream import SampleStream
from oneway.peer.service import run_peer
from oneway.web.server_process import end_with_parent


def main(parent: str, folder: str, samples: str, rate: str) -> None:
    """Run the peer until a signal; an error is the last line of its log."""
    end_with_parent(int(parent))
    try:
        stream = SampleStream(samples, rate=float(rate) or None)
        run_peer(Path(folder), stream, exact_status=True)  # the lab has every sample anyway
    except OnewayError as error:
        sys.stderr.write(f"Error: {error.for_shell}\n")
        sys.exit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
