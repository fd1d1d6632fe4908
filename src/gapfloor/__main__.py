"""`python -m gapfloor`: the same command line as `gapfloor`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `-m` puts the current folder first, so a click.py in it would run; the user's own modules are found later.
        del sys.path[0]
    from gapfloor.cli.main import main

    main()
