//! Hadoop job history (.jhist): a line that names the encoding, a line with the schema, then events in Avro's JSON or
//! binary encoding. Both become the same JSON values here. Node managers are told apart by host and port.

use super::avro::Schema;
use super::lines::{Line, Lines};
use super::{LogError, Stream, Trace, TraceJob, TraceTask};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
struct History {
    job: TraceJob,
    seen: bool,
    ended: bool,
    attempts: u64,
    failed_attempts: u64,
    starts: BTreeMap<String, u64>,
    /// Successful attempts by task: a later one (after a lost node) replaces an earlier one.
    done: BTreeMap<String, TraceTask>,
}

pub(super) fn read(stream: Stream<'_>, trace: &mut Trace) -> Result<(), LogError> {
    let mut lines = Lines::new(stream);
    let mut next = |what: &str| match lines.next()? {
        Some(Line::Text(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
        _ => Err(LogError::Malformed { line: 2, found: "the end of the file".into(), expected: what.to_string() }),
    };
    let encoding = next("Avro-Json or Avro-Binary")?;
    let schema = next("the schema of the events")?;
    let mut history = History::default();
    if encoding == "Avro-Binary" {
        let schema = Schema::parse(&schema).map_err(|found| LogError::Malformed { line: 2, found, expected: "an Avro schema".into() })?;
        let mut stream = lines.into_stream();
        for event in 1u64.. {
            match schema.read(&mut stream) {
                Ok(Some(value)) => history.event(&value, event, trace),
                Ok(None) => break,
                Err(error) => {
                    let why =
                        if error.kind() == std::io::ErrorKind::UnexpectedEof { "the file is cut".to_string() } else { error.to_string() };
                    trace.warn(0, format!("event {event} cannot be read ({why}); it and all later events were left out"));
                    break;
                }
            }
        }
    } else {
        loop {
            let number = lines.number + 1;
            match lines.next()? {
                None => break,
                Some(Line::Text([])) => {}
                Some(Line::Text(text)) => match serde_json::from_slice::<Value>(text) {
                    Ok(value) => history.event(&value, number, trace),
                    Err(_) => trace.warn(number, "not an event in JSON, perhaps cut; it was left out"),
                },
                Some(Line::TooLong) => trace.warn(number, "a line of more than 64 MiB; it was left out"),
            }
        }
    }
    history.finish(trace);
    Ok(())
}

impl History {
    fn event(&mut self, value: &Value, line: u64, trace: &mut Trace) {
        let Some((name, event)) = value.get("event").and_then(Value::as_object).and_then(|e| e.iter().next()) else {
            trace.warn(line, "an event without its record; it was left out");
            return;
        };
        let text = |key: &str| string(event.get(key));
        match (value.get("type").and_then(Value::as_str).unwrap_or(""), name.rsplit('.').next().unwrap_or("")) {
            (_, "JobSubmitted") => {
                self.seen = true;
                self.job.name = format!("{} {}", text("jobid"), text("jobName"));
                self.job.submit_ms = number(event.get("submitTime"));
            }
            (_, "JobFinished") => self.ended = true,
            (_, "JobUnsuccessfulCompletion") => {
                self.ended = true;
                self.job.failed = true;
            }
            (_, "TaskAttemptStarted") => {
                self.starts.insert(text("attemptId"), number(event.get("startTime")));
            }
            (_, "TaskAttemptUnsuccessfulCompletion") => {
                self.attempts += 1;
                self.failed_attempts += 1;
                // An attempt that was killed before it got a node has no port.
                let port = number(event.get("port"));
                if port > 0 {
                    trace.place(&format!("{}/{port}", text("hostname")));
                }
            }
            (_, "MapAttemptFinished" | "ReduceAttemptFinished" | "TaskAttemptFinished") => {
                self.attempts += 1;
                // Setup and cleanup attempts of old versions move no data.
                let stage = match name.rsplit('.').next() {
                    Some("MapAttemptFinished") => 0,
                    Some("ReduceAttemptFinished") => 1,
                    _ => return,
                };
                let host = text("hostname");
                let place = trace.place(&format!("{host}/{}", number(event.get("port"))));
                let counters = counters(event.get("counters"));
                let counter = |name: &str| counters.get(name).copied().unwrap_or(0);
                // What a task read as input: the counter of its input format, or of the file systems except the local one
                // (which also counts spills).
                let files = |what: &str| {
                    let remote = counters.iter().filter(|(k, _)| k.ends_with(&format!("_{what}")) && !k.starts_with("FILE_"));
                    remote.map(|c| *c.1).sum::<u64>().max(counter(what))
                };
                let finish = number(event.get("finishTime"));
                let start = self.starts.get(&text("attemptId")).copied().unwrap_or(finish);
                let began = if stage == 1 { number(event.get("shuffleFinishTime")).max(start) } else { start };
                let produced = counter("MAP_OUTPUT_MATERIALIZED_BYTES").max(if counters.contains_key("MAP_OUTPUT_MATERIALIZED_BYTES") {
                    0
                } else {
                    counter("MAP_OUTPUT_BYTES")
                });
                let task = TraceTask {
                    stage,
                    place,
                    compute_ms: finish.saturating_sub(began),
                    input_bytes: if stage == 0 { files("BYTES_READ") } else { 0 },
                    read_remote_bytes: counter("REDUCE_SHUFFLE_BYTES"),
                    read_local_bytes: 0,
                    shuffle_write_bytes: if stage == 0 { produced } else { 0 },
                    output_bytes: files("BYTES_WRITTEN"),
                };
                self.done.insert(text("taskid"), task);
            }
            _ => {}
        }
    }

    fn finish(mut self, trace: &mut Trace) {
        if !self.seen && self.done.is_empty() {
            return;
        }
        if !self.ended {
            trace.warn(0, "the history ends without the end of the job: it was still running, or the file is cut");
        }
        if self.failed_attempts > 0 {
            trace.warn(
                0,
                format!(
                    "{} task attempts failed or were killed; their bytes are not counted and they are not replayed",
                    self.failed_attempts
                ),
            );
        }
        self.job.is_map_reduce = true;
        self.job.tasks = self.done.into_values().collect();
        let reduces = self.job.tasks.iter().any(|t| t.stage == 1);
        if !reduces {
            // Without reduces, what maps "materialise" is their output, which they write to files.
            self.job.tasks.iter_mut().for_each(|t| t.shuffle_write_bytes = 0);
        }
        if reduces {
            trace.warn(0, "Hadoop does not tell copies from the own node apart from others: the matrix is inferred from what each node wrote and read");
        }
        trace.tasks = Some(self.attempts);
        trace.job_count = 1;
        trace.jobs_failed = u64::from(self.job.failed);
        trace.jobs.push(self.job);
    }
}

/// A text, also as a branch of a union in Avro's JSON: `{"string": "x"}`.
fn string(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(union)) => string(union.values().next()),
        _ => String::new(),
    }
}

/// A number that is not negative, also as a branch of a union.
fn number(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::Number(n)) => n.as_u64().unwrap_or(0),
        Some(Value::Object(union)) => number(union.values().next()),
        _ => 0,
    }
}

/// All counters of all groups by name.
fn counters(value: Option<&Value>) -> BTreeMap<String, u64> {
    let groups = value.map(unwrap_union).and_then(|v| v.get("groups")).and_then(Value::as_array);
    let counts = groups.into_iter().flatten().filter_map(|g| g.get("counts")).filter_map(Value::as_array).flatten();
    counts.map(|c| (string(c.get("name")), number(c.get("value")))).collect()
}

fn unwrap_union(value: &Value) -> &Value {
    match value {
        Value::Object(o) if o.len() == 1 && !o.contains_key("groups") => o.values().next().unwrap_or(value),
        value => value,
    }
}
