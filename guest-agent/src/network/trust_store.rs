//! The certificates that programs trust besides those of the image.
//!
//! The host writes whole files into `/run`, which is in memory, and the agent mounts them
//! over those of the image. So nothing of them stays on the disk.

use alloc::{ffi::CString, vec::Vec};

use rustix::{
    io::Errno,
    mount::{UnmountFlags, mount_bind, unmount},
};
use vmcell_wire::{Failure, FailureKind, Outcome, PackedStrings, Stage, TrustStore};

use crate::{agent::Agent, process::raw_errno, tasks::Tasks};

/// The files of the image over which others are mounted.
#[derive(Default)]
pub(crate) struct MountedFiles(Vec<CString>);

impl MountedFiles {
    fn mount(&mut self, pairs: PackedStrings<'_>) -> Result<(), Errno> {
        let mut paths = pairs.iter();
        while let Some(source) = paths.next() {
            let target = paths.next().ok_or(Errno::INVAL)?;
            mount_bind(source, target)?;
            self.0.push(target.into());
        }
        Ok(())
    }

    /// Shows the files of the image again. Programs keep those that they have open.
    fn unmount(&mut self) {
        for target in self.0.drain(..).rev() {
            // Fails if root of the guest has done it before.
            let _ = unmount(&*target, UnmountFlags::DETACH);
        }
    }
}

impl Agent {
    pub(crate) fn set_trust_store(
        &mut self,
        store: &TrustStore<'_>,
    ) -> Result<Outcome<'static>, Failure<'static>> {
        self.tasks.restore_trust_store();
        let mounted = self.tasks.trust_store.mount(store.mounts);
        if let Err(errno) = mounted {
            self.tasks.restore_trust_store();
            if errno == Errno::INVAL {
                let text = "a file of the trust store has no place";
                return Err(Failure::new(FailureKind::Invalid, Stage::Request, text));
            }
            let text = "the trust store cannot be mounted";
            return Err(Failure::from_errno(raw_errno(errno), Stage::Request, text));
        }
        self.tasks.processes.set_common_env(store.env);
        Ok(Outcome::Done)
    }
}

impl Tasks {
    /// Gives programs the trust store of the image.
    pub(crate) fn restore_trust_store(&mut self) {
        self.trust_store.unmount();
        self.processes.set_common_env(PackedStrings::default());
    }
}
