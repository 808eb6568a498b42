"""``python -m wordveil``: the command line."""

from wordveil.cli.app import main

main()
