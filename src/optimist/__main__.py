"""`python -m optimist` is the command `optimist`."""

import sys

from optimist.cli.main import main

sys.exit(main())
