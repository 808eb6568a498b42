"""spark-submit entry: hands its arguments to `wordveil build`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["build", *sys.argv[1:]])
