"""spark-submit entry: hands its arguments to `wordveil plan`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["plan", *sys.argv[1:]])
