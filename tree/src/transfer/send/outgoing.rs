use vmcell_wire::{
    files::{Content, TreeRecord},
    limits::MAX_INLINE,
};

use super::{
    Sent,
    packer::{Packer, Sink, WireOrGone},
};
use crate::transfer::{
    TreeError, TreeLimits, TreeProgress, budget::Budget, error::shown, meta::MetaBuf,
    progress::LeftOuts,
};

/// A stream of records on its way out: what every source needs.
pub(in crate::transfer) struct Outgoing<'s> {
    packer: Packer<'s>,
    pub(in crate::transfer) budget: Budget,
    progress: &'s mut dyn FnMut(TreeProgress<'_>),
    pub(in crate::transfer) left_outs: LeftOuts,
    pub(in crate::transfer) unchanged: u64,
    pub(in crate::transfer) lost_xattrs: u64,
}

impl<'s> Outgoing<'s> {
    pub(super) fn new(
        limits: TreeLimits,
        progress: &'s mut dyn FnMut(TreeProgress<'_>),
        sink: Sink<'s>,
    ) -> Self {
        Self {
            packer: Packer::new(sink),
            budget: Budget::new(limits),
            progress,
            left_outs: LeftOuts::default(),
            unchanged: 0,
            lost_xattrs: 0,
        }
    }

    /// Counts an entry, and tells of it.
    pub(in crate::transfer) fn begin(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.budget.entry(path)?;
        self.tell(path);
        Ok(())
    }

    pub(in crate::transfer) fn enter(
        &mut self,
        name: &[u8],
        meta: Option<&MetaBuf>,
        path: &[u8],
    ) -> Result<(), TreeError> {
        let meta = meta.map(MetaBuf::as_wire);
        self.record(&TreeRecord::Enter { name, meta }, path)
    }

    pub(in crate::transfer) fn leave(&mut self) -> Result<(), TreeError> {
        self.record(&TreeRecord::Leave, b"")
    }

    /// A file that is small enough for one record.
    pub(in crate::transfer) fn whole_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        content: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        debug_assert!(content.len() <= MAX_INLINE);
        self.budget.data(content.len() as u64, path)?;
        let content = Content::Whole(content);
        let meta = meta.as_wire();
        self.record(
            &TreeRecord::File {
                name,
                meta,
                content,
            },
            path,
        )
    }

    pub(in crate::transfer) fn begin_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError> {
        let content = Content::Parts { size };
        let meta = meta.as_wire();
        self.record(
            &TreeRecord::File {
                name,
                meta,
                content,
            },
            path,
        )
    }

    /// Bytes of the file that was begun: `fill` appends at most as many as it
    /// is told. Tells how many there were.
    pub(in crate::transfer) fn file_data(
        &mut self,
        most: u64,
        path: &[u8],
        fill: impl FnOnce(&mut Vec<u8>, usize) -> Result<(), TreeError>,
    ) -> Result<u64, TreeError> {
        let count = self.packer.raw(most, fill)?;
        self.budget.data(count, path)?;
        self.tell(path);
        Ok(count)
    }

    pub(in crate::transfer) fn hole(&mut self, bytes: u64, path: &[u8]) -> Result<(), TreeError> {
        if bytes == 0 {
            return Ok(());
        }
        self.budget.hole(bytes, path)?;
        self.record(&TreeRecord::Hole { bytes }, path)
    }

    pub(in crate::transfer) fn end_file(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.record(&TreeRecord::EndOfFile, path)
    }

    pub(in crate::transfer) fn symlink(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        target: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        let meta = meta.as_wire();
        self.record(&TreeRecord::Symlink { name, meta, target }, path)
    }

    pub(in crate::transfer) fn hard_link(
        &mut self,
        name: &[u8],
        to: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        self.record(&TreeRecord::HardLink { name, to }, path)
    }

    /// Sends what is left.
    pub(super) fn finish(mut self) -> Result<Sent, TreeError> {
        self.packer.flush()?;
        Ok(Sent {
            entries: self.budget.entries,
            bytes: self.budget.bytes,
            unchanged: self.unchanged,
            left_out: self.left_outs.count,
            first_left_out: self.left_outs.first,
            lost_xattrs: self.lost_xattrs,
        })
    }

    fn record(&mut self, record: &TreeRecord<'_>, path: &[u8]) -> Result<(), TreeError> {
        debug_assert!(record.is_valid(), "{record:?}");
        match self.packer.record(record) {
            Ok(()) => Ok(()),
            Err(WireOrGone::Gone) => Err(TreeError::Gone),
            // Names, targets and attributes are bounded, and together smaller
            // than a record.
            Err(WireOrGone::Wire) => Err(TreeError::LeftOut {
                path: shown(path),
                reason: "it does not fit into a record".to_owned(),
            }),
        }
    }

    fn tell(&mut self, path: &[u8]) {
        (self.progress)(TreeProgress {
            entries: self.budget.entries,
            bytes: self.budget.bytes,
            path,
        });
    }
}
