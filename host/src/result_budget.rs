use crate::error::Error;

/// Limits how much of a result from the guest is collected in memory.
///
/// The guest decides how long a list is, and a hostile one never ends it. So
/// everything collected is counted here, and fails with [`Error::ResultLimit`]
/// when it exceeds a limit.
#[derive(Debug)]
pub(crate) struct ResultBudget {
    /// What is collected, for the error message.
    what: &'static str,
    /// What the caller can do instead.
    remedy: &'static str,
    items: Counter,
    bytes: Counter,
}

#[derive(Debug)]
struct Counter {
    used: usize,
    limit: usize,
}

impl ResultBudget {
    pub(crate) fn new(
        what: &'static str,
        items: usize,
        bytes: usize,
        remedy: &'static str,
    ) -> Self {
        let counter = |limit| Counter { used: 0, limit };
        Self {
            what,
            remedy,
            items: counter(items),
            bytes: counter(bytes),
        }
    }

    /// Counts one more item of this many bytes of memory.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Error> {
        if !self.items.add(1) {
            return Err(self.exceeded(&self.items, "entries"));
        }
        self.add_bytes(bytes)
    }

    /// Counts more bytes of an item that was counted before.
    pub(crate) fn add_bytes(&mut self, bytes: usize) -> Result<(), Error> {
        if !self.bytes.add(bytes) {
            return Err(self.exceeded(&self.bytes, "bytes of memory"));
        }
        Ok(())
    }

    fn exceeded(&self, counter: &Counter, unit: &'static str) -> Error {
        Error::ResultLimit {
            what: self.what,
            limit: counter.limit as u64,
            unit,
            remedy: self.remedy,
        }
    }
}

impl Counter {
    /// Adds to the counter, and returns whether it is within its limit.
    fn add(&mut self, count: usize) -> bool {
        self.used = self.used.saturating_add(count);
        self.used <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_limit_ends_it() {
        let mut budget = ResultBudget::new("a list", 2, 100, "ask for less");
        assert!(budget.add(50).is_ok() && budget.add(50).is_ok());
        let error = budget.add(0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a list has more than 2 entries: ask for less"
        );
        let mut budget = ResultBudget::new("a list", 2, 100, "ask for less");
        let error = budget.add(101).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a list has more than 100 bytes of memory: ask for less"
        );
        assert_eq!(error.code(), "result-limit");
    }
}
