"""Plans: TOML files that say what to run."""

from joulepath.plan.envelope import Dimension, Figure, Plan, PlanFileError, Run, load_plan

__all__ = ["Dimension", "Figure", "Plan", "PlanFileError", "Run", "load_plan"]
