"""Running the grid of a plan on this machine: in parallel, with progress, resumable."""

from joulepath.sweep.sweep import Stopped, simulate

__all__ = ["Stopped", "simulate"]
