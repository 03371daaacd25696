//! What is said in a program's own name.

use std::{
    error::Error,
    io::{self, Write},
};

use serde_json::Value;
use vmcell::printable;

use super::{guest_colours, json};

/// Says something on standard error.
pub fn say(program: &str, text: &str) {
    let text = printable(text.as_bytes());
    // Where nobody listens there is nothing to be done about it.
    let _ = writeln!(io::stderr(), "{}{program}: {text}", guest_colours::end());
}

/// Prints one object for machines.
pub fn print_json(value: &Value) {
    // A reader that has gone away has seen enough.
    let _ = writeln!(io::stdout(), "{}", json::lines(value));
}

/// What to do about an error, with its causes behind it.
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
