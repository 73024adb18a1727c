"""Recommended settings: a search over free settings of a plan under limits, and the commands that apply what it finds."""

from joulepath.recommend.search import InfeasibleError, Recommendation, recommend

__all__ = ["InfeasibleError", "Recommendation", "recommend"]
