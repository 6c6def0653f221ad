"""``python -m pellucid``: the same as the command ``pellucid``."""

from pellucid.cli import main

if __name__ == "__main__":
    main()
