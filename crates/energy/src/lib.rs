//! The energy room: the only place that multiplies watts by time.
//!
//! A device announces the state that it enters (`ledger.enter(account, state, now)`); the ledger integrates exactly, in
//! attojoules, and carries for every account how its watts are known ([`Evidence`]). At [`Ledger::close`] the states of
//! each account tile the run without gap or overlap and the leaves sum to the totals; both are asserted.

mod evidence;
mod ledger;
mod profile;

pub use evidence::Evidence;
pub use ledger::{Account, AccountId, Ledger, StateTime};
pub use profile::PowerProfile;
