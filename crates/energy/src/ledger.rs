//! Accounts of devices, integrated exactly.

use crate::{Evidence, PowerProfile};
use joulepath_units::{Energy, Instant, Span};

/// The most states that a device can have.
const MAX_STATES: usize = 4;

/// A handle to an account of one ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountId(u32);

#[derive(Clone, Copy)]
struct Running {
    since: u64,
    state: u8,
    profile: u16,
    group: u16,
    time: [u64; MAX_STATES],
    entries: [u32; MAX_STATES],
}

/// Time and energy of one state of a closed account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTime {
    /// Name of the state.
    pub state: &'static str,
    /// Time spent in it.
    pub time: Span,
    /// How often it was entered.
    pub entries: u64,
    /// Energy used in it.
    pub energy: Energy,
}

/// A closed account: one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Name of the device.
    pub name: String,
    /// The class it is summed under.
    pub group: String,
    /// Name of its power profile.
    pub profile: String,
    /// How its power is known.
    pub evidence: Evidence,
    /// Its states; their times tile the run.
    pub states: Vec<StateTime>,
    /// Their sum.
    pub energy: Energy,
}

/// All accounts of a run.
///
/// ```
/// use joulepath_energy::{Evidence, Ledger, PowerProfile};
/// use joulepath_units::{Instant, Power, Span};
/// let mut ledger = Ledger::default();
/// let profile = ledger.profile(PowerProfile {
///     name: "lamp".into(), states: vec!["off", "on"], power: vec![Power::ZERO, "60 W".parse().unwrap()],
///     evidence: Evidence::Assumed, source: "its box".into(),
/// });
/// let lamp = ledger.open("lamp", "lights", profile, 0);
/// ledger.enter(lamp, 1, Instant::from_ps(500_000_000_000));
/// let accounts = ledger.close(Instant::from_ps(1_000_000_000_000));
/// assert_eq!(accounts[0].energy.joules(), 30.0);
/// ```
#[derive(Default)]
pub struct Ledger {
    running: Vec<Running>,
    names: Vec<String>,
    groups: Vec<String>,
    profiles: Vec<PowerProfile>,
}

impl Ledger {
    /// Registers a power profile for [`Ledger::open`].
    ///
    /// # Panics
    /// When the profile does not have one to four states with one power each.
    pub fn profile(&mut self, profile: PowerProfile) -> usize {
        assert!((1..=MAX_STATES).contains(&profile.states.len()) && profile.states.len() == profile.power.len());
        self.profiles.push(profile);
        self.profiles.len() - 1
    }

    /// Opens an account for a device that is in `state` at time zero.
    pub fn open(&mut self, name: impl Into<String>, group: &str, profile: usize, state: u8) -> AccountId {
        let group = self.groups.iter().position(|g| g == group).unwrap_or_else(|| {
            self.groups.push(group.to_string());
            self.groups.len() - 1
        });
        let mut entries = [0; MAX_STATES];
        entries[state as usize] = 1;
        self.running.push(Running { since: 0, state, profile: profile as u16, group: group as u16, time: [0; MAX_STATES], entries });
        self.names.push(name.into());
        AccountId((self.running.len() - 1) as u32)
    }

    /// The device enters `state` at `now`. Announcements may lag behind the clock, but run forward for each account.
    #[inline]
    pub fn enter(&mut self, account: AccountId, state: u8, now: Instant) {
        let running = &mut self.running[account.0 as usize];
        debug_assert!(now.ps() >= running.since, "a device cannot enter a state before it entered the last one");
        running.time[running.state as usize] += now.ps() - running.since;
        running.entries[state as usize] += 1;
        running.state = state;
        running.since = now.ps();
    }

    /// Ends every account at `end` and integrates.
    ///
    /// # Panics
    /// When an account was announced beyond `end`, or its states do not tile the run.
    #[must_use]
    pub fn close(mut self, end: Instant) -> Vec<Account> {
        let mut accounts = Vec::with_capacity(self.running.len());
        for (running, name) in self.running.iter_mut().zip(self.names) {
            assert!(running.since <= end.ps(), "{name} was announced beyond the end of the run");
            running.time[running.state as usize] += end.ps() - running.since;
            assert_eq!(running.time.iter().sum::<u64>(), end.ps(), "the states of {name} tile the run");
            let profile = &self.profiles[running.profile as usize];
            let states: Vec<StateTime> = (profile.states.iter().zip(&profile.power).enumerate())
                .map(|(i, (&state, power))| StateTime {
                    state,
                    time: Span::from_base(running.time[i]),
                    entries: u64::from(running.entries[i]),
                    energy: Energy::from_base(u128::from(power.base()) * u128::from(running.time[i])),
                })
                .collect();
            let energy = states.iter().fold(Energy::ZERO, |sum, s| sum + s.energy);
            accounts.push(Account {
                name,
                group: self.groups[running.group as usize].clone(),
                profile: profile.name.clone(),
                evidence: profile.evidence,
                states,
                energy,
            });
        }
        accounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_state() -> PowerProfile {
        let power = ["1 W", "3 uW"].map(|p| p.parse().unwrap()).to_vec();
        PowerProfile { name: "x".into(), states: vec!["a", "b"], power, evidence: Evidence::Modelled, source: String::new() }
    }

    #[test]
    fn integrates_exactly() {
        let mut ledger = Ledger::default();
        let profile = ledger.profile(two_state());
        let id = ledger.open("d", "g", profile, 0);
        ledger.enter(id, 1, Instant::from_ps(7));
        ledger.enter(id, 0, Instant::from_ps(7));
        ledger.enter(id, 1, Instant::from_ps(10));
        let account = &ledger.close(Instant::from_ps(31))[0];
        assert_eq!(account.states[0].time, Span::from_base(10));
        assert_eq!(account.states[1].time, Span::from_base(21));
        assert_eq!(account.energy, Energy::from_base(10_000_000 + 63));
        assert_eq!((account.states[0].entries, account.states[1].entries), (2, 2));
    }

    #[test]
    #[should_panic(expected = "announced beyond the end")]
    fn refuses_an_end_in_the_past() {
        let mut ledger = Ledger::default();
        let profile = ledger.profile(two_state());
        let id = ledger.open("d", "g", profile, 0);
        ledger.enter(id, 1, Instant::from_ps(7));
        let _ = ledger.close(Instant::from_ps(6));
    }
}
