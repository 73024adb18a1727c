//! Spark event logs: one JSON event a line, of Spark 1.x to 4.x.
//!
//! Only the few events that matter are parsed, the others are skipped by their prefix. Bytes are those of tasks that
//! succeeded. Lines that cannot be parsed are named and left out; a missing end of application is named too.

use super::lines::{Line, Lines};
use super::{LogError, Stream, Trace, TraceJob, TraceStage, TraceTask};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(tag = "Event")]
#[allow(clippy::enum_variant_names, reason = "these are the names in the log")]
enum Event {
    SparkListenerLogStart {
        #[serde(rename = "Spark Version", default)]
        version: String,
    },
    SparkListenerApplicationStart {
        #[serde(rename = "App Name", default)]
        name: String,
        #[serde(rename = "Timestamp", default)]
        time: u64,
    },
    SparkListenerApplicationEnd {},
    SparkListenerExecutorAdded {},
    SparkListenerJobStart {},
    SparkListenerJobEnd {
        #[serde(rename = "Job Result")]
        result: Option<JobResult>,
    },
    SparkListenerStageSubmitted {
        #[serde(rename = "Stage Info")]
        stage: StageInfo,
    },
    SparkListenerStageCompleted {
        #[serde(rename = "Stage Info")]
        stage: StageInfo,
    },
    SparkListenerTaskEnd(Box<TaskEnd>),
}

#[derive(Deserialize)]
struct JobResult {
    #[serde(rename = "Result", default)]
    result: String,
}

#[derive(Deserialize)]
struct StageInfo {
    #[serde(rename = "Stage ID")]
    id: u64,
    #[serde(rename = "Parent IDs", default)]
    parents: Vec<u64>,
    #[serde(rename = "Submission Time")]
    submit: Option<u64>,
    #[serde(rename = "Completion Time")]
    end: Option<u64>,
}

#[derive(Deserialize)]
struct TaskEnd {
    #[serde(rename = "Stage ID")]
    stage: u64,
    #[serde(rename = "Task End Reason")]
    reason: Option<Reason>,
    #[serde(rename = "Task Info")]
    info: TaskInfo,
    #[serde(rename = "Task Metrics")]
    metrics: Option<Metrics>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(rename = "Reason", default)]
    reason: String,
}

#[derive(Deserialize)]
struct TaskInfo {
    #[serde(rename = "Executor ID", default)]
    executor: String,
    #[serde(rename = "Host", default)]
    host: String,
    #[serde(rename = "Launch Time", default)]
    launch: u64,
    #[serde(rename = "Finish Time", default)]
    finish: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metrics {
    #[serde(rename = "Executor Run Time")]
    run_ms: u64,
    #[serde(rename = "Shuffle Read Metrics")]
    read: Option<ShuffleRead>,
    #[serde(rename = "Shuffle Write Metrics")]
    write: Option<ShuffleWrite>,
    #[serde(rename = "Input Metrics")]
    input: Option<Input>,
    #[serde(rename = "Output Metrics")]
    output: Option<Output>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ShuffleRead {
    #[serde(rename = "Remote Bytes Read")]
    remote: u64,
    #[serde(rename = "Local Bytes Read")]
    local: u64,
    #[serde(rename = "Fetch Wait Time")]
    wait_ms: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ShuffleWrite {
    #[serde(rename = "Shuffle Bytes Written")]
    bytes: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Input {
    #[serde(rename = "Bytes Read")]
    bytes: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Output {
    #[serde(rename = "Bytes Written")]
    bytes: u64,
}

const WANTED: [&str; 9] = [
    "SparkListenerLogStart\"",
    "SparkListenerApplicationStart\"",
    "SparkListenerApplicationEnd\"",
    "SparkListenerExecutorAdded\"",
    "SparkListenerJobStart\"",
    "SparkListenerJobEnd\"",
    "SparkListenerStageSubmitted\"",
    "SparkListenerStageCompleted\"",
    "SparkListenerTaskEnd\"",
];

/// The name of the event, if the line begins with it as Spark writes it.
fn event_name(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"{\"Event\":\"")
}

pub(super) fn read(stream: Stream<'_>, trace: &mut Trace) -> Result<(), LogError> {
    let mut lines = Lines::new(stream);
    let mut app = TraceJob { name: "application".into(), ..TraceJob::default() };
    let mut open: BTreeMap<u64, u32> = BTreeMap::new();
    let (mut started, mut tasks, mut failed_tasks, mut events, mut ended) = (0u64, 0u64, 0u64, 0u64, false);
    let mut last_ms = 0;
    loop {
        let number = lines.number + 1;
        let line = match lines.next() {
            Ok(Some(Line::Text(text))) => text,
            Ok(Some(Line::TooLong)) => {
                trace.warn(number, "a line of more than 64 MiB; it was left out");
                continue;
            }
            Ok(None) => break,
            Err(error) => return Err(error),
        };
        let wanted = |name: &[u8]| WANTED.iter().any(|w| name.starts_with(w.as_bytes()));
        if line.is_empty() || event_name(line).is_some_and(|name| !wanted(name)) {
            events += u64::from(!line.is_empty());
            continue;
        }
        let event = match serde_json::from_slice::<Event>(line) {
            Ok(event) => event,
            // An event whose name is not at the front of its line and is none of ours.
            Err(_) if serde_json::from_slice::<OtherEvent>(line).is_ok_and(|e| !wanted(format!("{}\"", e.event).as_bytes())) => {
                events += 1;
                continue;
            }
            Err(error) => {
                let cut = if lines.unterminated { "the last line, which is cut" } else { "not a Spark event" };
                trace.warn(number, format!("{cut} ({}); it was left out", plain(&error)));
                continue;
            }
        };
        events += 1;
        match event {
            Event::SparkListenerLogStart { version } if version.is_empty() => trace.warn(number, "the version of Spark is empty"),
            Event::SparkListenerLogStart { .. } | Event::SparkListenerExecutorAdded {} => {}
            Event::SparkListenerApplicationStart { name, time } => {
                app.name = name;
                app.submit_ms = time;
            }
            Event::SparkListenerApplicationEnd {} => ended = true,
            Event::SparkListenerJobStart {} => started += 1,
            Event::SparkListenerJobEnd { result } => trace.jobs_failed += u64::from(result.is_some_and(|r| r.result != "JobSucceeded")),
            Event::SparkListenerStageSubmitted { stage } => {
                let submit_ms = stage.submit.unwrap_or(last_ms);
                open.insert(stage.id, app.stages.len() as u32);
                app.stages.push(TraceStage { id: stage.id, parents: stage.parents, submit_ms, end_ms: u64::MAX });
            }
            Event::SparkListenerStageCompleted { stage } => {
                if let Some(&i) = open.get(&stage.id) {
                    app.stages[i as usize].end_ms = stage.end.unwrap_or(last_ms);
                    // Old versions tell the submission only here.
                    if let Some(submit) = stage.submit {
                        app.stages[i as usize].submit_ms = submit;
                    }
                }
            }
            Event::SparkListenerTaskEnd(task) => {
                tasks += 1;
                last_ms = last_ms.max(task.info.finish);
                let place = trace.place(&format!("{}/{}", task.info.host, task.info.executor));
                let succeeded = task.reason.as_ref().is_none_or(|r| r.reason.is_empty() || r.reason == "Success");
                if !succeeded {
                    failed_tasks += 1;
                    continue;
                }
                let stage = *open.entry(task.stage).or_insert_with(|| {
                    app.stages.push(TraceStage { id: task.stage, parents: vec![], submit_ms: task.info.launch, end_ms: u64::MAX });
                    app.stages.len() as u32 - 1
                });
                let metrics = task.metrics.unwrap_or_default();
                let read = metrics.read.unwrap_or_default();
                app.tasks.push(TraceTask {
                    stage,
                    place,
                    compute_ms: metrics.run_ms.saturating_sub(read.wait_ms),
                    input_bytes: metrics.input.map_or(0, |i| i.bytes),
                    read_remote_bytes: read.remote,
                    read_local_bytes: read.local,
                    shuffle_write_bytes: metrics.write.map_or(0, |w| w.bytes),
                    output_bytes: metrics.output.map_or(0, |o| o.bytes),
                });
            }
        }
    }
    if events == 0 {
        return Err(LogError::Unknown { found: "JSON lines without a Spark event".into() });
    }
    let line = lines.number;
    if !ended {
        trace.warn(line, "the log ends without the end of the application: it was still running, or the log is cut");
    }
    if failed_tasks > 0 {
        trace.warn(0, format!("{failed_tasks} task attempts failed or were killed; their bytes are not counted and they are not replayed"));
    }
    let unfinished = app.stages.iter().filter(|s| s.end_ms == u64::MAX).count();
    if unfinished > 0 {
        trace.warn(0, format!("{unfinished} stages have no end; they are taken to end with their last task"));
    }
    app.submit_ms = app.stages.iter().map(|s| s.submit_ms).min().unwrap_or(app.submit_ms).min(app.submit_ms);
    trace.job_count = started;
    trace.tasks = Some(tasks);
    if started > 0 || !app.tasks.is_empty() {
        trace.jobs.push(app);
    }
    Ok(())
}

#[derive(Deserialize)]
struct OtherEvent {
    #[serde(rename = "Event")]
    event: String,
}

/// A parser's complaint without its position, which is one within the line.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).chars().take(100).collect()
}
