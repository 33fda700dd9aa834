"""`python -m oneway`: the same as the command `oneway`."""

from oneway.cli import main

if __name__ == "__main__":
    main()
