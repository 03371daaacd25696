use bytes::Bytes;

/// What happens in a build.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildEvent<'a> {
    /// A step begins.
    Step {
        /// Its number, from 1 on.
        number: usize,
        /// The number of all steps.
        count: usize,
        /// The number of its line.
        line: usize,
        /// The step as it is written, on one line.
        text: &'a str,
        /// Whether it was done before, and nothing has changed.
        cached: bool,
    },
    /// A command prints to its standard output.
    Stdout(Bytes),
    /// A command prints to its standard error.
    Stderr(Bytes),
    /// All steps are done, and the disk image is written.
    Writing,
}
