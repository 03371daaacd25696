/// What [`Vm::exec`](crate::Vm::exec) does with a command that prints more than
/// its [`max_output`](crate::Command::max_output).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Ends the command: [`Error::OutputLimit`](crate::Error::OutputLimit),
    /// with what was collected by then.
    #[default]
    Kill,
    /// Keeps the beginning and lets the command go on.
    Stop,
    /// Keeps the beginning and the end, half of the limit each, and lets the
    /// command go on.
    HeadAndTail,
}
