//! The Python border: the only crate that knows Python. Plans and results cross it as JSON, so that both sides share one
//! definition; long work releases the interpreter and calls back for progress.

mod errors;
mod link;
mod results;

use errors::{PlanError, TraceFileError, os_error, plan_error, refuse};
use joulepath_mapreduce::{ClusterPlan, Trace, read_log};
use joulepath_units::{Bytes, Span};
use pyo3::prelude::*;
use schemars::SchemaGenerator;
use std::fs::File;

/// A log that was read once and can be simulated many times.
#[pyclass(frozen)]
struct Log {
    trace: Trace,
}

#[pymethods]
impl Log {
    /// What was understood of it, as JSON.
    fn summary(&self) -> String {
        results::log_summary(&self.trace).to_string()
    }
}

/// Reads a SWIM, Spark or Hadoop log. Raises TraceFileError or OSError.
#[pyfunction]
fn read_workload_log(py: Python<'_>, path: String) -> PyResult<Log> {
    let file = File::open(&path).map_err(|e| os_error(&path, &e))?;
    let trace = py.detach(|| read_log(file)).map_err(|e| TraceFileError::new_err(e.to_string()))?;
    Ok(Log { trace })
}

fn parse_plan(json: &str) -> PyResult<ClusterPlan> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let plan: ClusterPlan =
        serde_path_to_error::deserialize(&mut reader).map_err(|e| plan_error(&e.path().to_string(), &e.inner().to_string()))?;
    plan.check().map_err(|sentence| refuse(&sentence))?;
    joulepath_net::Network::new(&plan.network(), 0).map_err(|sentence| refuse(&sentence))?;
    Ok(plan)
}

/// Checks a cluster plan (JSON) and returns it with every default filled in. Raises PlanError.
#[pyfunction]
fn resolve_cluster_plan(json: &str) -> PyResult<String> {
    let plan = parse_plan(json)?;
    Ok(serde_json::to_string(&plan).expect("a plan is JSON"))
}

/// The queues of a cluster plan (JSON) by class of ports, with thresholds worked out and warnings, as JSON. Raises PlanError.
#[pyfunction]
fn cluster_plan_queues(json: &str) -> PyResult<String> {
    let queues = parse_plan(json)?.network().queues().map_err(|sentence| refuse(&sentence))?;
    Ok(serde_json::to_string(&queues).expect("settings are JSON"))
}

/// The JSON schema of a cluster plan, with the documentation of every parameter.
#[pyfunction]
fn cluster_plan_schema() -> String {
    let schema = SchemaGenerator::default().into_root_schema_for::<ClusterPlan>();
    serde_json::to_string(&schema).expect("a schema is JSON")
}

/// Simulates a cluster plan (JSON); returns metrics and ledger as JSON. `progress(share, hops) -> bool` may stop it.
#[pyfunction]
#[pyo3(signature = (json, seed, run, log=None, progress=None))]
fn simulate_cluster(
    py: Python<'_>,
    json: &str,
    seed: u64,
    run: u64,
    log: Option<&Bound<'_, Log>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let plan = parse_plan(json)?;
    let trace = log.map(|l| &l.get().trace);
    let mut failure = None;
    let mut report = |share: f64, hops: u64| {
        let Some(progress) = &progress else { return true };
        Python::attach(|py| progress.call1(py, (share, hops)).and_then(|r| r.is_truthy(py))).unwrap_or_else(|e| {
            failure = Some(e);
            false
        })
    };
    let outcome =
        py.detach(|| joulepath_mapreduce::simulate(&plan, trace, seed, run, &mut report).map(|r| results::cluster(&r).to_string()));
    match (outcome, failure) {
        (_, Some(error)) => Err(error),
        (Err(sentence), None) => Err(refuse(&sentence)),
        (Ok(json), None) => Ok(json),
    }
}

/// A size of a plan, such as "64 KiB", in bytes. Raises PlanError.
#[pyfunction]
fn bytes_of(text: &str) -> PyResult<u64> {
    text.parse::<Bytes>().map(Bytes::base).map_err(|e| refuse(&e.to_string()))
}

/// A time of a plan, such as "120 us", in picoseconds. Raises PlanError.
#[pyfunction]
fn picoseconds_of(text: &str) -> PyResult<u64> {
    text.parse::<Span>().map(Span::base).map_err(|e| refuse(&e.to_string()))
}

/// The names of the known physical layers, in the order of `profiles/ethernet.toml`.
#[pyfunction]
fn phy_names() -> Vec<String> {
    joulepath_net::phys().iter().map(|p| p.name.clone()).collect()
}

/// Simulates or solves a single link (parameters and result as JSON). Raises PlanError, TraceFileError or OSError.
#[pyfunction]
fn run_link(py: Python<'_>, json: &str) -> PyResult<String> {
    py.detach(|| link::run(json))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PlanError", module.py().get_type::<PlanError>())?;
    module.add("TraceFileError", module.py().get_type::<TraceFileError>())?;
    module.add_class::<Log>()?;
    module.add_function(wrap_pyfunction!(read_workload_log, module)?)?;
    module.add_function(wrap_pyfunction!(resolve_cluster_plan, module)?)?;
    module.add_function(wrap_pyfunction!(cluster_plan_queues, module)?)?;
    module.add_function(wrap_pyfunction!(cluster_plan_schema, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_cluster, module)?)?;
    module.add_function(wrap_pyfunction!(run_link, module)?)?;
    module.add_function(wrap_pyfunction!(phy_names, module)?)?;
    module.add_function(wrap_pyfunction!(bytes_of, module)?)?;
    module.add_function(wrap_pyfunction!(picoseconds_of, module)?)?;
    Ok(())
}
