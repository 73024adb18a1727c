//! SWIM traces: tab-separated id, submit s, gap s, map input B, shuffle B, output B, and perhaps paths.

use super::lines::{Line, Lines};
use super::{LogError, Stream, Trace, TraceJob};

const FIELDS: &str = "6 tab-separated fields: id, submit s, gap s, map input B, shuffle B, output B";

pub(super) fn read(stream: Stream<'_>, trace: &mut Trace) -> Result<(), LogError> {
    let mut lines = Lines::new(stream);
    loop {
        let number = lines.number + 1;
        let Some(line) = lines.next()? else { break };
        let text = match line {
            Line::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Line::TooLong => {
                trace.warn(number, "a line of more than 64 MiB; it was left out");
                continue;
            }
        };
        if text.is_empty() {
            continue;
        }
        let fields: Vec<&str> = text.split('\t').collect();
        let number_at = |i: usize| fields.get(i).and_then(|f| f.trim().parse::<f64>().ok()).filter(|v| (0.0..1e18).contains(v));
        let values = (number_at(1), number_at(3), number_at(4), number_at(5));
        let (Some(submit), Some(input), Some(shuffle), Some(output)) = values else {
            let shown: String = text.chars().take(60).collect();
            trace.warn(number, format!("found {shown:?}, expected {FIELDS}; the line was left out"));
            continue;
        };
        trace.jobs.push(TraceJob {
            name: fields[0].to_string(),
            submit_ms: (submit * 1e3) as u64,
            is_map_reduce: true,
            input_bytes: input as u64,
            shuffle_bytes: shuffle as u64,
            output_bytes: output as u64,
            ..TraceJob::default()
        });
    }
    trace.job_count = trace.jobs.len() as u64;
    trace.jobs.sort_by_key(|j| j.submit_ms);
    Ok(())
}
