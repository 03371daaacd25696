use vmcell_wire::{
    files::{Content, TreeRecord},
    limits::MAX_INLINE,
};

use super::{
    Sent,
    packer::{Packer, SendError, Sink},
};
use crate::transfer::{
    TreeError, TreeLimits, TreeProgress, budget::Budget, error::display_path, meta::MetaBuf,
    progress::SkippedEntries,
};

/// Writes a stream of records: limits, progress and counts for all sources.
pub(in crate::transfer) struct RecordSender<'s> {
    packer: Packer<'s>,
    pub(in crate::transfer) budget: Budget,
    progress: &'s mut dyn FnMut(TreeProgress<'_>),
    pub(in crate::transfer) skipped: SkippedEntries,
    pub(in crate::transfer) unchanged: u64,
    pub(in crate::transfer) lost_xattrs: u64,
}

impl<'s> RecordSender<'s> {
    pub(super) fn new(
        limits: TreeLimits,
        progress: &'s mut dyn FnMut(TreeProgress<'_>),
        sink: Sink<'s>,
    ) -> Self {
        Self {
            packer: Packer::new(sink),
            budget: Budget::new(limits),
            progress,
            skipped: SkippedEntries::default(),
            unchanged: 0,
            lost_xattrs: 0,
        }
    }

    /// Counts an entry, and reports the progress.
    pub(in crate::transfer) fn begin(&mut self, path: &[u8]) -> Result<(), TreeError> {
        self.budget.charge_entry(path)?;
        self.report_progress(path);
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

    /// Sends a file that fits into one record.
    pub(in crate::transfer) fn whole_file(
        &mut self,
        name: &[u8],
        meta: &MetaBuf,
        content: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError> {
        debug_assert!(content.len() <= MAX_INLINE);
        self.budget.charge_data(content.len() as u64, path)?;
        let content = Content::Inline(content);
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
        let content = Content::Chunked { size };
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

    /// Sends bytes of the current file: `fill` appends at most as many as its
    /// second argument. Returns how many there were.
    pub(in crate::transfer) fn file_data(
        &mut self,
        max: u64,
        path: &[u8],
        fill: impl FnOnce(&mut Vec<u8>, usize) -> Result<(), TreeError>,
    ) -> Result<u64, TreeError> {
        let count = self.packer.raw(max, fill)?;
        self.budget.charge_data(count, path)?;
        self.report_progress(path);
        Ok(count)
    }

    pub(in crate::transfer) fn hole(&mut self, bytes: u64, path: &[u8]) -> Result<(), TreeError> {
        if bytes == 0 {
            return Ok(());
        }
        self.budget.charge_hole(bytes, path)?;
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

    /// Sends the last piece.
    pub(super) fn finish(mut self) -> Result<Sent, TreeError> {
        self.packer.flush()?;
        Ok(Sent {
            entries: self.budget.entries,
            bytes: self.budget.bytes,
            unchanged: self.unchanged,
            skipped: self.skipped.count,
            first_skipped: self.skipped.first,
            lost_xattrs: self.lost_xattrs,
        })
    }

    fn record(&mut self, record: &TreeRecord<'_>, path: &[u8]) -> Result<(), TreeError> {
        debug_assert!(record.is_valid(), "{record:?}");
        match self.packer.record(record) {
            Ok(()) => Ok(()),
            Err(SendError::SinkClosed) => Err(TreeError::Aborted),
            // Names, targets and attributes have limits, and together they are
            // smaller than a record.
            Err(SendError::TooLarge) => Err(TreeError::NotTransferable {
                path: display_path(path),
                reason: "it does not fit into a record".to_owned(),
            }),
        }
    }

    fn report_progress(&mut self, path: &[u8]) {
        (self.progress)(TreeProgress {
            entries: self.budget.entries,
            bytes: self.budget.bytes,
            path,
        });
    }
}
