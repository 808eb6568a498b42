"""spark-submit entry: hands its arguments to `wordveil init`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["init", *sys.argv[1:]])
