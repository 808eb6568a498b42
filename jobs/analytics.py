"""spark-submit entry: hands its arguments to `wordveil analytics`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["analytics", *sys.argv[1:]])
