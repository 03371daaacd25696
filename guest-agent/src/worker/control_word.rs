/// State that the agent passes to a worker beside bytes, in one atomic word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlWord {
    /// The number of the job. A new number starts a new job.
    pub(crate) job: u32,
    /// No more input bytes will come.
    pub(crate) input_ended: bool,
    /// The host has cancelled the job.
    pub(crate) cancelled: bool,
}

const INPUT_ENDED: u32 = 1;
const CANCELLED: u32 = 2;
const JOB_SHIFT: u32 = 2;

impl ControlWord {
    /// The largest job number; the next one is 0.
    pub(crate) const MAX_JOB: u32 = u32::MAX >> JOB_SHIFT;

    pub(crate) fn to_bits(self) -> u32 {
        let input_ended = if self.input_ended { INPUT_ENDED } else { 0 };
        let cancelled = if self.cancelled { CANCELLED } else { 0 };
        (self.job & Self::MAX_JOB) << JOB_SHIFT | input_ended | cancelled
    }

    pub(crate) fn from_bits(bits: u32) -> Self {
        Self {
            job: bits >> JOB_SHIFT,
            input_ended: bits & INPUT_ENDED != 0,
            cancelled: bits & CANCELLED != 0,
        }
    }
}
