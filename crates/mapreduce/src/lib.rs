//! Jobs on clusters: MapReduce as MRPerf describes it, and replayed logs of SWIM, Spark and Hadoop, on a packet-level network.
//!
//! Sources: seeds 000 and 001, chapters 3 and 4; MRPerf (Wang et al. 2009) for the phases and the cycles per byte; Isard
//! et al. 2009 for Quincy. Logs come as byte streams; this room opens no file.

mod cluster;
mod hdfs;
mod job;
mod logs;
mod probes;
mod schedule;
mod spec;

pub use cluster::{ClusterResult, JobResult, Progress, simulate};
pub use job::{Job, Stage, Start, Task};
pub use logs::{LogError, Matrix, Trace, TraceJob, TraceTask, Warning, read_log};
pub use probes::ProbeResult;
pub use spec::{Benchmark, ClusterPlan, Connections, HadoopSpec, JobSpec, ProbeSpec, Scheduler, WorkloadSpec};
