use alloc::{string::String, vec::Vec};

use rustix::io::Errno;

use crate::{clock::Moment, diagnostic::Diagnostic};

/// What is to be reported on the console.
#[derive(Default)]
pub(super) struct Reports {
    unsent: Vec<Diagnostic>,
    /// The last moments at which the policy was reported.
    period: Option<(Moment, usize)>,
}

/// How many refusals are reported in each period: a program that tries again and again
/// does not fill the console.
const MAX_REFUSALS: usize = 10;
const PERIOD_MS: u64 = 10_000;

impl Reports {
    /// Reports that the policy does not allow something.
    pub(super) fn not_allowed(&mut self, target: String, port: Option<u16>) {
        let now = Moment::now();
        let count = match self.period {
            Some((end, count)) if now < end => count,
            _ => {
                self.period = Some((now.after_ms(PERIOD_MS), 0));
                0
            }
        };
        if count >= MAX_REFUSALS {
            return;
        }
        if let Some((_, count)) = &mut self.period {
            *count = count.saturating_add(1);
        }
        self.unsent.push(Diagnostic::NotAllowed { target, port });
    }

    pub(super) fn resolver_file(&mut self, errno: Errno) {
        self.unsent.push(Diagnostic::ResolverFile(errno));
    }

    pub(super) fn take(&mut self) -> Vec<Diagnostic> {
        core::mem::take(&mut self.unsent)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unsent.is_empty()
    }
}
