/// What the agent has to say to a worker beside bytes, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// The number of the job. A new number is a new job.
    pub(crate) job: u32,
    /// No more bytes will come.
    pub(crate) ended: bool,
    /// Nobody wants the job any more.
    pub(crate) cancelled: bool,
}

const ENDED: u32 = 1;
const CANCELLED: u32 = 2;
const JOB_SHIFT: u32 = 2;

impl Orders {
    /// So many jobs later a number comes again.
    pub(crate) const MAX_JOB: u32 = u32::MAX >> JOB_SHIFT;

    pub(crate) fn to_word(self) -> u32 {
        let ended = if self.ended { ENDED } else { 0 };
        let cancelled = if self.cancelled { CANCELLED } else { 0 };
        (self.job & Self::MAX_JOB) << JOB_SHIFT | ended | cancelled
    }

    pub(crate) fn from_word(word: u32) -> Self {
        Self {
            job: word >> JOB_SHIFT,
            ended: word & ENDED != 0,
            cancelled: word & CANCELLED != 0,
        }
    }
}
