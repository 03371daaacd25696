//! Builds Cloud Hypervisor's command line for a machine. Pure, and tested by
//! its text.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::backend::{Machine, machine::KERNEL_ARGUMENTS, version::Version};

/// The resources of a VM that were found or created for it.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) kernel: PathBuf,
    pub(super) version: Version,
    /// The socket of its API, a path without a comma; `None` if it has none.
    pub(super) api: Option<PathBuf>,
}

// The descriptors that it inherits, in the order in which they are passed.
const DISK: &str = "/proc/self/fd/3";
const INITRAMFS: &str = "/proc/self/fd/4";

/// The socket of its vsock. The path is relative, so that each VM that is restored from the
/// same snapshot has its own, in the folder that it is started in.
pub(super) const VSOCK: &str = "v";

// The descriptors that it inherits to restore a VM: the disk as above, then the socket of its
// API and the files of the snapshot.
const API_FD: usize = 4;
pub(super) const FIRST_SAVED_FD: usize = 5;

/// The guest's vsock CID. It is private to each VMM, so all VMs can have the
/// same.
const GUEST_CID: u32 = 3;

/// The first version that takes the format of a disk as an option, which
/// prevents a guest from making its disk look like another format.
const WITH_IMAGE_TYPE: Version = Version(52, 0, 0);

pub(super) fn arguments(machine: &Machine, parts: &Parts) -> Vec<OsString> {
    let mut disk = format!("path={DISK}");
    if parts.version >= WITH_IMAGE_TYPE {
        disk.push_str(",image_type=raw");
    }
    if let Some(rate) = machine.quotas.disk_rate {
        // A tenth of the bytes of a second may pass at once; the time is in milliseconds.
        disk.push_str(&format!(
            ",bw_size={},bw_refill_time=100",
            rate.div_ceil(10)
        ));
    }
    let options: [(&str, OsString); 9] = [
        ("--kernel", parts.kernel.clone().into()),
        ("--initramfs", INITRAMFS.into()),
        ("--cmdline", kernel_arguments(machine).into()),
        ("--cpus", format!("boot={}", machine.vcpus()).into()),
        ("--memory", format!("size={}M", machine.memory_mib()).into()),
        ("--disk", disk.into()),
        ("--vsock", format!("cid={GUEST_CID},socket={VSOCK}").into()),
        ("--serial", "tty".into()),
        ("--console", "off".into()),
    ];
    let api = parts.api.as_deref().map(|path| ("--api-socket", api(path)));
    let options = options.into_iter().chain(api);
    options
        .flat_map(|(name, value)| [name.into(), value])
        .collect()
}

fn api(path: &Path) -> OsString {
    let mut option = OsString::from("path=");
    option.push(path);
    option
}

/// Returns the command line with which it waits for requests. Its API has a socket that is
/// there already, so nobody has to wait for it.
pub(super) fn restore_arguments() -> [String; 2] {
    ["--api-socket".to_owned(), format!("fd={API_FD}")]
}

fn kernel_arguments(machine: &Machine) -> String {
    // After a panic Cloud Hypervisor boots the machine again, and the agent ends it because
    // no host waits for it.
    match machine.kernel_arguments() {
        "" => KERNEL_ARGUMENTS.to_owned(),
        more => format!("{KERNEL_ARGUMENTS} {more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceleration::Acceleration;

    fn text(version: Version) -> String {
        text_with(version, None)
    }

    fn text_with(version: Version, api: Option<PathBuf>) -> String {
        let parts = Parts {
            kernel: "/kernel".into(),
            version,
            api,
        };
        let arguments = arguments(&Machine::sample(Acceleration::Kvm), &parts);
        let words: Vec<_> = arguments
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn the_whole_command_line() {
        assert_eq!(
            text(Version(52, 0, 0)),
            "\
--kernel /kernel
--initramfs /proc/self/fd/4
--cmdline console=ttyS0 quiet panic=-1 init_on_free=1 debug
--cpus boot=2
--memory size=256M
--disk path=/proc/self/fd/3,image_type=raw
--vsock cid=3,socket=v
--serial tty
--console off"
        );
    }

    #[test]
    fn a_disk_has_the_rate_of_its_quota() {
        let mut machine = Machine::sample(Acceleration::Kvm);
        machine.quotas = machine.quotas.disk_rate(10_000_000);
        let parts = Parts {
            kernel: "/kernel".into(),
            version: Version(52, 0, 0),
            api: None,
        };
        let arguments = arguments(&machine, &parts);
        let disk = "path=/proc/self/fd/3,image_type=raw,bw_size=1000000,bw_refill_time=100";
        assert!(arguments.iter().any(|word| word == disk), "{arguments:?}");
    }

    #[test]
    fn the_api_has_a_socket_if_it_is_on() {
        let text = text_with(Version(52, 0, 0), Some("/run/vmcell/0123/api".into()));
        assert!(
            text.ends_with("\n--console off\n--api-socket path=/run/vmcell/0123/api"),
            "{text}"
        );
    }

    #[test]
    fn older_versions_are_not_told_what_they_do_not_know() {
        assert!(text(Version(51, 1, 0)).contains("--disk path=/proc/self/fd/3\n"));
    }
}
