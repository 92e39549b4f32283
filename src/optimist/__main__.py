"""`python -m optimist` is the command `optimist`."""

import os
import sys

if sys.path[0] == os.getcwd():  # the current folder, from `-m`: a module in it must not take the place of a library's
    del sys.path[0]

from optimist.cli.main import main

sys.exit(main())
