"""spark-submit entry: hands its arguments to `wordveil ngrams`."""

import sys

from wordveil.cli.app import main

if __name__ == "__main__":
    main(["ngrams", *sys.argv[1:]])
