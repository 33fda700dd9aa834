"""The command `oneway` as a child process that ends with its parent.

`python -m oneway.cli.child_process PARENT ...`: a lab starts its peers so, that none outlives it,
and any program may start `oneway` so.
"""

from __future__ import annotations

import sys

from oneway.web.server_process import end_with_parent

if __name__ == "__main__":
    from oneway.cli.main import main

    end_with_parent(int(sys.argv.pop(1)))
    sys.argv[0] = "oneway"
    main()
