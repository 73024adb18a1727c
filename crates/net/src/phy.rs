//! Physical layers with Energy Efficient Ethernet, from `profiles/ethernet.toml`.

use joulepath_energy::{Evidence, PowerProfile};
use joulepath_units::{BitRate, Power, Span};
use serde::Deserialize;
use std::sync::LazyLock;

/// A physical layer: how fast it wakes and sleeps, and what a port draws while it does not sleep.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phy {
    /// Name in IEEE 802.3.
    pub name: String,
    /// Line rate.
    pub rate: BitRate,
    /// T_w: from low-power idle to active.
    pub wake: Span,
    /// T_s: from active to low-power idle.
    pub sleep: Span,
    /// Power of a port while active, sleeping (T_s) or waking (T_w).
    pub power: Power,
    /// How the power is known.
    pub evidence: Evidence,
    /// Where the numbers are from.
    pub source: String,
}

/// The states a port announces, in this order.
pub(crate) const ACTIVE: u8 = 0;
pub(crate) const SLEEPING: u8 = 1;
pub(crate) const LPI: u8 = 2;
pub(crate) const WAKING: u8 = 3;
pub(crate) const STATES: [&str; 4] = ["active", "sleeping", "lpi", "waking"];

impl Phy {
    /// Its power profile when low-power idle draws `lpi_power` of full power.
    #[must_use]
    pub fn profile(&self, lpi_power: f64) -> PowerProfile {
        let low = Power::from_base((self.power.base() as f64 * lpi_power).round() as u64);
        PowerProfile {
            name: self.name.clone(),
            states: STATES.to_vec(),
            power: vec![self.power, self.power, low, self.power],
            evidence: self.evidence,
            source: self.source.clone(),
        }
    }
}

/// The physical layers that are known by name.
#[must_use]
pub fn phys() -> &'static [Phy] {
    static PHYS: LazyLock<Vec<Phy>> = LazyLock::new(|| {
        #[derive(Deserialize)]
        struct File {
            phy: Vec<Phy>,
        }
        toml::from_str::<File>(include_str!("../../../profiles/ethernet.toml")).expect("the shipped profile parses").phy
    });
    &PHYS
}
