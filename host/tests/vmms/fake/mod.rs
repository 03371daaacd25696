//! A fake VMM without a guest: it reads its command line or config file, checks
//! what it is given, and speaks for the agent. It saves itself and is restored as
//! the documentation of Firecracker and of Cloud Hypervisor says.

mod agent;
mod api;
mod guest;
mod saved;
mod settings;

use std::{
    os::{fd::AsFd as _, unix::net::UnixListener},
    path::PathBuf,
    sync::{Arc, mpsc},
};

use vmcell_wire::boot::{BOOT_FILE, Boot, BootLink};

pub(crate) use self::api::STATE;
use self::{api::Api, guest::Guest, settings::VmSettings};

/// Environment variable: the arguments of the fake. Without it the fake is an
/// empty test.
pub(crate) const ARGUMENTS: &str = "VMCELL_FAKE_VMM_ARGUMENTS";

/// Environment variable: the root folder of the fake, as in a jail.
pub(crate) const ROOT: &str = "VMCELL_FAKE_VMM_ROOT";

/// Environment variable: the version of the fake.
pub(crate) const VERSION: &str = "VMCELL_FAKE_VMM_VERSION";

/// Environment variable: what the fake does wrong.
pub(crate) const FAULT: &str = "VMCELL_FAKE_VMM_FAULT";

/// The VMM that it stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Firecracker,
    CloudHypervisor,
}

/// The machine of a VM.
#[derive(Clone)]
struct Machine {
    /// The paths as the VMM was told them.
    disk: String,
    vsock: String,
    vcpus: u64,
    memory_mib: u64,
    guest: Arc<Guest>,
}

#[test]
fn a_vmm() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        return;
    };
    assert!(!has_fault("exit"), "this fake does not start");
    if arguments.contains("--kernel") || arguments.contains("--config-file") {
        return boot(&arguments);
    }
    let kind = match arguments.as_str() {
        "--api-socket fd=4" => Kind::CloudHypervisor,
        _ => Kind::Firecracker,
    };
    let listener = match kind {
        // The script has made descriptor 4 its standard input.
        Kind::CloudHypervisor => {
            let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            UnixListener::from(socket)
        }
        Kind::Firecracker => {
            let words: Vec<_> = arguments.split(' ').collect();
            let ["--api-sock", api, "--level", "Warning"] = words[words.len() - 4..] else {
                panic!("{arguments}");
            };
            UnixListener::bind(in_root(api)).unwrap()
        }
    };
    let (restored, restoring) = mpsc::channel();
    api::serve(
        listener,
        Api {
            kind,
            machine: None,
            restored: Some(restored),
        },
    );
    let (vsock, machine): (UnixListener, Machine) = restoring.recv().unwrap();
    let port = machine.guest.port();
    agent::serve(&vsock, &machine.guest, port, has_fault("connect"));
}

/// Boots a VM.
fn boot(arguments: &str) {
    let (kind, settings) = match arguments.contains("--config-file") {
        true => (Kind::Firecracker, VmSettings::from_config(arguments)),
        false => (
            Kind::CloudHypervisor,
            VmSettings::from_command_line(arguments),
        ),
    };
    println!("the guest's console: {}", settings.kernel_arguments);
    assert_eq!((settings.vcpus, settings.memory_mib), (2, 128));
    assert!(settings.kernel_arguments.contains("console=ttyS0"));
    settings.check_files();
    let archive = std::fs::read(&settings.initramfs).unwrap();
    let boot = Boot::from_file(boot_file(&archive)).unwrap();
    let BootLink::Vsock { port, ready_port } = boot.link else {
        panic!("{:?}", boot.link);
    };
    let guest = Arc::new(Guest::booted(boot.boot_id, port));
    // Like the real one, opens it before the VM boots.
    if let Some(api) = &settings.api {
        let machine = Machine {
            disk: settings.disk.clone(),
            vsock: settings.vsock.clone(),
            vcpus: settings.vcpus,
            memory_mib: settings.memory_mib,
            guest: guest.clone(),
        };
        api::serve(
            UnixListener::bind(api).unwrap(),
            Api {
                kind,
                machine: Some(machine),
                restored: None,
            },
        );
    }
    let listener = UnixListener::bind(in_root(&settings.vsock)).unwrap();
    agent::report_ready(&in_root(&settings.vsock), ready_port);
    agent::serve(&listener, &guest, port, false);
}

/// Returns whether the fake is to do this wrong.
fn has_fault(fault: &str) -> bool {
    std::env::var(FAULT).is_ok_and(|wanted| wanted == fault)
}

/// Returns where a path of the VMM is.
fn in_root(path: &str) -> PathBuf {
    PathBuf::from(format!("{}{path}", std::env::var(ROOT).unwrap_or_default()))
}

/// Returns the boot file, which is the last file of an archive.
fn boot_file(archive: &[u8]) -> &[u8] {
    let name = format!("{}\0", BOOT_FILE.trim_start_matches('/'));
    let at = archive
        .windows(name.len())
        .rposition(|word| word == name.as_bytes());
    let name_at = at.unwrap();
    let header = &archive[name_at - 110..name_at];
    let size = std::str::from_utf8(&header[54..62]).unwrap();
    let size = usize::from_str_radix(size, 16).unwrap();
    let contents = (name_at + name.len()).next_multiple_of(4);
    &archive[contents..contents + size]
}
