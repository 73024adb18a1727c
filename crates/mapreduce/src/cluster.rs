//! A workload on a cluster: tasks on slots, disks, and flows on the network.
//!
//! A task starts up, reads its block (from its own disk, or from another host's disk through the network), copies its share
//! of earlier stages' outputs, computes, and writes. Map outputs are served from memory (they were just written); disks
//! serve one request after the other. Copies go over one TCP connection each, a bounded number at once.

use crate::hdfs::Placement;
use crate::job::{Job, Slots, Start, Task, jobs_of, part};
use crate::logs::Trace;
use crate::probes::{ProbeResult, Probes};
use crate::schedule::{Free, Waiting, assign};
use crate::spec::{ClusterPlan, Connections, WorkloadSpec};
use joulepath_engine::Stream;
use joulepath_net::{FlowId, HostId, Network, NetworkResult, Notice, Opening};
use joulepath_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// A finished job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// When it was submitted.
    pub submit: Instant,
    /// When its last task ended.
    pub end: Instant,
    /// When the last task of each stage ended, with the stage's name.
    pub stages: Vec<(&'static str, Instant)>,
    /// How long the job waited for the network alone: from the end of the stage that is copied from to the end of the last
    /// copy, summed over stages.
    pub shuffle: Span,
}

/// A finished run.
pub struct ClusterResult {
    /// The network.
    pub network: NetworkResult,
    /// The jobs.
    pub jobs: Vec<JobResult>,
    /// Hosts that run tasks.
    pub workers: u32,
    /// Bytes that tasks read of earlier stages on their own host, without the network.
    pub local_bytes: u64,
    /// Input blocks read on the own host, in the own rack, beyond.
    pub blocks_read: [u64; 3],
    /// Probes, when the plan has them.
    pub probes: Option<ProbeResult>,
}

/// Called from time to time with the share of tasks that have ended (0 to 1) and the packet hops so far; false stops the run.
pub type Progress<'a> = &'a mut dyn FnMut(f64, u64) -> bool;

/// Connections that a shuffle may open at once: about 300 B each.
const MOST_PAIRS: u64 = 5_000_000;
/// Hops between calls of [`Progress`].
const PROGRESS_EVERY: u64 = 1 << 20;

#[derive(Clone, Copy)]
struct TaskId {
    job: u32,
    stage: u32,
    task: u32,
}

/// What an alarm or a flow is for.
#[derive(Clone, Copy)]
enum Purpose {
    Submit(u32),
    StageReady {
        job: u32,
        stage: u32,
    },
    StartedUp(TaskId),
    /// One of the parts of a task's reading or writing has ended.
    PartDone(TaskId),
    CopyDone(TaskId),
    Computed(TaskId),
    ShuffleStart(u32),
    /// The next probe is due.
    ProbeDue,
    /// The request of a probe, or its response, has arrived.
    ProbeAsked(u32),
    ProbeAnswered(u32),
    IdleOver,
    Nothing,
}

/// One connection's worth of copying: from which host, how much.
#[derive(Clone, Copy)]
struct Copy {
    from: HostId,
    bytes: u64,
}

#[derive(Default)]
struct RunningTask {
    host: HostId,
    /// Parts of the present phase that have not ended.
    open_parts: u32,
    copies: VecDeque<Copy>,
    copying: u32,
    /// Source tasks whose outputs are not announced yet.
    awaited: usize,
    blocks: Vec<u32>,
    phase: Phase,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Waiting,
    Reading,
    Computing,
    Writing,
    Done,
}

struct RunningStage {
    tasks: Vec<RunningTask>,
    waiting: VecDeque<u32>,
    ready: bool,
    started: bool,
    running: usize,
    done: usize,
    /// Where each ended task ran, in the order in which they ended.
    ended_on: Vec<(u32, HostId)>,
    ended_at: Instant,
    /// When the last task that copies had copied everything.
    copied_at: Option<Instant>,
    /// Sum of the outputs of the tasks before each one, and of all, for cutting them into exact shares.
    outputs_before: Vec<u128>,
}

struct RunningJob {
    spec: Job,
    stages: Vec<RunningStage>,
    submitted: bool,
    stages_left: usize,
}

struct Cluster<'p> {
    plan: &'p ClusterPlan,
    network: Network,
    jobs: Vec<RunningJob>,
    jobs_left: usize,
    purposes: Vec<Purpose>,
    free_tokens: Vec<u64>,
    flows: BTreeMap<FlowId, Purpose>,
    free_slots: Vec<[u32; 2]>,
    disks: Vec<Instant>,
    placement: Placement,
    workers: Vec<HostId>,
    pairs: Vec<(HostId, HostId)>,
    open_flows: usize,
    tasks_total: u64,
    tasks_done: u64,
    local_bytes: u64,
    blocks_read: [u64; 3],
    results: Vec<JobResult>,
    probes: Option<Probes>,
}

/// Runs a plan. `log` is what [`crate::read_log`] understood when the workload is a log. `run` numbers repetitions.
/// Errors are sentences for people: a plan that cannot run, or "stopped".
pub fn simulate(plan: &ClusterPlan, log: Option<&Trace>, seed: u64, run: u64, progress: Progress<'_>) -> Result<ClusterResult, String> {
    plan.check()?;
    let network = Network::new(&plan.network(), seed ^ run.rotate_left(17))?;
    let hosts = network.topology().hosts();
    let is_shuffle = matches!(plan.workload, WorkloadSpec::Shuffle { .. });
    let is_idle = matches!(plan.workload, WorkloadSpec::Idle { .. });
    let masters = if is_shuffle || is_idle { 0 } else { plan.hadoop.masters };
    if masters >= hosts {
        return Err(format!("hadoop.masters: found {masters} of {hosts} hosts; expected to leave at least one host for tasks"));
    }
    let pairs = u64::from(hosts) * u64::from(hosts - 1);
    if is_shuffle && pairs > MOST_PAIRS {
        return Err(format!(
            "workload.kind: found a shuffle with {pairs} connections between {hosts} hosts; expected at most {MOST_PAIRS}"
        ));
    }
    let workers: Vec<HostId> = (masters..hosts).collect();
    let jobs = jobs_of(plan, workers.len() as u32, log, seed, run)?;
    if jobs.is_empty() && !is_shuffle && !is_idle {
        return Err("workload: found no job that can be replayed; expected at least one that did not fail".into());
    }
    let placement = Placement::new(network.topology(), workers.clone(), Stream::named(seed, run, "placement"));
    let mut cluster = Cluster {
        plan,
        network,
        jobs_left: jobs.len(),
        tasks_total: jobs.iter().flat_map(|j| &j.stages).map(|s| s.tasks.len() as u64).sum(),
        jobs: jobs.into_iter().map(RunningJob::new).collect(),
        purposes: vec![],
        free_tokens: vec![],
        flows: BTreeMap::new(),
        free_slots: (0..hosts).map(|h| if h < masters { [0, 0] } else { [plan.hadoop.map_slots, plan.hadoop.reduce_slots] }).collect(),
        disks: vec![Instant::ZERO; hosts as usize],
        placement,
        workers,
        pairs: vec![],
        open_flows: 0,
        tasks_done: 0,
        local_bytes: 0,
        blocks_read: [0; 3],
        results: vec![],
        probes: plan.probes.as_ref().map(|spec| Probes::new(spec, hosts, seed, run)),
    };
    cluster.start(seed, run);
    cluster.run(progress)?;
    let mut results = cluster.results;
    results.sort_by(|a, b| (a.submit, &a.name).cmp(&(b.submit, &b.name)));
    Ok(ClusterResult {
        network: cluster.network.finish(),
        jobs: results,
        workers: cluster.workers.len() as u32,
        local_bytes: cluster.local_bytes,
        blocks_read: cluster.blocks_read,
        probes: cluster.probes.map(Probes::finish),
    })
}

impl RunningJob {
    fn new(spec: Job) -> Self {
        let stage = |tasks: &[Task]| RunningStage {
            tasks: tasks.iter().map(|_| RunningTask::default()).collect(),
            waiting: (0..tasks.len() as u32).collect(),
            ready: false,
            started: false,
            running: 0,
            done: 0,
            ended_on: vec![],
            ended_at: Instant::ZERO,
            copied_at: None,
            outputs_before: std::iter::once(0)
                .chain(tasks.iter().scan(0, |sum, t| {
                    *sum += u128::from(t.shuffled.base());
                    Some(*sum)
                }))
                .collect(),
        };
        let stages: Vec<RunningStage> = spec.stages.iter().map(|s| stage(&s.tasks)).collect();
        Self { stages_left: stages.len(), stages, spec, submitted: false }
    }
}

impl Cluster<'_> {
    fn start(&mut self, seed: u64, run: u64) {
        if let WorkloadSpec::Shuffle { jitter, .. } = self.plan.workload {
            let mut starts = Stream::named(seed, run, "starts");
            self.pairs = self.workers.iter().flat_map(|&a| self.workers.iter().map(move |&b| (a, b))).filter(|(a, b)| a != b).collect();
            for i in 0..self.pairs.len() as u32 {
                self.alarm(Instant::ZERO + Span::from_seconds(jitter.seconds() * starts.uniform()), Purpose::ShuffleStart(i));
            }
            self.tasks_total = self.pairs.len() as u64;
        }
        if let WorkloadSpec::Idle { duration } = self.plan.workload {
            self.tasks_total = 1;
            self.alarm(Instant::ZERO + duration, Purpose::IdleOver);
        }
        if let Some(probes) = &mut self.probes {
            let first = probes.next_due(Instant::ZERO);
            self.alarm(first, Purpose::ProbeDue);
        }
        for job in 0..self.jobs.len() as u32 {
            self.alarm(self.jobs[job as usize].spec.submit, Purpose::Submit(job));
        }
        for j in 0..self.jobs.len() {
            for s in 0..self.jobs[j].stages.len() {
                for t in 0..self.jobs[j].stages[s].tasks.len() {
                    if self.jobs[j].spec.stages[s].tasks[t].input > Bytes::ZERO {
                        self.jobs[j].stages[s].tasks[t].blocks = self.placement.block(self.plan.hadoop.replication);
                    }
                }
            }
        }
    }

    fn run(&mut self, progress: Progress<'_>) -> Result<(), String> {
        let mut next_report = 0;
        let mut steps = 0u64;
        while self.jobs_left > 0 || self.open_flows > 0 || self.tasks_done < self.tasks_total {
            steps += 1;
            if self.network.packet_hops() >= next_report || steps.is_multiple_of(1 << 16) {
                next_report = self.network.packet_hops() + PROGRESS_EVERY;
                if !progress(self.tasks_done as f64 / self.tasks_total.max(1) as f64, self.network.packet_hops()) {
                    return Err("stopped".into());
                }
            }
            let notice = self.network.advance().expect("work is left, so something is under way");
            let is_flow = matches!(notice, Notice::FlowDone(_));
            let purpose = match notice {
                Notice::Alarm(token) => {
                    self.free_tokens.push(token);
                    std::mem::replace(&mut self.purposes[token as usize], Purpose::Nothing)
                }
                Notice::FlowDone(flow) => self.flows.remove(&flow).unwrap_or(Purpose::Nothing),
            };
            let is_probe = matches!(purpose, Purpose::ProbeAsked(_) | Purpose::ProbeAnswered(_));
            self.open_flows -= usize::from(is_flow && !is_probe);
            self.on(purpose);
        }
        Ok(())
    }

    fn alarm(&mut self, at: Instant, purpose: Purpose) {
        let token = self.free_tokens.pop().unwrap_or_else(|| {
            self.purposes.push(Purpose::Nothing);
            self.purposes.len() as u64 - 1
        });
        self.purposes[token as usize] = purpose;
        self.network.set_alarm(at, token);
    }

    fn flow(&mut self, from: HostId, to: HostId, bytes: u64, purpose: Purpose) {
        let flow = self.network.start_flow(from, to, Bytes::from_base(bytes), Opening::Handshake);
        self.open_flows += 1;
        self.flows.insert(flow, purpose);
    }

    /// A request to a disk: it ends when all earlier ones and itself are served.
    fn disk(&mut self, host: HostId, bytes: u64, purpose: Purpose) {
        let disk = &mut self.disks[host as usize];
        *disk = (*disk).max(self.network.now()) + self.plan.hadoop.disk.time_for(Bytes::from_base(bytes));
        let at = *disk;
        self.alarm(at, purpose);
    }

    fn on(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Nothing => {}
            Purpose::Submit(job) => {
                self.jobs[job as usize].submitted = true;
                self.open_stages(job as usize);
                self.schedule();
            }
            Purpose::StageReady { job, stage } => {
                self.jobs[job as usize].stages[stage as usize].ready = true;
                if self.jobs[job as usize].stages[stage as usize].tasks.is_empty() {
                    self.end_stage(job as usize, stage as usize);
                }
                self.schedule();
            }
            Purpose::StartedUp(id) => self.read(id),
            Purpose::PartDone(id) => {
                self.task(id).open_parts -= 1;
                self.next_phase(id);
            }
            Purpose::CopyDone(id) => {
                self.task(id).copying -= 1;
                self.copy_more(id);
                self.next_phase(id);
            }
            Purpose::Computed(id) => self.write(id),
            Purpose::ShuffleStart(pair) => {
                let WorkloadSpec::Shuffle { bytes, .. } = self.plan.workload else { return };
                let (from, to) = self.pairs[pair as usize];
                self.tasks_done += 1;
                self.flow(from, to, bytes.base(), Purpose::Nothing);
            }
            Purpose::IdleOver => self.tasks_done += 1,
            Purpose::ProbeDue => self.ask(),
            Purpose::ProbeAsked(probe) => self.answer(probe),
            Purpose::ProbeAnswered(probe) => {
                let now = self.network.now();
                if let Some(probes) = &mut self.probes {
                    probes.answered(probe, now);
                }
            }
        }
    }

    /// Sends a probe's request and sets the alarm for the next one.
    fn ask(&mut self) {
        let (Some(spec), Some(probes)) = (&self.plan.probes, &mut self.probes) else { return };
        let now = self.network.now();
        let (probe, from, to) = probes.ask(now);
        let due = probes.next_due(now);
        let opening = match spec.connections {
            Connections::New => Opening::Handshake,
            Connections::Persistent => Opening::Established,
        };
        let flow = self.network.start_flow(from, to, spec.request, opening);
        self.flows.insert(flow, Purpose::ProbeAsked(probe));
        self.alarm(due, Purpose::ProbeDue);
    }

    /// Sends a probe's response back on the same connection.
    fn answer(&mut self, probe: u32) {
        let (Some(spec), Some(probes)) = (&self.plan.probes, &self.probes) else { return };
        let (from, to) = probes.between(probe);
        let flow = self.network.start_flow(to, from, spec.response, Opening::Established);
        self.flows.insert(flow, Purpose::ProbeAnswered(probe));
    }

    fn task(&mut self, id: TaskId) -> &mut RunningTask {
        &mut self.jobs[id.job as usize].stages[id.stage as usize].tasks[id.task as usize]
    }

    /// Sets alarms for stages whose conditions have come true.
    fn open_stages(&mut self, j: usize) {
        if !self.jobs[j].submitted {
            return;
        }
        for s in 0..self.jobs[j].stages.len() {
            let job = &self.jobs[j];
            if job.stages[s].started {
                continue;
            }
            let ended = |s: usize| job.stages[s].done == job.stages[s].tasks.len() && job.stages[s].started;
            let delay = match &job.spec.stages[s].start {
                Start::After { stages, delay } if stages.iter().all(|&p| ended(p)) => *delay,
                Start::Overlapping { stage, tasks } if job.stages[*stage].done >= *tasks => Span::ZERO,
                _ => continue,
            };
            self.jobs[j].stages[s].started = true;
            let at = self.network.now() + delay;
            self.alarm(at, Purpose::StageReady { job: j as u32, stage: s as u32 });
        }
    }

    /// Gives free slots to waiting tasks.
    fn schedule(&mut self) {
        for slots in [Slots::Map, Slots::Reduce, Slots::Any] {
            let count = |free: &[u32; 2]| match slots {
                Slots::Map => free[0],
                Slots::Reduce => free[1],
                Slots::Any => free[0] + free[1],
            };
            let free_total: u32 = self.free_slots.iter().map(count).sum();
            if free_total == 0 {
                continue;
            }
            // Enough candidates for every free slot; among more, locality has little left to gain.
            let enough = 4 * free_total as usize + 64;
            let mut ids = Vec::new();
            let mut waiting = Vec::new();
            'jobs: for (j, job) in self.jobs.iter().enumerate().filter(|(_, j)| j.submitted && j.stages_left > 0) {
                let running = job.stages.iter().map(|s| s.running).sum();
                for (s, stage) in job.stages.iter().enumerate().filter(|(s, st)| st.ready && job.spec.stages[*s].slots == slots) {
                    for &t in &stage.waiting {
                        let hosts = stage.tasks[t as usize].blocks.clone();
                        let racks = hosts.iter().map(|&h| self.network.topology().rack(h)).collect();
                        let input = job.spec.stages[s].tasks[t as usize].input.base();
                        ids.push(TaskId { job: j as u32, stage: s as u32, task: t });
                        waiting.push(Waiting { job: j, running, hosts, racks, input });
                        if ids.len() >= enough {
                            break 'jobs;
                        }
                    }
                }
            }
            if ids.is_empty() {
                continue;
            }
            let mut free: Vec<Free> = (self.workers.iter())
                .map(|&host| Free { host, rack: self.network.topology().rack(host), slots: count(&self.free_slots[host as usize]) })
                .filter(|f| f.slots > 0)
                .collect();
            // Least loaded first, so that few tasks spread over many hosts.
            free.sort_by_key(|f| (std::cmp::Reverse(f.slots), f.host));
            for (i, host) in assign(self.plan.hadoop.scheduler, &waiting, &free) {
                self.launch(ids[i], host, slots);
            }
        }
    }

    fn launch(&mut self, id: TaskId, host: HostId, slots: Slots) {
        let free = &mut self.free_slots[host as usize];
        let kind = match slots {
            Slots::Map => 0,
            Slots::Reduce => 1,
            Slots::Any => usize::from(free[0] == 0),
        };
        free[kind] -= 1;
        let stage = &mut self.jobs[id.job as usize].stages[id.stage as usize];
        stage.waiting.retain(|&t| t != id.task);
        stage.running += 1;
        let task = &mut stage.tasks[id.task as usize];
        task.host = host;
        let start_up = self.jobs[id.job as usize].spec.stages[id.stage as usize].tasks[id.task as usize].start_up;
        let at = self.network.now() + start_up;
        self.alarm(at, Purpose::StartedUp(id));
    }

    fn spec(&self, id: TaskId) -> &Task {
        &self.jobs[id.job as usize].spec.stages[id.stage as usize].tasks[id.task as usize]
    }

    /// The task has started up: read its block, and begin to copy what earlier stages have produced.
    fn read(&mut self, id: TaskId) {
        let (host, blocks) = (self.task(id).host, self.task(id).blocks.clone());
        let input = self.spec(id).input.base();
        self.task(id).phase = Phase::Reading;
        if input > 0 {
            let rack = |h: HostId| self.network.topology().rack(h);
            let nearest = blocks.iter().copied().min_by_key(|&b| {
                if b == host {
                    0
                } else if rack(b) == rack(host) {
                    1
                } else {
                    2
                }
            });
            let from = nearest.unwrap_or(host);
            self.blocks_read[if from == host {
                0
            } else if rack(from) == rack(host) {
                1
            } else {
                2
            }] += 1;
            self.task(id).open_parts += 1;
            self.disk(from, input, Purpose::PartDone(id));
            if from != host {
                self.task(id).open_parts += 1;
                self.flow(from, host, input, Purpose::PartDone(id));
            }
        }
        let (j, s) = (id.job as usize, id.stage as usize);
        let sources = self.jobs[j].spec.stages[s].sources.clone();
        if self.spec(id).copied > Bytes::ZERO && !sources.is_empty() {
            let total: usize = sources.iter().map(|&p| self.jobs[j].stages[p].tasks.len()).sum();
            self.task(id).awaited = total;
            if self.jobs[j].spec.stages[s].copy_each_task {
                let ended: Vec<(usize, u32, HostId)> =
                    sources.iter().flat_map(|&p| self.jobs[j].stages[p].ended_on.iter().map(move |&(t, h)| (p, t, h))).collect();
                for (stage, task, from) in ended {
                    self.announce_output(id, stage, task, from);
                }
            } else {
                self.announce_hosts(id, &sources);
            }
            self.copy_more(id);
        }
        self.next_phase(id);
    }

    /// An ended task's output becomes available to a task that copies from each of them; shares follow the sizes of outputs.
    fn announce_output(&mut self, id: TaskId, stage: usize, source: u32, from: HostId) {
        let copied = u128::from(self.spec(id).copied.base());
        let before = &self.jobs[id.job as usize].stages[stage].outputs_before;
        let total = before[before.len() - 1];
        let bytes = if total == 0 {
            part(copied as u64, u64::from(source), before.len() as u64 - 1)
        } else {
            let upto = |i: usize| (copied * before[i] / total) as u64;
            upto(source as usize + 1) - upto(source as usize)
        };
        let task = self.task(id);
        task.awaited -= 1;
        if bytes > 0 {
            task.copies.push_back(Copy { from, bytes });
        }
    }

    /// Everything that a task copies, cut by the hosts on which the sources left their outputs.
    fn announce_hosts(&mut self, id: TaskId, sources: &[usize]) {
        let j = id.job as usize;
        let mut by_host: BTreeMap<HostId, u128> = BTreeMap::new();
        for &p in sources {
            for &(task, host) in &self.jobs[j].stages[p].ended_on {
                *by_host.entry(host).or_default() += u128::from(self.jobs[j].spec.stages[p].tasks[task as usize].shuffled.base());
            }
        }
        let total: u128 = by_host.values().sum();
        let copied = self.spec(id).copied.base();
        let (mut before, mut copies) = (0u128, Vec::new());
        if total > 0 {
            let upto = |sum: u128| (u128::from(copied) * sum / total) as u64;
            for (from, bytes) in by_host {
                copies.push(Copy { from, bytes: upto(before + bytes) - upto(before) });
                before += bytes;
            }
        }
        // Tasks begin with different hosts, as they do in Spark, where blocks are fetched in random order.
        let count = copies.len().max(1);
        copies.rotate_left(id.task as usize % count);
        let task = self.task(id);
        task.awaited = 0;
        task.copies.extend(copies.into_iter().filter(|c| c.bytes > 0));
    }

    fn copy_more(&mut self, id: TaskId) {
        let limit = self.plan.hadoop.parallel_copies;
        let host = self.task(id).host;
        while self.task(id).copying < limit {
            let Some(copy) = self.task(id).copies.pop_front() else { return };
            if copy.from == host {
                self.local_bytes += copy.bytes;
                continue;
            }
            self.task(id).copying += 1;
            self.flow(copy.from, host, copy.bytes, Purpose::CopyDone(id));
        }
    }

    /// Moves a task on when everything of its phase has ended.
    fn next_phase(&mut self, id: TaskId) {
        let task = self.task(id);
        if task.open_parts > 0 {
            return;
        }
        match task.phase {
            Phase::Reading if task.awaited == 0 && task.copying == 0 && task.copies.is_empty() => {
                task.phase = Phase::Computing;
                if self.spec(id).copied > Bytes::ZERO {
                    self.jobs[id.job as usize].stages[id.stage as usize].copied_at = Some(self.network.now());
                }
                let at = self.network.now() + self.spec(id).compute;
                self.alarm(at, Purpose::Computed(id));
            }
            Phase::Writing => {
                task.phase = Phase::Done;
                self.end_task(id);
            }
            _ => {}
        }
    }

    /// The task has computed: it leaves its output on its disk, or writes it to the distributed file system, whose copies
    /// are passed on from host to host.
    fn write(&mut self, id: TaskId) {
        let host = self.task(id).host;
        let (shuffled, output) = (self.spec(id).shuffled.base(), self.spec(id).output.base());
        self.task(id).phase = Phase::Writing;
        if shuffled > 0 {
            self.task(id).open_parts += 1;
            self.disk(host, shuffled, Purpose::PartDone(id));
        }
        if output > 0 {
            let copies = self.placement.copies_after(host, self.plan.hadoop.output_replication);
            for (i, &to) in copies.iter().enumerate() {
                self.task(id).open_parts += 1;
                self.disk(to, output, Purpose::PartDone(id));
                if i > 0 {
                    self.task(id).open_parts += 1;
                    self.flow(copies[i - 1], to, output, Purpose::PartDone(id));
                }
            }
        }
        self.next_phase(id);
    }

    fn end_task(&mut self, id: TaskId) {
        let (j, s) = (id.job as usize, id.stage as usize);
        self.tasks_done += 1;
        let host = self.task(id).host;
        let hadoop = &self.plan.hadoop;
        let free = &mut self.free_slots[host as usize];
        match self.jobs[j].spec.stages[s].slots {
            Slots::Map => free[0] += 1,
            Slots::Reduce => free[1] += 1,
            Slots::Any => free[usize::from(free[0] == hadoop.map_slots)] += 1,
        }
        let stage = &mut self.jobs[j].stages[s];
        stage.running -= 1;
        stage.done += 1;
        stage.ended_on.push((id.task, host));
        // Tasks that copy from each output hear of it.
        for c in 0..self.jobs[j].stages.len() {
            let spec = &self.jobs[j].spec.stages[c];
            if !spec.copy_each_task || !spec.sources.contains(&s) {
                continue;
            }
            for t in 0..self.jobs[j].stages[c].tasks.len() as u32 {
                let reader = TaskId { job: id.job, stage: c as u32, task: t };
                if self.task(reader).phase == Phase::Reading && self.task(reader).awaited > 0 {
                    self.announce_output(reader, s, id.task, host);
                    self.copy_more(reader);
                    self.next_phase(reader);
                }
            }
        }
        if self.jobs[j].stages[s].done == self.jobs[j].stages[s].tasks.len() {
            self.end_stage(j, s);
        }
        self.open_stages(j);
        self.schedule();
    }

    fn end_stage(&mut self, j: usize, s: usize) {
        let now = self.network.now();
        self.jobs[j].stages[s].ended_at = now;
        self.jobs[j].stages_left -= 1;
        if self.jobs[j].stages_left == 0 {
            self.jobs_left -= 1;
            let job = &self.jobs[j];
            let stages = job.spec.stages.iter().zip(&job.stages).map(|(spec, run)| (spec.name, run.ended_at)).collect();
            let shuffle = job.spec.stages.iter().zip(&job.stages).fold(Span::ZERO, |sum, (spec, run)| {
                let from = spec.sources.iter().map(|&s| job.stages[s].ended_at).max();
                sum + match (from, run.copied_at) {
                    (Some(from), Some(to)) if to > from => to.since(from),
                    _ => Span::ZERO,
                }
            });
            self.results.push(JobResult { name: job.spec.name.clone(), submit: job.spec.submit, end: now, stages, shuffle });
        } else {
            self.open_stages(j);
        }
    }
}
