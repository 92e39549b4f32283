from optimist.config import *  # noqa: F403
from optimist.config import AlgorithmConfig  # noqa: F401
