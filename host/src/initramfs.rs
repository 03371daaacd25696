//! The initramfs: a cpio archive with the agent and its boot file.
//!
//! The format is "newc", as in the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`: a header of
//! 110 characters, the name, the contents, each padded to four bytes.

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const OWNER_READ_ONLY: u32 = 0o100_400;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// Returns the archive with everything the kernel needs to start the agent.
///
/// The devices are needed before the agent has mounted `/dev`: the kernel opens
/// the console for PID 1, and Rust's runtime opens `/dev/null`.
pub(crate) fn initramfs(agent: &[u8], boot_file: &[u8]) -> Vec<u8> {
    let mut archive = Archive {
        bytes: Vec::with_capacity(agent.len() + boot_file.len() + 4096),
        entries: 0,
    };
    archive.add("dev", DIRECTORY, (0, 0), &[]);
    archive.add("dev/console", CHARACTER_DEVICE, (5, 1), &[]);
    archive.add("dev/null", CHARACTER_DEVICE, (1, 3), &[]);
    archive.add("init", EXECUTABLE, (0, 0), agent);
    let name = vmcell_wire::boot::BOOT_FILE.trim_start_matches('/');
    archive.add(name, OWNER_READ_ONLY, (0, 0), boot_file);
    archive.finish()
}

struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let fields = [
            self.entries, // inode
            mode,
            0, // user
            0, // group
            1, // links
            0, // modification time
            contents.len() as u32,
            0, // device of the file system
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0, // checksum, unused in this format
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        let length = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(length, 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use super::*;

    /// Compares with cpio(1), the standard tool for these archives.
    #[test]
    fn cpio_reads_it() {
        let archive = initramfs(b"agent", b"boot");
        let mut cpio = Command::new("cpio")
            .args(["--list", "--verbose", "--numeric-uid-gid"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        cpio.stdin.take().unwrap().write_all(&archive).unwrap();
        let listing = cpio.wait_with_output().unwrap();
        assert!(listing.status.success());
        let listing = String::from_utf8(listing.stdout).unwrap();
        let rows: Vec<Vec<&str>> = listing
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let names: Vec<_> = rows.iter().map(|row| *row.last().unwrap()).collect();
        assert_eq!(
            names,
            ["dev", "dev/console", "dev/null", "init", "vmcell-boot"]
        );
        assert_eq!(rows[1][0], "crw-------");
        assert!(listing.contains("5,   1"), "{listing}");
        assert_eq!(rows[3][0], "-rwxr-xr-x");
        assert_eq!(rows[3][4], "5");
        assert_eq!(rows[4][0], "-r--------");
    }
}
