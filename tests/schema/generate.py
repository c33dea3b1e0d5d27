"""Generates the code of the messages from their proto files: `python tests/schema/generate.py`.

protoc asks for a runtime of protobuf that is at least as new as itself. The messages use nothing that is new, so that
this request is removed: the code works with protobuf 4.25 to 7, beside what other packages of a training need.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROTOS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tb_bottleneck/schema").glob("*.proto"))
_REQUEST = re.compile(
    r"^from google\.protobuf import runtime_version as _runtime_version\n"
    r"|^_runtime_version\.ValidateProtobufRuntimeVersion\(\n.*?^\)\n",
    re.MULTILINE | re.DOTALL,
)


def generate(target: Path) -> None:
    """Writes the modules and their types below a folder."""
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={target}", f"--pyi_out={target}"]
    subprocess.run([*command, *PROTOS], cwd=ROOT, check=True)
    for proto in PROTOS:
        path = target / proto.replace(".proto", "_pb2.py")
        path.write_text(_REQUEST.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    generate(ROOT)
