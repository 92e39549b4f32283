"""`optimist export RUN… --to cyborg DIR`, `--to onnx DIR`: a trained policy for elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, print_result
from optimist.errors import ConfigError, unknown_name

TARGETS = ("cyborg", "onnx")
DESCRIPTION = """Write a trained policy for elsewhere.
  cyborg  a folder with weights.npz and agent.py: a blue agent for the original CAGE Challenge 2 that needs numpy only;
          several runs become experts, chosen after the opening as in `optimist cage2 score`; the name of a shipped
          agent, such as best, works too
  onnx    a folder with policy.onnx, of any run that has an actor (not of DQN and Rainbow)"""


def main(argv: Sequence[str]) -> int:
    """Exports, and prints where to."""
    parser = Parser(prog="optimist export", description=DESCRIPTION)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folder(s), or a shipped agent")
    parser.add_argument(
        "--to", nargs=2, required=True, metavar=("KIND", "DIR"), help="cyborg or onnx, and a new folder"
    )
    parser.add_argument(
        "--rules", choices=["final", "competition"], help="of a shipped agent (default: final); a run has its own"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on the last line")
    options = parser.parse_all(list(argv))
    kind, folder = options.to[0], Path(options.to[1])
    if kind not in TARGETS:
        raise unknown_name("export", kind, TARGETS)
    result: dict[str, object] = {"kind": kind}
    if kind == "cyborg":
        from optimist.deploy.cyborg import export_cyborg, rules_of

        files = export_cyborg(options.runs, folder, options.rules)
        result["rules"] = rules_of(folder)
    else:
        if options.rules is not None:
            raise ConfigError("--rules chooses among shipped agents, which have no ONNX export")
        if len(options.runs) > 1:
            raise ConfigError(f"an ONNX file holds one policy, got {len(options.runs)} runs; export them one by one")
        from optimist.deploy.onnx import export_onnx

        files = export_onnx(options.runs[0], folder)
    print_result(result | {"files": [str(file) for file in files]}, as_json=options.json)
    return 0
