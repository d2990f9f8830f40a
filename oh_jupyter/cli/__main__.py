"""``python -m oh_jupyter.cli``, where the command is not on the PATH."""

import sys

from oh_jupyter.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
