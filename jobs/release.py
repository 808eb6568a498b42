"""spark-submit entry: hands its arguments to `wordveil release`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["release", *sys.argv[1:]])
