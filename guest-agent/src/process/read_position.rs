/// Where a reader starts in an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadPosition {
    pub(crate) offset: u64,
    /// How many bytes may be sent from there.
    pub(crate) credit: u32,
    /// The size of the host's window, which bytes that it already has may
    /// partly occupy.
    pub(crate) size: u32,
}
