"""spark-submit entry: hands its arguments to `wordveil sanitise`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["sanitise", *sys.argv[1:]])
