use std::{
    fs::{self, File},
    io,
    os::unix::fs::chown,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, access},
    process::geteuid,
};
use vmcell_wire::namespaces::IdMapping;

use crate::{backend::RunFolder, confinement::cpu_max, error::Error, quotas::Quotas};

/// A cgroup v2 for one VM, delegated to the root user of its namespaces.
#[derive(Debug)]
pub(super) struct Cgroup {
    pub(super) directory: File,
    /// Removes the cgroup when this is dropped, or after a crash.
    pub(super) folder: RunFolder,
}

/// The files that the delegatee of a cgroup must be able to write: cgroups(7).
const DELEGATED: [&str; 4] = [
    ".",
    "cgroup.procs",
    "cgroup.threads",
    "cgroup.subtree_control",
];

impl Cgroup {
    /// Creates it. Returns `None` if this program may not create cgroups; the
    /// VM then runs without one.
    ///
    /// With a limit of processor time, in thousandths of a processor, there must be one. Only
    /// this program can change that.
    pub(super) fn make(
        id: &str,
        ids: IdMapping,
        cpu_milli: Option<u32>,
    ) -> Result<Option<Self>, Error> {
        let Some(parent) = parent() else {
            return match cpu_milli {
                None => Ok(None),
                Some(_) => Err(cannot_limit("this user may not create cgroups (version 2)")),
            };
        };
        let path = parent.join(format!("vmcell-{id}"));
        let folder = RunFolder::create(&RunFolder::base(), id)?;
        folder.remove_cgroup_on_drop(&path)?;
        match make(&path, ids) {
            Ok(directory) => {
                if let Some(milli) = cpu_milli {
                    let limited = fs::write(path.join("cpu.max"), cpu_max(milli));
                    limited.map_err(|error| {
                        let parent = parent.display();
                        cannot_limit(format!(
                            "{parent} has no controller cpu for its children: {error}"
                        ))
                    })?;
                }
                Ok(Some(Self { directory, folder }))
            }
            Err(error) if cpu_milli.is_some() => Err(cannot_limit(format!(
                "{} cannot be made: {error}",
                path.display()
            ))),
            Err(error) => {
                tracing::debug!(%error, cgroup = %path.display(), "cannot be made");
                Ok(None)
            }
        }
    }
}

fn cannot_limit(reason: impl Into<String>) -> Error {
    Error::Quota {
        quota: Quotas::CPU_RATE,
        reason: reason.into(),
    }
}

fn make(path: &Path, ids: IdMapping) -> io::Result<File> {
    fs::create_dir(path)?;
    if let IdMapping::Range { first, .. } = ids {
        for name in DELEGATED {
            chown(path.join(name), Some(first), Some(first))?;
        }
    }
    File::open(path)
}

/// Returns the directory where this user may create cgroups. For root it is the
/// root of the hierarchy, the only cgroup that can have processes and still
/// delegate its controllers. For other users it is their own cgroup, if that
/// was delegated to them.
fn parent() -> Option<PathBuf> {
    let root = mount_point()?;
    let parent = match geteuid().is_root() {
        true => root,
        false => {
            let ours = fs::read_to_string("/proc/self/cgroup").ok()?;
            let ours = ours.lines().find_map(|line| line.strip_prefix("0::/"))?;
            root.join(ours)
        }
    };
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    (may_write(&parent) && may_write(&parent.join("cgroup.procs"))).then_some(parent)
}

/// Returns where the cgroup v2 hierarchy is mounted.
pub(crate) fn mount_point() -> Option<PathBuf> {
    mounted_at(&fs::read_to_string("/proc/self/mounts").ok()?)
}

/// Same, from the text of proc_pid_mounts(5).
fn mounted_at(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let path = fields.next()?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_wherever_it_is_mounted() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = mounted_at(mounts);
        assert_eq!(found, Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mounted_at("proc /proc proc rw 0 0\n"), None);
    }
}
