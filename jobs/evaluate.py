"""spark-submit entry: hands its arguments to `wordveil evaluate`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
