"""One thread for torch, here and in every process the tests start; the same examples for hypothesis in every run."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: its threads only get in each other's way

from hypothesis import settings

settings.register_profile("optimist", deadline=None, derandomize=True)  # a busy machine is no failure
settings.load_profile("optimist")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it runs in the background
