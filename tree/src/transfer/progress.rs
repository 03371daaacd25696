/// How far a tree has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeProgress<'a> {
    /// How many entries have begun.
    pub entries: u64,
    /// How many bytes of files have gone by.
    pub bytes: u64,
    /// The path of the entry that is being worked on, from the top. It may hold
    /// any bytes: see [`printable`](crate::printable).
    pub path: &'a [u8],
}

/// Is told how far a tree has come, from the thread that receives it.
pub type Tell<'a> = Box<dyn FnMut(TreeProgress<'_>) + Send + 'a>;

/// Something that was left out of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Its path from the top, any bytes.
    pub path: Vec<u8>,
    /// Why, safe to print.
    pub reason: String,
}

/// What was left out: how much, and the first of it by name.
#[derive(Debug, Default)]
pub(super) struct LeftOuts {
    pub(super) count: u64,
    pub(super) first: Vec<LeftOut>,
}

/// How many are told by name.
const TOLD: usize = 100;

impl LeftOuts {
    pub(super) fn add(&mut self, path: &[u8], reason: String) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push(LeftOut {
                path: path.to_vec(),
                reason,
            });
        }
    }
}
