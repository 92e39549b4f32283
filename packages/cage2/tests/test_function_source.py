"""Source code of functions with everything they use."""

import numpy as np
import pytest

from cage2.deploy.function_source import source_of
from cage2.errors import ConfigError

FACTOR = np.array([2, 3])
WORD = {"a": 1}


def helper(number):
    return number * FACTOR[1]


def rule_to_export(number):
    """Uses FACTOR directly and through a helper."""
    return helper(number) + FACTOR[0]


def rule_with_a_dictionary(number):
    return WORD[number]


def test_function_source_includes_what_functions_use():
    names = {}
    exec("import numpy as np\n" + source_of(rule_to_export), names)
    assert names["rule_to_export"](5) == 17
    with pytest.raises(ConfigError, match="WORD is dict"):
        source_of(rule_with_a_dictionary)
    with pytest.raises(ConfigError, match="different objects named helper"):
        source_of(rule_to_export, type("helper", (), {}))
