"""What a recording lacks for a kind of tree, and the line of code that records it."""

from tb_bottleneck.drilldown.tree.paths import has_marks
from tb_bottleneck.drilldown.tree.tree import Tree
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.trace import Trace
from tb_bottleneck.units import share_text

_MISSING = {
    "module": "No modules were recorded. Record with with_stack=True, or let the monitor mark them: "
    "Monitor(logdir, model=model, module_depth=4).",
    "line": "No function of the program was recorded. Record with with_stack=True.",
    "operator": "No operators were recorded.",
    "range": 'The program has no ranges. Mark its parts: with torch.profiler.record_function("name"): …',
}
# A smaller unmapped share changes no conclusion.
_WORTH_MENTIONING = 0.02


def notes_of(trace: Trace, tree: Tree) -> tuple[str, ...]:
    """Returns sentences about what the tree cannot show."""
    notes = []
    if tree.by not in tree.kind:
        notes.append(_MISSING[tree.by])
    elif tree.by == "module" and not has_marks(trace):
        notes.append("The profiler numbers the modules of each class; their names in the model are not recorded.")
    unmapped = sum(float(tree.exclusive[node]) for node, kind in enumerate(tree.kind) if kind == "unmapped")
    if unmapped > _WORTH_MENTIONING * tree.window:
        notes.append(
            f"{share_text(unmapped / tree.window)} of the time is unmapped: the recording does not show what launched "
            "the work, or what delayed it."
        )
    if tree.by in ("module", "line") and any("GraphLaunch" in name for name in tree.name):
        notes.append(
            "Kernels of a CUDA graph belong to the place that launches the graph, because torch records nothing inside."
        )
    if not len(trace.rows(Kind.CALL)) and len(trace.all_device_ops):
        notes.append("No runtime calls were recorded, so device work cannot be mapped to the host.")
    return tuple(notes)
