"""spark-submit entry: hands its arguments to `wordveil ngrams`."""

import sys

from wordveil.cli import main

if __name__ == "__main__":
    main(["ngrams", *sys.argv[1:]])
