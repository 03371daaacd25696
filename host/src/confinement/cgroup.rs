use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use crate::{
    backend::{RunFolder, cgroup_mount_point},
    error::Error,
};

/// A cgroup v2 of one VMM.
#[derive(Debug)]
pub(super) struct VmmCgroup {
    pub(super) directory: File,
    /// What it limits, for people.
    pub(super) limits: String,
    path: PathBuf,
    /// Removes the cgroup when this is dropped, or after a crash.
    _folder: RunFolder,
}

/// What the cgroup of a VMM limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct CgroupLimits {
    /// The memory of the guest.
    pub(super) memory_mib: u32,
    pub(super) vcpus: u32,
    /// The processor time per second that was asked for, in thousandths of a processor. It must
    /// be limited then.
    pub(super) cpu_milli: Option<u32>,
}

/// A cgroup whose children can have limits, and that this user may change.
#[derive(Debug)]
struct Parent {
    path: PathBuf,
    /// The controllers of its children.
    controllers: Vec<String>,
}

/// The controllers that a cgroup is made for. With `cpu` it limits processor time too.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

const CPU: &str = "cpu";

/// The most memory of a VMM beyond that of its guest, in MiB. QEMU has up to a gigabyte of
/// translated code if it emulates the processor.
const MEMORY_BEYOND_GUEST_MIB: u32 = 2048;

/// The most threads of a VMM.
const MAX_THREADS: u32 = 512;

/// The processor time of a VMM beyond that of its virtual processors, in thousandths of a
/// processor: for the threads that read and write.
const CPU_BEYOND_VCPUS_MILLI: u32 = 1000;

impl VmmCgroup {
    /// Creates it, or returns why there is none. A VM may have several, with names of their own.
    pub(super) fn create(id: &str, name: &str, limits: CgroupLimits) -> Result<Self, String> {
        let root = cgroup_mount_point().ok_or("there is no cgroup v2 hierarchy")?;
        let ours = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let ours = ours.lines().find_map(|line| line.strip_prefix("0::/"));
        let ours = root.join(ours.ok_or("this program has no cgroup")?);
        let parent = Parent::find(&root, &ours, limits.cpu_milli.is_some())?;
        let path = parent.path.join(format!("vmcell-{id}.{name}"));
        let folder = folder(&format!("{id}.{name}"), &path).map_err(|error| error.to_string())?;
        let failed = |error: io::Error| format!("{} cannot be made: {error}", path.display());
        fs::create_dir(&path).map_err(failed)?;
        let limits = limits.set(&path, &parent).map_err(failed)?;
        Ok(Self {
            directory: File::open(&path).map_err(failed)?,
            limits,
            path,
            _folder: folder,
        })
    }

    /// Opens the file through which a process enters it.
    pub(super) fn members(&self) -> io::Result<File> {
        File::options()
            .write(true)
            .open(self.path.join("cgroup.procs"))
    }
}

/// Creates the folder that removes the cgroup.
fn folder(name: &str, cgroup: &Path) -> Result<RunFolder, Error> {
    let folder = RunFolder::create(&RunFolder::base(), name)?;
    folder.remove_cgroup_on_drop(cgroup)?;
    Ok(folder)
}

impl CgroupLimits {
    /// Sets the limits of a new child. Returns what it limits, for people.
    fn set(self, path: &Path, parent: &Parent) -> io::Result<String> {
        let mut texts = Vec::new();
        if parent.has("memory") {
            let memory_mib = self.memory_mib.saturating_add(MEMORY_BEYOND_GUEST_MIB);
            let bytes = u64::from(memory_mib) << 20;
            fs::write(path.join("memory.max"), bytes.to_string())?;
            texts.push(format!("{memory_mib} MiB of memory"));
        }
        if parent.has("pids") {
            fs::write(path.join("pids.max"), MAX_THREADS.to_string())?;
            texts.push(format!("{MAX_THREADS} threads"));
        }
        if parent.has(CPU) {
            let milli = self.cpu_milli();
            fs::write(path.join("cpu.max"), cpu_max(milli))?;
            texts.push(format!("{} of a processor", percent(milli)));
        } else {
            texts.push(format!(
                "processor time is not limited: {} has no controller cpu for its children",
                parent.path.display()
            ));
        }
        Ok(texts.join(", "))
    }

    fn cpu_milli(self) -> u32 {
        let of_vcpus = self.vcpus.saturating_mul(1000);
        let default = of_vcpus.saturating_add(CPU_BEYOND_VCPUS_MILLI);
        self.cpu_milli.unwrap_or(default)
    }
}

/// Returns the text of `cpu.max` for so many thousandths of a processor: microseconds of processor
/// time in a period of 100 ms.
pub(crate) fn cpu_max(milli: u32) -> String {
    format!("{} 100000", u64::from(milli) * 100)
}

fn percent(milli: u32) -> String {
    match milli % 10 {
        0 => format!("{}%", milli / 10),
        tenth => format!("{}.{tenth}%", milli / 10),
    }
}

impl Parent {
    /// Returns the nearest cgroup from `ours` up to `root` that lets its children have limits,
    /// and that this user may change; one with a limit of processor time if there is one. systemd
    /// gives each user one.
    fn find(root: &Path, ours: &Path, needs_cpu: bool) -> Result<Self, String> {
        let above = ours.ancestors().take_while(|path| path.starts_with(root));
        let changeable: Vec<_> = above
            .filter(|path| may_change(path))
            .map(Self::read)
            .collect();
        let has_all = |parent: &&Self, wanted: &[&str]| wanted.iter().all(|name| parent.has(name));
        let wanted: &[&str] = match needs_cpu {
            true => &[CPU],
            false => &CONTROLLERS,
        };
        let with_all = changeable
            .iter()
            .find(|parent| has_all(parent, &CONTROLLERS) && parent.has(CPU));
        let found = with_all.or_else(|| changeable.iter().find(|parent| has_all(parent, wanted)));
        let found = found.map(|parent| Self {
            path: parent.path.clone(),
            controllers: parent.controllers.clone(),
        });
        found.ok_or_else(|| {
            format!(
                "no cgroup above this program has {} for its children and may be changed by this \
                 user: start it with `systemd-run --user --scope -p Delegate=yes`",
                wanted.join(" and ")
            )
        })
    }

    fn read(path: &Path) -> Self {
        let enabled = fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
        Self {
            path: path.to_owned(),
            controllers: enabled.split_whitespace().map(str::to_owned).collect(),
        }
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }
}

/// Whether this user may create cgroups in one, and move its processes into them.
fn may_change(cgroup: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may_write(cgroup) && may_write(&cgroup.join("cgroup.procs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates folders that look like cgroups, with these controllers for their children.
    fn hierarchy(cgroups: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, controllers) in cgroups {
            let path = root.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("cgroup.subtree_control"), controllers).unwrap();
            fs::write(path.join("cgroup.procs"), "").unwrap();
        }
        root
    }

    const LIMITS: CgroupLimits = CgroupLimits {
        memory_mib: 1024,
        vcpus: 2,
        cpu_milli: None,
    };

    /// Sets limits below the parent that is found, and returns `cpu.max` and the description.
    fn limited(root: &Path, limits: CgroupLimits) -> (Option<String>, String) {
        let parent = Parent::find(root, &root.join("user/app"), limits.cpu_milli.is_some());
        let parent = parent.unwrap();
        let child = parent.path.join("child");
        fs::create_dir(&child).unwrap();
        let text = limits.set(&child, &parent).unwrap();
        (fs::read_to_string(child.join("cpu.max")).ok(), text)
    }

    #[test]
    fn by_default_a_vm_has_its_virtual_processors_and_one_more() {
        let root = hierarchy(&[
            ("", "cpu memory pids\n"),
            ("user", "cpu io memory pids\n"),
            ("user/app", ""),
        ]);
        let (cpu_max, text) = limited(root.path(), LIMITS);
        assert_eq!(cpu_max.as_deref(), Some("300000 100000"));
        assert_eq!(text, "3072 MiB of memory, 512 threads, 300% of a processor");
    }

    #[test]
    fn processor_time_is_limited_as_it_was_asked_for() {
        let root = hierarchy(&[("user", "cpu memory pids\n"), ("user/app", "")]);
        let limits = CgroupLimits {
            cpu_milli: Some(515),
            ..LIMITS
        };
        let (cpu_max, text) = limited(root.path(), limits);
        assert_eq!(cpu_max.as_deref(), Some("51500 100000"));
        assert!(text.ends_with("51.5% of a processor"), "{text}");
    }

    #[test]
    fn a_cgroup_without_the_controller_says_so_and_is_an_error_if_it_was_asked_for() {
        let root = hierarchy(&[("user", "memory pids\n"), ("user/app", "")]);
        let (cpu_max, text) = limited(root.path(), LIMITS);
        assert_eq!(cpu_max, None);
        assert!(text.contains("processor time is not limited"), "{text}");
        let error = Parent::find(root.path(), &root.path().join("user/app"), true).unwrap_err();
        assert!(
            error.starts_with("no cgroup above this program has cpu "),
            "{error}"
        );
    }

    #[test]
    fn one_further_up_with_processor_time_is_preferred() {
        let root = hierarchy(&[("user", "cpu memory pids\n"), ("user/app", "memory pids\n")]);
        let (cpu_max, _) = limited(root.path(), LIMITS);
        assert!(cpu_max.is_some());
    }
}
