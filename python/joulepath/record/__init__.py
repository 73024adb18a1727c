"""Run records: what a plan's runs gave, as a folder.

Layout: `plan.json` (title, runs, figures), `runs/<name>/` with `run.json` (resolved plan, seed, version), `metrics.json`,
`ledger.json`, `environment.json` and, on request, `observed.json`, and for the whole record `metrics.parquet`, `ledger.parquet` and `README.txt` with the
command that makes it again. Everything except `environment.json` is the same, byte for byte, wherever it is made.
"""

from joulepath.record.record import FORMAT, Record, RecordError, RunRecord, digest_of, read_metric, run_folder_name

__all__ = ["FORMAT", "Record", "RecordError", "RunRecord", "digest_of", "read_metric", "run_folder_name"]
