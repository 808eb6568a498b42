"""``python -m wordveil``: the command line."""

from wordveil.cli import main

main()
