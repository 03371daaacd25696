use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{AtFlags, Gid, Stat, Uid},
    io::Errno,
    process::{getegid, geteuid},
};
use vmcell_wire::files::Owner;

use crate::{user::User, worker::JobResult};

/// A uid and a gid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Ids {
    const ROOT: Self = Self { uid: 0, gid: 0 };

    pub(crate) fn of(status: &Stat) -> Self {
        Self {
            uid: status.st_uid,
            gid: status.st_gid,
        }
    }

    /// Sets the owner of an open file or directory. This clears its set-id bits, so
    /// permissions are set afterwards.
    pub(crate) fn chown(self, entry: BorrowedFd<'_>) -> Result<(), Errno> {
        let (uid, gid) = self.raw();
        rustix::fs::fchown(entry, uid, gid)
    }

    /// Sets the owner of an entry of any type that was opened with `O_PATH`.
    pub(crate) fn chown_path_fd(self, entry: BorrowedFd<'_>) -> Result<(), Errno> {
        let (uid, gid) = self.raw();
        rustix::fs::chownat(entry, c"", uid, gid, AtFlags::EMPTY_PATH)
    }

    fn raw(self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }
}

/// Decides who owns new entries.
pub(crate) struct NewOwner {
    rule: Rule,
    /// The ids of this process, which the kernel gives to new entries.
    own_ids: Ids,
}

enum Rule {
    OfDirectory,
    Given(Ids),
    OfRecord,
}

impl NewOwner {
    pub(crate) fn find(owner: Owner<'_>) -> JobResult<Self> {
        let rule = match owner {
            Owner::OfDirectory => Rule::OfDirectory,
            Owner::OfRecord => Rule::OfRecord,
            Owner::User(user) => Rule::Given(match User::find(user)? {
                None => Ids::ROOT,
                Some(user) => Ids {
                    uid: user.uid,
                    gid: user.gid,
                },
            }),
        };
        let own_ids = Ids {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
        };
        Ok(Self { rule, own_ids })
    }

    /// Returns the owner to set for a new entry of `directory`, or `None` if the
    /// kernel sets it already. `record` is the owner of the original.
    pub(crate) fn owner_for_new(&self, directory: &Stat, record: Option<Ids>) -> Option<Ids> {
        let ids = match self.rule {
            Rule::OfDirectory => Ids::of(directory),
            Rule::Given(ids) => ids,
            Rule::OfRecord => record.unwrap_or(Ids::ROOT),
        };
        let mut initial = self.own_ids;
        if directory.st_mode & SET_GROUP != 0 {
            initial.gid = directory.st_gid;
        }
        (ids != initial).then_some(ids)
    }

    /// Returns the owner to set for an entry that replaces another one, or `None` to
    /// keep the owner of that.
    pub(crate) fn owner_for_replaced(&self) -> Option<Ids> {
        self.owner_for_replaced_from(None)
    }

    /// Like [`owner_for_replaced`](Self::owner_for_replaced), with the owner of the
    /// original.
    pub(crate) fn owner_for_replaced_from(&self, record: Option<Ids>) -> Option<Ids> {
        match self.rule {
            Rule::OfDirectory => None,
            Rule::Given(ids) => Some(ids),
            Rule::OfRecord => Some(record.unwrap_or(Ids::ROOT)),
        }
    }

    /// Like [`owner_for_new`](Self::owner_for_new), with the directory's descriptor.
    pub(crate) fn owner_for_new_in(&self, directory: impl AsFd) -> Result<Option<Ids>, Errno> {
        Ok(self.owner_for_new(&rustix::fs::fstat(directory)?, None))
    }
}

/// In a directory with this bit, new entries get its group.
const SET_GROUP: u32 = 0o2000;
