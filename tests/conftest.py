"""One thread for torch, here and in every process the tests start: its threads only get in each other's way."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
