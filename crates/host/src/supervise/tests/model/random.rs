//! Reproducible randomness.

use std::time::Duration;

use wharf_spec::{ActivationState, BackoffSettings, ReconnectPolicy};

use crate::supervise::step::SupervisionPolicy;

pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x2545_F491_4F6C_DD1D))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0x7FB5_D329_728E_A185);
        mixed ^ (mixed >> 29)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Returns random settings of a server. Most are enabled.
    pub fn policy(&mut self) -> SupervisionPolicy {
        let seconds = |count| Some(Duration::from_secs(count));
        let attempts = [0, 1, 3, 5][self.below(4)];
        let backoff = ReconnectPolicy::Backoff(BackoffSettings { attempts, ..BackoffSettings::default() });
        let (enabled, disabled) = (ActivationState::Enabled, ActivationState::Disabled);
        SupervisionPolicy {
            admission: self.one_of(&[enabled, enabled, enabled, enabled, disabled, ActivationState::Unapproved]),
            lazy: self.below(5) < 2,
            reconnect: self.one_of(&[backoff, backoff, backoff, ReconnectPolicy::Off]),
            health_check: self.one_of(&[None, seconds(0), seconds(5), seconds(60)]),
            // Shorter timeouts would stop and start the server more than once a second under calls.
            idle_stop: self.one_of(&[None, seconds(1), seconds(5), seconds(600)]),
        }
    }
}
