/// What [`Vm::exec`](crate::Vm::exec) does with a command that prints more than
/// its [`max_output`](crate::Command::max_output).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Kill the command and fail with
    /// [`Error::OutputLimit`](crate::Error::OutputLimit), which holds what was
    /// collected by then.
    #[default]
    Kill,
    /// Keep the beginning and let the command run on.
    Stop,
    /// Keep the beginning and the end, half of the limit each, and let the
    /// command run on.
    HeadAndTail,
}
