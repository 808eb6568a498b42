"""spark-submit entry: hands its arguments to `wordveil ledger`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["ledger", *sys.argv[1:]])
