"""`python -m training NAME ...` is `attention-zoo train NAME ...`."""

import sys

from training.command import main

COMMANDS = ("compare", "evaluate")

if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(words if words[:1] and words[0] in COMMANDS else ["train", *words]))
