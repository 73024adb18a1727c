"""Plans: TOML files that say what to run."""

from joulepath.plan.envelope import Figure, Plan, PlanFileError, Run, load_plan, with_settings

__all__ = ["Figure", "Plan", "PlanFileError", "Run", "load_plan", "with_settings"]
