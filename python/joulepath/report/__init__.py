"""Reports from records: one self-contained HTML page, and a table for notebooks. Imports no model."""

from joulepath.report.page import notebook_table, write_report

__all__ = ["notebook_table", "write_report"]
