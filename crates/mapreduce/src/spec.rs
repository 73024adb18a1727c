//! The parameters of a cluster simulation, as a plan gives them. This file is where they are defined and documented.

use joulepath_net::{EeeSpec, NetworkSpec, ObserveSpec, PortsSpec, TcpSpec, TopologySpec};
use joulepath_units::{Bytes, Frequency, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One run of the cluster simulator: a network, the software on its hosts, and a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterPlan {
    /// Which hosts, switches and links there are.
    #[serde(default)]
    pub topology: TopologySpec,
    /// Buffers and framing.
    #[serde(default)]
    pub ports: PortsSpec,
    /// Energy Efficient Ethernet.
    #[serde(default)]
    pub eee: EeeSpec,
    /// Transport.
    #[serde(default)]
    pub tcp: TcpSpec,
    /// The software on the hosts.
    #[serde(default)]
    pub hadoop: HadoopSpec,
    /// What runs.
    pub workload: WorkloadSpec,
    /// Small requests beside the workload, whose latency is measured; none by default.
    #[serde(default)]
    pub probes: Option<ProbeSpec>,
    /// What to show beyond sums.
    #[serde(default)]
    pub observe: ObserveSpec,
}

/// Small requests and responses between random hosts, beside the workload and for as long as it runs. Open loop: requests
/// are sent at random times (Poisson) whether or not earlier ones were answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Requests of all hosts together, for each second.
    pub rate: Frequency,
    /// Bytes of a request.
    #[serde(default = "request")]
    pub request: Bytes,
    /// Bytes of a response.
    #[serde(default = "response")]
    pub response: Bytes,
    /// Whether each request opens a connection or uses one that is open.
    #[serde(default)]
    pub connections: Connections,
}

/// How probes use connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Connections {
    /// Connections are kept open: no handshake.
    #[default]
    Persistent,
    /// Each request begins with a handshake.
    New,
}

impl ClusterPlan {
    /// The part that the network room needs.
    #[must_use]
    pub fn network(&self) -> NetworkSpec {
        NetworkSpec {
            topology: self.topology.clone(),
            ports: self.ports.clone(),
            eee: self.eee.clone(),
            tcp: self.tcp.clone(),
            observe: self.observe.clone(),
        }
    }

    /// Checks what types cannot: every error names the key, what was found and what is expected.
    pub fn check(&self) -> Result<(), String> {
        self.network().check()?;
        let h = &self.hadoop;
        let refuse = |bad: bool, key: &str, found: &dyn std::fmt::Display, expected: &str| {
            if bad { Err(format!("{key}: found {found}; expected {expected}")) } else { Ok(()) }
        };
        refuse(!(1..=256).contains(&h.map_slots), "hadoop.map_slots", &h.map_slots, "1 to 256 slots")?;
        refuse(!(1..=256).contains(&h.reduce_slots), "hadoop.reduce_slots", &h.reduce_slots, "1 to 256 slots")?;
        refuse(!(1..=10).contains(&h.replication), "hadoop.replication", &h.replication, "1 to 10 copies")?;
        refuse(!(1..=10).contains(&h.output_replication), "hadoop.output_replication", &h.output_replication, "1 to 10 copies")?;
        refuse(!(1..=1000).contains(&h.parallel_copies), "hadoop.parallel_copies", &h.parallel_copies, "1 to 1000 copies")?;
        refuse(!(0.0..=1.0).contains(&h.slowstart), "hadoop.slowstart", &h.slowstart, "a share of the maps from 0 to 1")?;
        refuse(!(1.0..=10.0).contains(&h.spread), "hadoop.spread", &h.spread, "1 (no spread) to 10")?;
        refuse(h.core == Frequency::ZERO, "hadoop.core", &h.core, "a positive frequency")?;
        refuse(h.disk.base() < 8_000, "hadoop.disk", &h.disk, "at least 8 kb/s")?;
        if let Some(probes) = &self.probes {
            let most = Frequency::from_base(10_000_000);
            refuse(probes.rate == Frequency::ZERO, "probes.rate", &probes.rate, "a positive rate, for example \"1 kHz\", or no probes")?;
            refuse(probes.rate > most, "probes.rate", &probes.rate, "at most 10 MHz")?;
            let most = Bytes::from_base(1_000_000_000);
            refuse(probes.request == Bytes::ZERO || probes.request > most, "probes.request", &probes.request, "1 B to 1 GB")?;
            refuse(probes.response == Bytes::ZERO || probes.response > most, "probes.response", &probes.response, "1 B to 1 GB")?;
        }
        match &self.workload {
            WorkloadSpec::Jobs { jobs } => {
                refuse(jobs.is_empty(), "workload.jobs", &"an empty list", "at least one job")?;
                for (i, job) in jobs.iter().enumerate() {
                    refuse(job.maps == 0 || job.maps > 100_000, &format!("workload.jobs[{i}].maps"), &job.maps, "1 to 100000 maps")?;
                    refuse(job.reduces > 100_000, &format!("workload.jobs[{i}].reduces"), &job.reduces, "0 to 100000 reduces")?;
                }
            }
            WorkloadSpec::Mix { cpu_load, jobs, .. } => {
                refuse(!(*cpu_load > 0.0 && *cpu_load < 1.0), "workload.cpu_load", cpu_load, "a share of all cores above 0 and below 1")?;
                refuse(!(1..=1_000_000).contains(jobs), "workload.jobs", jobs, "1 to 1000000 jobs")?;
            }
            WorkloadSpec::Log { scale, compute, .. } => {
                refuse(!(*scale > 0.0 && *scale <= 1e6), "workload.scale", scale, "a factor above 0")?;
                refuse(!(*compute >= 0.0 && *compute <= 1e6), "workload.compute", compute, "a factor of 0 or more")?;
            }
            WorkloadSpec::Shuffle { bytes, .. } => refuse(*bytes == Bytes::ZERO, "workload.bytes", bytes, "at least 1 B")?,
            WorkloadSpec::Idle { duration } => refuse(*duration == Span::ZERO, "workload.duration", duration, "a positive time")?,
        }
        Ok(())
    }
}

/// The software on the hosts. Defaults are those of MRPerf and of the seeds, except the disk's rate and one output copy, which are assumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HadoopSpec {
    /// Which task runs where.
    pub scheduler: Scheduler,
    /// Hosts kept for name node and job tracker: they run no task.
    pub masters: u32,
    /// Map tasks that a host runs at once.
    pub map_slots: u32,
    /// Reduce tasks that a host runs at once. Tasks of Spark logs may use map and reduce slots.
    pub reduce_slots: u32,
    /// Copies of each input block.
    pub replication: u32,
    /// Copies of each output block (TeraSort asks HDFS for one).
    pub output_replication: u32,
    /// Map outputs that a reduce task copies at once.
    pub parallel_copies: u32,
    /// Share of a job's maps that must have finished before its reduces start.
    pub slowstart: f64,
    /// Clock of a core; each task uses one.
    pub core: Frequency,
    /// CPU cycles of a map for each byte of input.
    pub map_cycles_per_byte: u32,
    /// CPU cycles of sort and merge for each byte of a reduce's input.
    pub sort_cycles_per_byte: u32,
    /// CPU cycles of a reduce for each byte of input.
    pub reduce_cycles_per_byte: u32,
    /// CPU cycles to start a task (the Java virtual machine).
    pub start_cycles: u64,
    /// Geometric standard deviation of the time that tasks compute (log-normal; 1 is none).
    pub spread: f64,
    /// Rate of a host's one disk, which serves requests in order.
    pub disk: joulepath_units::BitRate,
}

impl Default for HadoopSpec {
    fn default() -> Self {
        Self {
            scheduler: Scheduler::Quincy,
            masters: 1,
            map_slots: 2,
            reduce_slots: 2,
            replication: 3,
            output_replication: 1,
            parallel_copies: 5,
            slowstart: 0.05,
            core: Frequency::from_base(2_500_000_000),
            map_cycles_per_byte: 40,
            sort_cycles_per_byte: 44,
            reduce_cycles_per_byte: 90,
            start_cycles: 4_000_000_000,
            spread: 1.10,
            disk: joulepath_units::BitRate::from_base(800_000_000),
        }
    }
}

/// Which task runs where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// The oldest job first, its most local task.
    Fifo,
    /// The job with the fewest running tasks first, its most local task.
    Fair,
    /// A minimum-cost flow over waiting tasks and free slots that moves the least data (Isard et al. 2009).
    #[default]
    Quincy,
}

/// A benchmark of the seeds: how much data it shuffles and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Benchmark {
    /// Shuffles and writes all of its input.
    TeraSort,
    /// Shuffles and writes 33 KB for each 640 MB.
    Search,
    /// Shuffles and writes 114 MB for each 640 MB.
    Index,
}

impl Benchmark {
    /// Bytes shuffled, and written, for an input (seed 000, Table III).
    #[must_use]
    pub fn shuffle(self, input: Bytes) -> Bytes {
        let share = |n: u128| Bytes::from_base((u128::from(input.base()) * n / 640_000_000) as u64);
        match self {
            Self::TeraSort => input,
            Self::Search => share(33_000),
            Self::Index => share(114_000_000),
        }
    }
}

/// One MapReduce job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// What it computes.
    pub benchmark: Benchmark,
    /// Bytes of input.
    pub input: Bytes,
    /// Map tasks; each reads an equal share.
    pub maps: u32,
    /// Reduce tasks.
    pub reduces: u32,
    /// When it is submitted.
    #[serde(default)]
    pub submit: Span,
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// A list of MapReduce jobs.
    Jobs {
        /// The jobs.
        jobs: Vec<JobSpec>,
    },
    /// The seeds' small jobs (10 maps of 64 MB, one reduce), submitted at random times at a given CPU load.
    Mix {
        /// How many jobs.
        jobs: u32,
        /// Share of all cores that their computing would use on average.
        cpu_load: f64,
        /// Benchmarks, taken in turn.
        #[serde(default = "all_benchmarks")]
        benchmarks: Vec<Benchmark>,
    },
    /// A log of SWIM, Spark or Hadoop, replayed on this cluster.
    Log {
        /// The file, relative to the plan.
        file: String,
        /// Factor on all bytes.
        #[serde(default = "one")]
        scale: f64,
        /// Factor on all computing times and on the gaps between submissions.
        #[serde(default = "one")]
        compute: f64,
        /// Only the first jobs of the log.
        #[serde(default)]
        first_jobs: Option<u32>,
    },
    /// Every host sends to every other one: a test pattern.
    Shuffle {
        /// Bytes for each pair.
        bytes: Bytes,
        /// Flows start at random within this time.
        #[serde(default)]
        jitter: Span,
    },
    /// Nothing runs.
    Idle {
        /// For how long.
        duration: Span,
    },
}

fn request() -> Bytes {
    Bytes::from_base(200)
}

fn response() -> Bytes {
    Bytes::from_base(2_000)
}

fn all_benchmarks() -> Vec<Benchmark> {
    vec![Benchmark::TeraSort, Benchmark::Search, Benchmark::Index]
}

fn one() -> f64 {
    1.0
}
