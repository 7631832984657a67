"""The catalogue of scenarios. docs/reference/scenarios.md describes each of them.

It contains every `Scenario` that a module of this folder defines.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from urteil.harness.scenario import Scenario
from urteil.harness.scenarios import demo


def scenarios_of(module: ModuleType) -> Iterator[Scenario]:
    """The scenarios that a module declares, in the order of their declaration."""
    return (value for value in vars(module).values() if isinstance(value, Scenario))


_MODULES = sorted(
    (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)),
    key=lambda module: (module is not demo, module.__name__),
)
SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario for module in _MODULES for scenario in scenarios_of(module)
}
"""Every scenario by name; the first is the demo."""

SUITES: dict[str, tuple[str, ...]] = {
    suite: tuple(scenario.name for scenario in SCENARIOS.values() if suite in scenario.suites)
    for suite in sorted({name for scenario in SCENARIOS.values() for name in scenario.suites})
}
"""The names of each suite's scenarios."""
