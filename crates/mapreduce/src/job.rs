//! Jobs as stages of tasks: what MapReduce and replayed logs have in common.

use crate::logs::{Trace, TraceJob, TraceTask};
use crate::spec::{Benchmark, ClusterPlan, HadoopSpec, JobSpec, WorkloadSpec};
use joulepath_engine::Stream;
use joulepath_units::{Bytes, Instant, Span};

/// When the tasks of a stage may start.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// A delay after these stages (of the same job) have ended.
    After {
        /// The stages.
        stages: Vec<usize>,
        /// The delay.
        delay: Span,
    },
    /// Once this many tasks of a stage have ended; copies follow as the others end.
    Overlapping {
        /// The stage.
        stage: usize,
        /// The tasks.
        tasks: usize,
    },
}

/// A task: it starts up, reads input and copies its share of earlier stages' outputs, computes, and writes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Task {
    /// Time to start up, before anything is read.
    pub start_up: Span,
    /// A block of the distributed file system.
    pub input: Bytes,
    /// Bytes copied from the outputs of the stage's sources.
    pub copied: Bytes,
    /// Computing time once everything was read.
    pub compute: Span,
    /// Bytes left on the local disk for later stages.
    pub shuffled: Bytes,
    /// Bytes written to the distributed file system.
    pub output: Bytes,
}

/// Tasks that do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Shown to people.
    pub name: &'static str,
    /// When its tasks may start.
    pub start: Start,
    /// The stages whose outputs its tasks copy.
    pub sources: Vec<usize>,
    /// One connection for each source task (Hadoop) instead of one for each source host (Spark).
    pub copy_each_task: bool,
    /// Which slots it uses.
    pub slots: Slots,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

/// Which slots of a host a task uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// Map slots.
    Map,
    /// Reduce slots.
    Reduce,
    /// Either.
    Any,
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name or number in the log.
    pub name: String,
    /// When it is submitted.
    pub submit: Instant,
    /// Its stages; they refer to each other by position.
    pub stages: Vec<Stage>,
}

impl Job {
    /// Two stages, map and reduce.
    fn map_reduce(name: String, submit: Instant, maps: Vec<Task>, reduces: Vec<Task>, slowstart: f64) -> Self {
        let first = (maps.len() as f64 * slowstart).ceil() as usize;
        let map = Stage {
            name: "map",
            start: Start::After { stages: vec![], delay: Span::ZERO },
            sources: vec![],
            copy_each_task: true,
            slots: Slots::Map,
            tasks: maps,
        };
        let mut stages = vec![map];
        if !reduces.is_empty() {
            stages.push(Stage {
                name: "reduce",
                start: Start::Overlapping { stage: 0, tasks: first },
                sources: vec![0],
                copy_each_task: true,
                slots: Slots::Reduce,
                tasks: reduces,
            });
        }
        Self { name, submit, stages }
    }
}

/// The `i`-th of `n` parts of `total`: parts differ by at most one and sum to the total.
pub(crate) fn part(total: u64, i: u64, n: u64) -> u64 {
    let upto = |k: u64| (u128::from(total) * u128::from(k) / u128::from(n)) as u64;
    upto(i + 1) - upto(i)
}

/// Times of computing from cycles, with the log-normal spread of MRPerf.
struct Cpu<'a> {
    hadoop: &'a HadoopSpec,
    stream: Stream,
}

impl Cpu<'_> {
    fn time(&mut self, cycles: f64) -> Span {
        let sigma = libm::log(self.hadoop.spread);
        Span::from_seconds(cycles / self.hadoop.core.base() as f64 * self.stream.log_normal(sigma))
    }

    /// A job with given totals, spread evenly over its tasks.
    fn job(&mut self, name: String, submit: Instant, (input, shuffle, output): (u64, u64, u64), maps: u32, reduces: u32) -> Job {
        let hadoop = self.hadoop;
        let start_up = |cpu: &mut Self| cpu.time(hadoop.start_cycles as f64);
        let map = |cpu: &mut Self, i: u32| {
            let input = part(input, u64::from(i), u64::from(maps));
            let produced = part(if reduces > 0 { shuffle } else { output }, u64::from(i), u64::from(maps));
            Task {
                start_up: start_up(cpu),
                input: Bytes::from_base(input),
                compute: cpu.time(input as f64 * f64::from(hadoop.map_cycles_per_byte)),
                shuffled: if reduces > 0 { Bytes::from_base(produced) } else { Bytes::ZERO },
                output: if reduces > 0 { Bytes::ZERO } else { Bytes::from_base(produced) },
                ..Task::default()
            }
        };
        let reduce = |cpu: &mut Self, i: u32| {
            let copied = part(shuffle, u64::from(i), u64::from(reduces));
            let cycles = f64::from(hadoop.sort_cycles_per_byte + hadoop.reduce_cycles_per_byte);
            Task {
                start_up: start_up(cpu),
                copied: Bytes::from_base(copied),
                compute: cpu.time(copied as f64 * cycles),
                output: Bytes::from_base(part(output, u64::from(i), u64::from(reduces))),
                ..Task::default()
            }
        };
        let maps = (0..maps).map(|i| map(self, i)).collect();
        let reduces = (0..reduces).map(|i| reduce(self, i)).collect();
        Job::map_reduce(name, submit, maps, reduces, hadoop.slowstart)
    }
}

/// The jobs of a plan. `workers` is how many hosts run tasks; a log must have been read for [`WorkloadSpec::Log`].
pub(crate) fn jobs_of(plan: &ClusterPlan, workers: u32, log: Option<&Trace>, seed: u64, run: u64) -> Result<Vec<Job>, String> {
    let mut cpu = Cpu { hadoop: &plan.hadoop, stream: Stream::named(seed, run, "compute") };
    match &plan.workload {
        WorkloadSpec::Jobs { jobs } => Ok((jobs.iter().enumerate()).map(|(i, spec)| from_benchmark(&mut cpu, i, spec)).collect()),
        WorkloadSpec::Mix { jobs, cpu_load, benchmarks } => {
            if benchmarks.is_empty() {
                return Err("workload.benchmarks: found an empty list; expected at least one of terasort, search, index".into());
            }
            let input = Bytes::from_base(640_000_000);
            let spec =
                |i: u32, submit| JobSpec { benchmark: benchmarks[i as usize % benchmarks.len()], input, maps: 10, reduces: 1, submit };
            let cycles = |benchmark: Benchmark| {
                let h = &plan.hadoop;
                let shuffle = benchmark.shuffle(input).base() as f64;
                11.0 * h.start_cycles as f64
                    + input.base() as f64 * f64::from(h.map_cycles_per_byte)
                    + shuffle * f64::from(h.sort_cycles_per_byte + h.reduce_cycles_per_byte)
            };
            let cores = f64::from(workers * (plan.hadoop.map_slots + plan.hadoop.reduce_slots));
            let mean = benchmarks.iter().map(|&b| cycles(b)).sum::<f64>() / benchmarks.len() as f64;
            let gap = mean / (plan.hadoop.core.base() as f64 * cores * cpu_load);
            let mut gaps = Stream::named(seed, run, "submissions");
            let mut at = 0.0;
            Ok((0..*jobs)
                .map(|i| {
                    let job = from_benchmark(&mut cpu, i as usize, &spec(i, Span::from_seconds(at)));
                    at += gap * gaps.exponential();
                    job
                })
                .collect())
        }
        &WorkloadSpec::Log { scale, compute, first_jobs, .. } => {
            let trace = log.ok_or("workload.file: the log was not read")?;
            let jobs = &trace.jobs[..trace.jobs.len().min(first_jobs.map_or(usize::MAX, |n| n as usize))];
            let first = jobs.iter().map(|j| j.submit_ms).min().unwrap_or(0);
            let made = jobs.iter().filter(|j| !j.failed).map(|job| {
                let submit = Instant::ZERO + millis(job.submit_ms - first, compute);
                from_log(&mut cpu, job, submit, workers, scale, compute)
            });
            Ok(made.filter(|j| !j.stages.is_empty()).collect())
        }
        WorkloadSpec::Shuffle { .. } | WorkloadSpec::Idle { .. } => Ok(vec![]),
    }
}

fn from_benchmark(cpu: &mut Cpu, i: usize, spec: &JobSpec) -> Job {
    let shuffle = spec.benchmark.shuffle(spec.input).base();
    let name = format!("{:?} {i}", spec.benchmark).to_lowercase();
    cpu.job(name, Instant::ZERO + spec.submit, (spec.input.base(), shuffle, shuffle), spec.maps, spec.reduces)
}

fn millis(ms: u64, factor: f64) -> Span {
    Span::from_seconds(ms as f64 / 1e3 * factor)
}

/// The most earlier stages that a stage without declared parents reads from.
const MOST_SOURCES: usize = 64;
/// Largest block of a job whose log has totals only.
const BLOCK: u64 = 128_000_000;

fn from_log(cpu: &mut Cpu, job: &TraceJob, submit: Instant, workers: u32, scale: f64, compute: f64) -> Job {
    let scaled = |bytes: u64| (bytes as f64 * scale).round() as u64;
    if job.tasks.is_empty() {
        // SWIM: totals only. One map for each block, reduces for the shuffle at the same grain, at most one wave.
        let (input, shuffle, output) = (scaled(job.input_bytes), scaled(job.shuffle_bytes), scaled(job.output_bytes));
        let maps = input.div_ceil(BLOCK).clamp(1, 100_000) as u32;
        let slots = u64::from(workers * cpu.hadoop.reduce_slots);
        let reduces = if shuffle == 0 { 0 } else { shuffle.div_ceil(BLOCK).clamp(1, slots) as u32 };
        return cpu.job(job.name.clone(), submit, (input, shuffle, output), maps, reduces);
    }
    let task = |t: &TraceTask| Task {
        start_up: Span::ZERO,
        input: Bytes::from_base(scaled(t.input_bytes)),
        copied: Bytes::from_base(scaled(t.read_remote_bytes + t.read_local_bytes)),
        compute: millis(t.compute_ms, compute),
        shuffled: Bytes::from_base(scaled(t.shuffle_write_bytes)),
        output: Bytes::from_base(scaled(t.output_bytes)),
    };
    if job.is_map_reduce {
        let of_stage = |s: u32| job.tasks.iter().filter(move |t| t.stage == s).map(task).collect::<Vec<_>>();
        return Job::map_reduce(job.name.clone(), submit, of_stage(0), of_stage(1), cpu.hadoop.slowstart);
    }
    // Spark: a stage starts after what had ended when it was submitted, and after the same pause of the driver. That keeps
    // the order of the log; what a stage reads comes from the declared parents, or from the latest earlier writers.
    let mut by_stage: Vec<Vec<Task>> = vec![vec![]; job.stages.len()];
    job.tasks.iter().for_each(|t| by_stage[t.stage as usize].push(task(t)));
    let wrote: Vec<bool> = by_stage.iter().map(|tasks| tasks.iter().any(|t| t.shuffled > Bytes::ZERO)).collect();
    let mut stages = Vec::with_capacity(job.stages.len());
    for (i, (stage, tasks)) in job.stages.iter().zip(by_stage).enumerate() {
        let ended = |p: &usize| job.stages[*p].end_ms <= stage.submit_ms;
        let last = (0..i).filter(ended).map(|p| job.stages[p].end_ms).max();
        // One that ended before another of them was submitted is implied by it.
        let latest_submit = (0..i).filter(ended).map(|p| job.stages[p].submit_ms).max();
        let before = (0..i).filter(ended).filter(|&p| Some(job.stages[p].end_ms) > latest_submit).collect();
        let declared: Vec<usize> = (0..i).filter(|&p| wrote[p] && stage.parents.contains(&job.stages[p].id)).collect();
        let sources =
            if declared.is_empty() { (0..i).rev().filter(|&p| wrote[p] && ended(&p)).take(MOST_SOURCES).collect() } else { declared };
        stages.push(Stage {
            name: "stage",
            start: Start::After {
                delay: millis(stage.submit_ms - last.unwrap_or(job.submit_ms.min(stage.submit_ms)), compute),
                stages: before,
            },
            sources,
            copy_each_task: false,
            slots: Slots::Any,
            tasks,
        });
    }
    Job { name: job.name.clone(), submit, stages }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_the_whole() {
        for (total, n) in [(0u64, 3u64), (10, 3), (20_224_000_000, 158), (u64::MAX / 2, 7)] {
            let parts: Vec<u64> = (0..n).map(|i| part(total, i, n)).collect();
            assert_eq!(parts.iter().sum::<u64>(), total);
            assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }
    }
}
