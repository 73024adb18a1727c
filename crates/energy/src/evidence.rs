//! How a joule is known.

use serde::{Deserialize, Serialize};

/// How the energy of an account is known. Totals over different kinds are [`Evidence::Mixed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Read from a meter.
    Measured,
    /// A model with a sourced profile.
    Modelled,
    /// A number that somebody wrote down without a source.
    Assumed,
    /// A total of more than one kind.
    Mixed,
}

impl Evidence {
    /// The kind of a total over `self` and `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        if self == other { self } else { Self::Mixed }
    }

    /// The word used on pages and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Modelled => "modelled",
            Self::Assumed => "assumed",
            Self::Mixed => "mixed",
        }
    }
}
