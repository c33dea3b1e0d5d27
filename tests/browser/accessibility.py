"""What axe-core finds in the tab."""

from pathlib import Path

import pytest

from tests.browser.pages import Visit

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
ASK_AXE = f"""axe.run(document, {RULES}).then(answer => answer.violations.map(
    one => ({{id: one.id, nodes: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))}})))"""

# A text that fades in has too little contrast until it is there.
END_ANIMATIONS = """document.getAnimations().filter(one => one.effect.getComputedTiming().endTime < Infinity)
    .forEach(one => one.finish())"""


def violations(seen: Visit, dark: bool) -> list[dict[str, object]]:
    """Returns the violations that axe-core finds in the tab, in one of TensorBoard's themes."""
    if not AXE.exists():
        pytest.fail("axe-core is not there; run `npm ci --ignore-scripts` in frontend/")
    seen.page.evaluate("dark => document.body.classList.toggle('dark-mode', dark)", dark)
    seen.page.wait_for_timeout(300)
    seen.frame.evaluate(END_ANIMATIONS)
    seen.frame.evaluate(AXE.read_text())
    found: list[dict[str, object]] = seen.frame.evaluate(ASK_AXE)
    return found
