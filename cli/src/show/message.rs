//! Messages of the programs themselves.

use std::{
    error::Error,
    io::{self, Write},
};

use serde_json::Value;
use vmcell::printable;

use super::{guest_colours, json};

/// Prints a message on standard error, prefixed with the program's name.
pub fn report(program: &str, text: &str) {
    let text = printable(text.as_bytes());
    // There is nowhere to report that standard error cannot be written.
    let _ = writeln!(io::stderr(), "{}{program}: {text}", guest_colours::reset());
}

/// Prints a JSON value to standard output.
pub fn print_json(value: &Value) {
    // A reader that has closed the pipe has read enough.
    let _ = writeln!(io::stdout(), "{}", json::lines(value));
}

/// Appends the causes of an error to its message.
pub fn with_causes(text: &str, error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    match causes.as_slice() {
        [] => text.to_owned(),
        causes => format!("{text} ({})", causes.join(": ")),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn causes_come_in_brackets_and_the_advice_stays_in_front() {
        let error = anyhow!("no disk").context("no file").context("stop it");
        let error: &(dyn Error + 'static) = error.as_ref();
        assert_eq!(with_causes("stop it", error), "stop it (no file: no disk)");
        let alone = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(with_causes("look", &alone), "look");
    }
}
