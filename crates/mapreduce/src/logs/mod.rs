//! Logs of real clusters as byte streams: SWIM traces, Spark event logs, Hadoop job history.
//!
//! Format and compression are found by content. A log is streamed: memory holds one line and one small record for each
//! task. Damage is named by line; what can be kept is kept and the rest is listed in [`Trace::warnings`].

mod avro;
mod compressed;
mod jhist;
mod lines;
mod matrix;
mod spark;
mod swim;

pub use matrix::Matrix;

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

/// Why a log cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogError {
    /// The stream failed or its compression is damaged.
    Io {
        /// Whole lines before that.
        after_line: u64,
        /// What happened.
        why: String,
    },
    /// Not a log that is known.
    Unknown {
        /// Its beginning.
        found: String,
    },
    /// A line cannot be understood and nothing after it either.
    Malformed {
        /// The line, from one.
        line: u64,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// No job in it.
    Empty,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { after_line: 0, why } => write!(f, "cannot be read: {why}"),
            Self::Io { after_line, why } => {
                write!(f, "cannot be read beyond line {after_line}: {why}; expected a complete file: copy it again")
            }
            Self::Unknown { found } => write!(
                f,
                "found {found}; expected a SWIM trace (tab-separated), a Spark event log (JSON lines, plain or gzip, lz4, zstd) or a Hadoop .jhist file"
            ),
            Self::Malformed { line, found, expected } => write!(f, "line {line}: found {found}; expected {expected}"),
            Self::Empty => write!(f, "found no job; expected at least one"),
        }
    }
}

/// Something in a log that is damaged, missing or assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The line, from one; zero for the file as a whole.
    pub line: u64,
    /// What is wrong and what was done.
    pub what: String,
}

/// The most warnings that are kept.
const MAX_WARNINGS: usize = 100;

/// A task that ended well. Times in milliseconds, as the logs have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceTask {
    /// Position of its stage in the job; for MapReduce 0 is map and 1 is reduce.
    pub stage: u32,
    /// Where it ran: an index into [`Trace::places`].
    pub place: u32,
    /// Running time without waiting for copies.
    pub compute_ms: u64,
    /// Read from files.
    pub input_bytes: u64,
    /// Copied from other places and from its own.
    pub read_remote_bytes: u64,
    /// Copied from its own place.
    pub read_local_bytes: u64,
    /// Left for later stages.
    pub shuffle_write_bytes: u64,
    /// Written to files.
    pub output_bytes: u64,
}

/// A stage of a Spark application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceStage {
    pub(crate) id: u64,
    pub(crate) parents: Vec<u64>,
    pub(crate) submit_ms: u64,
    pub(crate) end_ms: u64,
}

/// A job (for Spark, an application with all its jobs).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceJob {
    /// Its name in the log.
    pub name: String,
    /// Whether it failed.
    pub failed: bool,
    pub(crate) submit_ms: u64,
    pub(crate) is_map_reduce: bool,
    pub(crate) stages: Vec<TraceStage>,
    pub(crate) tasks: Vec<TraceTask>,
    /// Totals of logs without tasks.
    pub(crate) input_bytes: u64,
    pub(crate) shuffle_bytes: u64,
    pub(crate) output_bytes: u64,
}

/// What was understood of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// `swim`, `spark` or `jhist`.
    pub kind: &'static str,
    /// The compression that was undone: `none`, `gzip`, `zstd`, `lz4`.
    pub compression: &'static str,
    /// The jobs, in order of submission.
    pub jobs: Vec<TraceJob>,
    /// Jobs in the log (of a Spark application, its jobs).
    pub job_count: u64,
    /// Of these, failed.
    pub jobs_failed: u64,
    /// Task attempts that ended, well or not; `None` when the log has no tasks.
    pub tasks: Option<u64>,
    /// Where tasks ran: executors, or node managers by host and port.
    pub places: Vec<String>,
    /// Distinct hosts of these (node managers of Hadoop, which may share a host name, count by port).
    pub hosts: Option<u64>,
    /// What is damaged, missing or assumed.
    pub warnings: Vec<Warning>,
    pub(crate) more_warnings: u64,
    place_of: BTreeMap<String, u32>,
}

impl Trace {
    pub(crate) fn warn(&mut self, line: u64, what: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning { line, what: what.into() });
        } else {
            self.more_warnings += 1;
        }
    }

    pub(crate) fn place(&mut self, name: &str) -> u32 {
        if let Some(&place) = self.place_of.get(name) {
            return place;
        }
        let place = self.places.len() as u32;
        self.places.push(name.to_string());
        self.place_of.insert(name.to_string(), place);
        place
    }

    /// The sum of a value over all tasks, or over the totals of a log without tasks; `None` when the log does not have it.
    fn sum(&self, task: fn(&TraceTask) -> u64, total: Option<fn(&TraceJob) -> u64>) -> Option<u64> {
        match (self.tasks, total) {
            (Some(_), _) => Some(self.jobs.iter().flat_map(|j| &j.tasks).map(task).sum()),
            (None, Some(total)) => Some(self.jobs.iter().map(total).sum()),
            (None, None) => None,
        }
    }

    /// Bytes read from files.
    #[must_use]
    pub fn input_bytes(&self) -> Option<u64> {
        self.sum(|t| t.input_bytes, Some(|j| j.input_bytes))
    }

    /// Bytes that tasks copied from other places; `None` when the log does not tell places apart.
    #[must_use]
    pub fn shuffle_read_remote_bytes(&self) -> Option<u64> {
        if self.kind == "spark" { self.sum(|t| t.read_remote_bytes, None) } else { None }
    }

    /// Bytes that tasks copied from their own place.
    #[must_use]
    pub fn shuffle_read_local_bytes(&self) -> Option<u64> {
        if self.kind == "spark" { self.sum(|t| t.read_local_bytes, None) } else { None }
    }

    /// Bytes that tasks left for later stages.
    #[must_use]
    pub fn shuffle_write_bytes(&self) -> Option<u64> {
        self.sum(|t| t.shuffle_write_bytes, Some(|j| j.shuffle_bytes))
    }

    /// Bytes written to files.
    #[must_use]
    pub fn output_bytes(&self) -> Option<u64> {
        self.sum(|t| t.output_bytes, Some(|j| j.output_bytes))
    }

    /// Bytes from each place to each place, inferred: logs have no bytes for each pair.
    #[must_use]
    pub fn matrix(&self) -> Option<Matrix> {
        self.tasks?;
        let n = self.places.len();
        let (mut wrote, mut read, mut local) = (vec![0u64; n], vec![0u64; n], vec![0u64; n]);
        for task in self.jobs.iter().flat_map(|j| &j.tasks) {
            wrote[task.place as usize] += task.shuffle_write_bytes;
            read[task.place as usize] += task.read_remote_bytes + task.read_local_bytes;
            local[task.place as usize] += task.read_local_bytes;
        }
        Matrix::infer(&wrote, &read, (self.kind == "spark").then_some(&local))
    }
}

/// Reads a log of any known kind.
pub fn read_log(stream: impl Read) -> Result<Trace, LogError> {
    let (mut stream, compression) = compressed::open(Box::new(stream))?;
    let start = stream.fill_buf().map_err(|e| LogError::Io { after_line: 0, why: e.to_string() })?;
    let start = start[..start.len().min(200)].to_vec();
    let mut trace = Trace { compression, ..Trace::default() };
    let text = String::from_utf8_lossy(&start);
    let first = text.trim_start().lines().next().unwrap_or("");
    if first.starts_with("Avro-Json") || first.starts_with("Avro-Binary") {
        trace.kind = "jhist";
        jhist::read(stream, &mut trace)?;
    } else if first.starts_with('{') {
        trace.kind = "spark";
        spark::read(stream, &mut trace)?;
    } else if first.split('\t').count() >= 6 {
        trace.kind = "swim";
        swim::read(stream, &mut trace)?;
    } else if start.is_empty() {
        return Err(LogError::Unknown { found: "an empty file".into() });
    } else {
        return Err(LogError::Unknown { found: format!("a file that begins with {:?}", first.chars().take(40).collect::<String>()) });
    }
    if trace.jobs.is_empty() {
        return Err(LogError::Empty);
    }
    if trace.more_warnings > 0 {
        let more = trace.more_warnings;
        trace.warnings.push(Warning { line: 0, what: format!("{more} more warnings were not kept") });
    }
    let mut hosts: Vec<&str> =
        trace.places.iter().map(|p| if trace.kind == "spark" { p.split('/').next().unwrap_or(p) } else { p }).collect();
    hosts.sort_unstable();
    hosts.dedup();
    trace.hosts = trace.tasks.map(|_| hosts.len() as u64);
    Ok(trace)
}

type Stream<'a> = BufReader<Box<dyn Read + 'a>>;
