use vmcell_wire::{ProcessMode, Start, Stdin};

/// Returns the start as a background process without input and timeout.
pub(crate) fn background<'a>(start: &Start<'a>) -> Start<'a> {
    Start {
        stdin: Stdin::Empty,
        mode: ProcessMode::Background,
        timeout_ms: 0,
        ..*start
    }
}
