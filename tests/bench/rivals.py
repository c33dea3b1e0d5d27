"""Other tools that analyse traces: how to install each in its own environment, and how to run it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OURS = "tb_bottleneck diagnose"

_ORJSON = """
import gc, gzip, sys, orjson
gc.disable()
with gzip.open(sys.argv[1]) as file:
    orjson.loads(file.read())
"""

# Loading, and its two analyses that are most similar to our account.
_HTA = """
import os, sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))
analysis.get_temporal_breakdown(visualize=False)
analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
"""

# The work of its TensorBoard plugin before its views can be shown.
_TORCH_TB_PROFILER = """
import os, sys
from torch_tb_profiler import io
from torch_tb_profiler.profiler.loader import RunLoader
if __name__ == "__main__":
    folder = os.path.dirname(sys.argv[1])
    run = RunLoader("run", folder, io.Cache()).load()
    assert run.profiles, "nothing was loaded"
"""

_TRACELENS = """
import sys
from TraceLens import TreePerfAnalyzer
analyzer = TreePerfAnalyzer.from_file(sys.argv[1])
analyzer.get_df_gpu_timeline()
"""


@dataclass(frozen=True)
class Rival:
    """Another tool: its packages for pip, and a program that takes the path of a trace."""

    name: str
    requirements: tuple[str, ...]
    program: str

    def command(self, scratch: Path) -> list[str] | None:
        """Returns the command that runs it, after installing it under `scratch` if needed; None if that fails."""
        home = scratch / "environments" / self.name.partition(" ")[0]
        python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        done = home / "installed"
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
            install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *self.requirements]
            if subprocess.run(install, stdout=sys.stderr).returncode != 0:
                return None
            done.write_text("\n".join(self.requirements))
        program = home / "program.py"
        program.write_text(self.program)
        return [str(python), str(program)]


RIVALS = (
    Rival("orjson (parsing alone)", ("orjson==3.13.0",), _ORJSON),
    Rival("HolisticTraceAnalysis 0.5.0", ("HolisticTraceAnalysis==0.5.0",), _HTA),
    # 0.4.3 needs the pandas and numpy versions of its time.
    Rival("torch-tb-profiler 0.4.3 (its loader)", ("torch-tb-profiler==0.4.3", "pandas<3"), _TORCH_TB_PROFILER),
    # On PyPI, this name belongs to another project.
    Rival("TraceLens (git)", ("git+https://github.com/AMD-AGI/TraceLens.git",), _TRACELENS),
)
