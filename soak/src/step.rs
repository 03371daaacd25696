//! What is being done at the moment, to name what hangs.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

static STEPS: Mutex<Vec<Weak<str>>> = Mutex::new(Vec::new());

/// Something that is being done, until this is dropped.
pub(crate) struct Step {
    _name: Arc<str>,
}

impl Step {
    pub(crate) fn begin(name: impl fmt::Display) -> Self {
        let name: Arc<str> = name.to_string().into();
        let mut steps = STEPS.lock().unwrap_or_else(PoisonError::into_inner);
        steps.retain(|step| step.strong_count() > 0);
        steps.push(Arc::downgrade(&name));
        Self { _name: name }
    }
}

/// Returns what is being done by all scenarios.
pub(crate) fn running() -> String {
    let steps = STEPS.lock().unwrap_or_else(PoisonError::into_inner);
    let names: Vec<_> = steps.iter().filter_map(Weak::upgrade).collect();
    names.join(", ")
}
