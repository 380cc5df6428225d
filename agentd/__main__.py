"""``python -m agentd``."""

import sys

from agentd.cli import main

if __name__ == "__main__":
    sys.exit(main())
