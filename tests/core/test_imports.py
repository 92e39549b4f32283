"""The core stands alone: torch, pydantic, the standard library and the errors."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import optimist.core

PYDANTIC = {"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
ALLOWED = {"torch", "optimist", "annotated_types", "pydantic", *sys.stdlib_module_names}
USE_ALL = "import optimist.core as core; [getattr(core, name) for name in core.__all__]"


def modules_after(code: str) -> set[str]:
    program = f"import sys; {code}; print('\\n'.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_all_of_the_core_loads_nothing_beyond_what_torch_loads():
    loaded = {name.partition(".")[0] for name in modules_after(USE_ALL) - modules_after("import torch, torch.optim")}
    assert "gymnasium" not in loaded
    loaded = {name for name in loaded if not name.startswith("_sysconfigdata")}  # the standard library's
    assert loaded - set(sys.stdlib_module_names) <= {"optimist", "torch", *PYDANTIC}


def test_the_core_uses_nothing_else_of_ours():
    ours = {name for name in modules_after(USE_ALL) if name.startswith("optimist")}
    assert all(name in ("optimist", "optimist.errors") or name.startswith("optimist.core") for name in ours)


def test_the_config_is_there_without_torch():
    assert "torch" not in modules_after("from optimist.core import OPRConfig; OPRConfig.paper('atari')")


@pytest.mark.parametrize("path", sorted(Path(optimist.core.__file__).parent.glob("*.py")), ids=lambda path: path.name)
def test_no_module_of_the_core_names_another_package(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert all(name.partition(".")[0] in ALLOWED for name in names), names


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Regulariser"):
        _ = optimist.core.Regulariser
