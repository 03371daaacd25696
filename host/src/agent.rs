//! The program of the guest agent.

use std::path::Path;

use vmcell_wire::boot::BOOT_FILE_MARKER;

use crate::error::{BootFailure, Error};

/// The agent that was built with this library.
pub(crate) const EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vmcell-agent"));

/// Reads an agent that the caller provides.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::BadFile {
        what: "agent",
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Changes the reason of a failed boot to [`BootFailure::OldAgent`] if the agent
/// is too old for versioned boot files. Such an agent only reports that the file
/// is malformed.
pub(crate) fn with_old_agent_reason(error: Error, agent: &[u8]) -> Error {
    match error {
        Error::Boot {
            reason: BootFailure::Ended,
            console,
        } if !reads_versioned_boot_files(agent) => Error::Boot {
            reason: BootFailure::OldAgent,
            console,
        },
        other => other,
    }
}

/// Returns whether an agent reads boot files that have a version.
fn reads_versioned_boot_files(agent: &[u8]) -> bool {
    let mark = BOOT_FILE_MARKER.as_bytes();
    agent.windows(mark.len()).any(|part| part == mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Vm, VmBuilder,
        backend::{Backend, BackendHealth, Backends, Launched, Machine, Qemu},
    };

    #[test]
    fn the_agent_that_is_built_with_the_library_is_marked() {
        assert!(reads_versioned_boot_files(EMBEDDED));
        assert!(!reads_versioned_boot_files(b"some other program"));
    }

    /// Alters a boot file.
    type Alter = fn(Vec<u8>) -> Vec<u8>;

    /// QEMU with altered boot files.
    #[derive(Debug)]
    struct Altered(Alter);

    impl Backend for Altered {
        fn name(&self) -> &str {
            "altered"
        }

        fn health(&self) -> BackendHealth {
            Qemu::default().health()
        }

        fn launch(&self, mut machine: Machine) -> Result<Launched, Error> {
            machine.alter_boot_file = Some(self.0);
            Qemu::default().launch(machine)
        }
    }

    fn with_boot_file(alter: Alter) -> VmBuilder {
        let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
        Vm::builder()
            .image(image)
            .memory_mib(128)
            .backends(Backends::default().with(Altered(alter)))
            .backend("altered")
    }

    /// As of a newer host: another generation, one more field, and a tail.
    fn newer(mut file: Vec<u8>) -> Vec<u8> {
        file[4..6].copy_from_slice(&9u16.to_le_bytes());
        let field = b"a field that nobody knows";
        let length = u32::from_le_bytes(file[8..12].try_into().unwrap());
        let length = length + u32::try_from(field.len()).unwrap();
        file[8..12].copy_from_slice(&length.to_le_bytes());
        file.extend(field);
        file.extend([0xff; 5000]);
        file
    }

    /// As of a newer host, with a generation that older agents must not read.
    fn too_new(mut file: Vec<u8>) -> Vec<u8> {
        file[4..8].copy_from_slice(&[9, 0, 9, 0]);
        file
    }

    /// As of a host from before boot files had versions.
    fn unversioned(file: Vec<u8>) -> Vec<u8> {
        file[12..].to_vec()
    }

    #[tokio::test]
    async fn an_agent_boots_with_the_boot_file_of_a_newer_host() {
        let vm = with_boot_file(newer).start().await.unwrap();
        assert!(vm.exec(["true"]).await.unwrap().success());
        vm.kill().await.unwrap();
    }

    #[tokio::test]
    async fn an_agent_says_why_a_boot_file_is_of_no_use_to_it() {
        let cases: [(Alter, &str); 3] = [
            (too_new, "is for agents that read generation 9"),
            (unversioned, "the host library is older than this agent"),
            (|file| file[..40].to_vec(), "is damaged"),
        ];
        for (alter, expected) in cases {
            let error = with_boot_file(alter).start().await.err().unwrap();
            let Error::Boot { reason, console } = &error else {
                panic!("{error:?}");
            };
            assert_eq!(*reason, BootFailure::Ended);
            assert!(console.contains(expected), "{console}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
