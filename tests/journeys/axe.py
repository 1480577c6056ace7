"""What an accessibility checker finds in a page: axe-core, vendored for tests alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

VENDOR: Final = Path(__file__).parents[1] / "vendor"
COLOURS: Final = ("color-contrast", "link-in-text-block")
_RUN: Final = """
async (rules) => {
  // Colours on their way from one theme to the other belong to neither.
  await new Promise(requestAnimationFrame);
  const passing = document.getAnimations()
    .filter((one) => one.effect?.getComputedTiming().endTime < 2000)
    .map((one) => one.finished);
  await Promise.allSettled(passing);
  const found = await axe.run(document, {
    resultTypes: ["violations"],
    preload: false,
    ...(rules.length ? { runOnly: rules } : {}),
  });
  return found.violations.map((rule) => ({
    id: rule.id,
    impact: rule.impact,
    help: rule.help,
    at: rule.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.html}`.slice(0, 200)),
  }));
}
"""


@cache
def _source() -> str:
    [script] = VENDOR.glob("axe-core-*.min.js")
    return script.read_text(encoding="utf-8")


def violations(page: Page, *rules: str) -> list[dict[str, Any]]:
    """Return what breaks rules of axe-core, all of them where none are named.

    The driver evaluates the checker: the page's own policy admits no script but the server's.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"() => {{ {_source()} }}")
    found: list[dict[str, Any]] = page.evaluate(_RUN, list(rules))
    return found
