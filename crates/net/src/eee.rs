//! When a link direction sleeps: the policies of Energy Efficient Ethernet (IEEE 802.3az; seed 000, sections II and III).
//!
//! Exact rules, the same in the cluster and on a single link:
//! - when the queue empties, after the stall timer if any, the port starts T_s, which is never aborted;
//! - frames that arrive during T_s wait and count toward the trigger; the holding timer runs from the first of them;
//! - waking starts at max(end of T_s, min(first arrival + holding time, arrival of the trigger-th frame)), and without
//!   coalescing at max(end of T_s, first arrival); frames that arrive during T_w or the burst join the burst;
//! - at time zero the link is in low-power idle (legacy: active).
//!
//! A [`Sleeper`] costs nothing while its queue is busy: everything is computed from the gap when the next frame arrives.

use crate::phy::{ACTIVE, LPI, Phy, SLEEPING, WAKING};
use joulepath_units::{Bytes, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// How much must wait before a coalescing port wakes early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// This many frames.
    Frames(u32),
    /// At least this many bytes on the wire.
    Bytes(u64),
}

/// An Energy Efficient Ethernet policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Never sleeps.
    Legacy,
    /// Sleeps and wakes in no time and with no energy: the bound of every policy.
    Ideal,
    /// Sleeps when idle for `stall`, wakes for the first frame.
    Eee {
        /// Idle time before sleep begins.
        stall: Span,
    },
    /// Holds frames while asleep, for at most `timer` or until `trigger` wait.
    Coalesce {
        /// Longest time that the first frame is held.
        timer: Span,
        /// What ends the holding early.
        trigger: Trigger,
    },
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected legacy, ideal, eee, eee:STALL (eee:50us), coalesce:TIMER/TRIGGER (coalesce:12us/10 or coalesce:12us/15KB), \
                        or the short form 12us10";
        let error = |why: &str| format!("found {text:?}: {why}; {expected}");
        let span = |s: &str| s.parse::<Span>().map_err(|e| format!("in the policy {text:?}: {e}"));
        let coalesce = |timer: &str, trigger: &str| {
            let timer = span(timer)?;
            let trigger = if trigger.bytes().all(|b| b.is_ascii_digit()) && !trigger.is_empty() {
                Trigger::Frames(trigger.parse().map_err(|_| error("the trigger is too large"))?)
            } else {
                let bytes: Bytes = trigger.parse().map_err(|e| format!("in the policy {text:?}: {e}"))?;
                Trigger::Bytes(bytes.base())
            };
            if matches!(trigger, Trigger::Frames(0) | Trigger::Bytes(0)) {
                return Err(error("a trigger of nothing never waits; use eee"));
            }
            Ok(Self::Coalesce { timer, trigger })
        };
        match text.trim().split_once(':') {
            Some(("eee", stall)) => Ok(Self::Eee { stall: span(stall)? }),
            Some(("coalesce", rest)) => {
                let (timer, trigger) = rest.split_once('/').ok_or_else(|| error("TIMER/TRIGGER is missing"))?;
                coalesce(timer.trim(), trigger.trim())
            }
            Some(_) => Err(error("there is no such policy")),
            None => match text.trim() {
                "legacy" => Ok(Self::Legacy),
                "ideal" => Ok(Self::Ideal),
                "eee" | "nopa" => Ok(Self::Eee { stall: Span::ZERO }),
                // The seeds' labels: 12us10, 1ms1000.
                short => {
                    let unit_end = short.find('s').filter(|_| short.starts_with(|c: char| c.is_ascii_digit()));
                    let (timer, trigger) = short.split_at(unit_end.ok_or_else(|| error("there is no such policy"))? + 1);
                    if trigger.is_empty() { Err(error("there is no such policy")) } else { coalesce(timer, trigger) }
                }
            },
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tight = |s: &dyn fmt::Display| s.to_string().replace(' ', "");
        match self {
            Self::Legacy => f.write_str("legacy"),
            Self::Ideal => f.write_str("ideal"),
            Self::Eee { stall } if *stall == Span::ZERO => f.write_str("eee"),
            Self::Eee { stall } => write!(f, "eee:{}", tight(stall)),
            Self::Coalesce { timer, trigger: Trigger::Frames(n) } => write!(f, "coalesce:{}/{n}", tight(timer)),
            Self::Coalesce { timer, trigger: Trigger::Bytes(n) } => write!(f, "coalesce:{}/{}", tight(timer), tight(&Bytes::from_base(*n))),
        }
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Policy {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-quantity": "Policy", "examples": ["eee", "eee:50us", "coalesce:12us/10"] })
    }
}

/// What a frame that finds its port idle has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Transmission may start then.
    Start(u64),
    /// The frame is held; the timer (set by the caller when `Some`) or a trigger releases it.
    Hold(Option<u64>),
    /// The frame is the trigger: it and all held frames may start then.
    Release(u64),
}

/// The sleep of one physical layer: one direction of a link, or both when they sleep together.
pub(crate) struct Sleeper {
    policy: Policy,
    wake: u64,
    sleep: u64,
    /// Still in the low-power idle of time zero.
    fresh: bool,
    /// Waking that was decided but not yet announced: its start and end.
    waking: Option<(u64, u64)>,
    /// End of the last waking.
    awake_at: u64,
    held_frames: u32,
    held_bytes: u64,
    /// Start and end of the T_s during or after which frames are held.
    held_sleep: (u64, u64),
    /// Distinguishes holding timers, of which old ones still come up.
    pub generation: u32,
    /// Times that low-power idle (or T_s) was left by waking.
    pub wakes: u64,
}

impl Sleeper {
    pub fn new(policy: Policy, phy: &Phy) -> Self {
        Self {
            policy,
            wake: phy.wake.base(),
            sleep: phy.sleep.base(),
            fresh: true,
            waking: None,
            awake_at: 0,
            held_frames: 0,
            held_bytes: 0,
            held_sleep: (0, 0),
            generation: 0,
            wakes: 0,
        }
    }

    /// The state at time zero.
    pub fn first_state(&self) -> u8 {
        if self.policy == Policy::Legacy { ACTIVE } else { LPI }
    }

    pub fn is_holding(&self) -> bool {
        self.held_frames > 0
    }

    /// A frame of `bytes` arrives at `now` at a port with nothing to send; every direction has been idle since `idle`.
    /// States are announced as (state, time), never later than `now`.
    pub fn arrive(&mut self, now: u64, idle: u64, bytes: u64, mut announce: impl FnMut(u8, u64)) -> Wake {
        if self.is_holding() {
            return self.hold(now, bytes, announce);
        }
        let stall = match self.policy {
            Policy::Legacy => return Wake::Start(now),
            Policy::Ideal => {
                if now > idle || self.fresh {
                    self.fresh = false;
                    self.wakes += 1;
                    announce(LPI, idle);
                    announce(ACTIVE, now);
                }
                return Wake::Start(now);
            }
            Policy::Eee { stall } => stall.base(),
            Policy::Coalesce { .. } => 0,
        };
        if !self.fresh && now <= idle + stall {
            // Still awake; with both directions together, possibly still waking for the other one.
            return Wake::Start(now.max(self.awake_at));
        }
        let sleep = if self.fresh { (0, 0) } else { (idle + stall, idle + stall + self.sleep) };
        if let Policy::Coalesce { timer, .. } = self.policy {
            self.held_sleep = sleep;
            return match self.hold(now, bytes, announce) {
                Wake::Hold(_) => Wake::Hold(Some(now + timer.base())),
                released => released,
            };
        }
        Wake::Start(self.leave(sleep, now, &mut announce))
    }

    fn hold(&mut self, now: u64, bytes: u64, mut announce: impl FnMut(u8, u64)) -> Wake {
        self.held_frames += 1;
        self.held_bytes += bytes;
        let Policy::Coalesce { trigger, .. } = self.policy else { unreachable!("only coalescing ports hold frames") };
        let full = match trigger {
            Trigger::Frames(n) => self.held_frames >= n,
            Trigger::Bytes(n) => self.held_bytes >= n,
        };
        if full { Wake::Release(self.release(now, &mut announce)) } else { Wake::Hold(None) }
    }

    /// Ends the holding at `now`; returns when the burst may start.
    pub fn release(&mut self, now: u64, announce: impl FnMut(u8, u64)) -> u64 {
        self.held_frames = 0;
        self.held_bytes = 0;
        self.generation = self.generation.wrapping_add(1);
        self.leave(self.held_sleep, now, announce)
    }

    /// Announces the sleep that ends because waking was asked for at `now`; returns the end of T_w.
    fn leave(&mut self, sleep: (u64, u64), now: u64, mut announce: impl FnMut(u8, u64)) -> u64 {
        self.announce_waking(now, &mut announce);
        if !self.fresh {
            announce(SLEEPING, sleep.0);
            if sleep.1 < now {
                announce(LPI, sleep.1);
            }
        }
        self.fresh = false;
        self.wakes += 1;
        let start = now.max(sleep.1);
        self.awake_at = start + self.wake;
        self.waking = Some((start, self.awake_at));
        self.awake_at
    }

    fn announce_waking(&mut self, until: u64, mut announce: impl FnMut(u8, u64)) {
        if let Some((start, end)) = self.waking.take() {
            if start <= until {
                announce(WAKING, start);
            }
            if end <= until {
                announce(ACTIVE, end);
            }
        }
    }

    /// Announces everything up to the end of the run; every direction has been (or will be) idle since `idle`.
    pub fn close(&mut self, end: u64, idle: u64, mut announce: impl FnMut(u8, u64)) {
        self.announce_waking(end, &mut announce);
        if self.fresh {
            return;
        }
        let mut upto = |state: u8, time: u64| {
            if time < end {
                announce(state, time);
            }
        };
        let sleep = match self.policy {
            _ if self.is_holding() => self.held_sleep,
            Policy::Legacy => return,
            Policy::Ideal => return upto(LPI, idle),
            Policy::Eee { stall } => (idle + stall.base(), idle + stall.base() + self.sleep),
            Policy::Coalesce { .. } => (idle, idle + self.sleep),
        };
        upto(SLEEPING, sleep.0);
        upto(LPI, sleep.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::phys;

    const US: u64 = 1_000_000;

    /// Runs single frames of 12 us at the given times over a 1000BASE-T sleeper; returns (start, states).
    fn run(policy: &str, arrivals: &[u64], end: u64) -> (Vec<u64>, Vec<(u8, u64)>) {
        let phy = phys().iter().find(|p| p.name == "1000BASE-T").unwrap();
        let mut sleeper = Sleeper::new(policy.parse().unwrap(), phy);
        let (mut starts, mut states, mut held, mut free, mut timer) = (vec![], vec![], 0usize, 0, None);
        let frame = 12 * US;
        for &now in arrivals.iter().chain([&u64::MAX]) {
            if let Some(due) = timer.filter(|&due| due <= now && held > 0) {
                free = sleeper.release(due, |s, t| states.push((s, t)));
                (0..std::mem::take(&mut held)).for_each(|_| (starts.push(free), free += frame).1);
            }
            if now == u64::MAX {
                break;
            }
            if now < free {
                starts.push(free);
                free += frame;
                continue;
            }
            match sleeper.arrive(now, free, 1500, |s, t| states.push((s, t))) {
                Wake::Start(start) => (starts.push(start), free = start + frame).1,
                Wake::Hold(due) => (held += 1, timer = due.or(timer)).1,
                Wake::Release(start) => {
                    held += 1;
                    free = start;
                    (0..std::mem::take(&mut held)).for_each(|_| (starts.push(free), free += frame).1);
                }
            }
        }
        sleeper.close(end, free, |s, t| states.push((s, t)));
        (starts, states)
    }

    #[test]
    fn standard_eee_finishes_its_sleep() {
        // Wakes 16.5 us from initial LPI, sends 12 us, sleeps 182 us although a frame comes after 10 us.
        let (starts, states) = run("eee", &[100 * US, 138_500_000], 1000 * US);
        assert_eq!(starts, [116_500_000, 128_500_000 + 182 * US + 16_500_000]);
        let done = starts[1] + 12 * US;
        let expected = [(WAKING, 100 * US), (ACTIVE, 116_500_000), (SLEEPING, 128_500_000), (WAKING, 310_500_000)];
        assert_eq!(states[..4], expected);
        assert_eq!(states[4..], [(ACTIVE, starts[1]), (SLEEPING, done), (LPI, done + 182 * US)]);
    }

    #[test]
    fn a_stall_timer_keeps_the_link_up() {
        let (starts, _) = run("eee:50us", &[0, 60 * US], 100 * US);
        assert_eq!(starts, [16_500_000, 60 * US]);
    }

    #[test]
    fn holding_counts_from_the_first_frame_even_inside_sleep() {
        // First burst ends at 28.5+12 us (timer 12 us); next frame arrives 10 us into T_s: the timer runs out inside T_s.
        let (starts, _) = run("12us10", &[0, 50_500_000], 1000 * US);
        assert_eq!(starts, [28_500_000, 40_500_000 + 182 * US + 16_500_000]);
    }

    #[test]
    fn the_trigger_wakes_early() {
        let (starts, states) = run("coalesce:1ms/3", &[0, 5 * US, 7 * US], 30 * US);
        assert_eq!(starts, [23_500_000, 35_500_000, 47_500_000]);
        assert_eq!(states, [(WAKING, 7 * US), (ACTIVE, 23_500_000)]);
    }

    #[test]
    fn policies_print_what_they_parse() {
        for text in ["legacy", "ideal", "eee", "eee:50us", "coalesce:12us/10", "coalesce:1.5ms/15KB"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!("1ms1000".parse::<Policy>().unwrap().to_string(), "coalesce:1ms/1000");
        for bad in ["eeee", "coalesce:12us", "coalesce:12/10", "12us", "coalesce:12us/0", "us10", "", "s", "eee:5"] {
            let message = bad.parse::<Policy>().unwrap_err();
            assert!(message.contains("expected") || message.contains("for example"), "{message}");
        }
    }
}
