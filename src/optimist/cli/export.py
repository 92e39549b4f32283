"""`optimist export RUN… --to cyborg DIR` or `--to onnx DIR`: export a trained policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, add_env_flag, print_result
from optimist.errors import ConfigError, unknown_name

TARGETS = ("cyborg", "onnx")
DESCRIPTION = """Export a trained policy.
  cyborg  a folder with weights.npz and agent.py: a blue agent for the original CAGE Challenge 2 that needs NumPy only;
          of several runs each is for the attacker of its training, as in `optimist score`; RUN can also be a
          shipped agent, such as best
  onnx    a folder with policy.onnx, for any run with an actor (not DQN and Rainbow)"""


def main(argv: Sequence[str]) -> int:
    """Export, and print the files."""
    parser = Parser(prog="optimist export", description=DESCRIPTION)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folder(s), or a shipped agent")
    parser.add_argument(
        "--to", nargs=2, required=True, metavar=("KIND", "DIR"), help="cyborg or onnx, and a new folder"
    )
    parser.add_argument("--rules", choices=["final", "competition"], help="for a shipped agent (default: final)")
    add_env_flag(parser)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on the last line")
    options = parser.parse_all(list(argv))
    kind, folder = options.to[0], Path(options.to[1])
    if kind not in TARGETS:
        raise unknown_name("export", kind, TARGETS)
    result: dict[str, object] = {"kind": kind}
    if kind == "cyborg":
        from cage2.deploy.export import rules_of
        from optimist.deploy.cage2_runs import export_cyborg

        files = export_cyborg(options.runs, folder, options.rules)
        result["rules"] = rules_of(folder)
    else:
        if options.rules is not None:
            raise ConfigError("--rules is for shipped agents, which have no ONNX export; leave it out")
        if len(options.runs) > 1:
            raise ConfigError(f"an ONNX file has one policy, got {len(options.runs)} runs; export them one by one")
        from optimist.deploy.onnx import export_onnx

        files = export_onnx(options.runs[0], folder, options.env)
    print_result(result | {"files": [str(file) for file in files]}, as_json=options.json)
    return 0
