"""Errors: each says what is wrong, what was expected and what to do."""


class A2600Error(Exception):
    """Any error of this package."""


class UnknownGame(A2600Error, ValueError):
    """No supported game has this name."""


class InexactGame(A2600Error, ValueError):
    """The game is known to differ from ale-py."""


class RomError(A2600Error, ValueError):
    """A ROM is missing, or is not the known one."""


class StateError(A2600Error, ValueError):
    """A saved state cannot be loaded."""


class CoreMissing(A2600Error, ImportError):
    """The compiled core is missing."""
