use std::{
    fs::{File, OpenOptions},
    io::Read as _,
    os::unix::fs::FileExt as _,
    path::PathBuf,
};

use serde_json::Value;

use super::in_root;

/// The settings of a VM that boots.
pub(super) struct VmSettings {
    kernel: PathBuf,
    pub(super) initramfs: PathBuf,
    pub(super) disk: String,
    pub(super) vsock: String,
    pub(super) kernel_arguments: String,
    pub(super) vcpus: u64,
    pub(super) memory_mib: u64,
    pub(super) api: Option<PathBuf>,
}

impl VmSettings {
    pub(super) fn from_config(arguments: &str) -> Self {
        let words: Vec<_> = arguments.split(' ').collect();
        let option = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            Some(in_root(words[at + 1]))
        };
        let api = option("--api-sock");
        // With neither option it would open a socket that all VMs share.
        assert_eq!(api.is_none(), words.contains(&"--no-api"), "{arguments}");
        let config = option("--config-file").unwrap();
        let config: Value = serde_json::from_reader(File::open(config).unwrap()).unwrap();
        let text = |pointer: &str| config.pointer(pointer).unwrap().as_str().unwrap();
        let number = |pointer: &str| config.pointer(pointer).unwrap().as_u64().unwrap();
        assert_eq!(number("/vsock/guest_cid"), 3);
        Self {
            kernel: in_root(text("/boot-source/kernel_image_path")),
            initramfs: in_root(text("/boot-source/initrd_path")),
            disk: text("/drives/0/path_on_host").to_owned(),
            vsock: text("/vsock/uds_path").to_owned(),
            kernel_arguments: text("/boot-source/boot_args").to_owned(),
            vcpus: number("/machine-config/vcpu_count"),
            memory_mib: number("/machine-config/mem_size_mib"),
            api,
        }
    }

    pub(super) fn from_command_line(arguments: &str) -> Self {
        let option = |name: &str| {
            let rest = arguments.split(&format!("{name} ")).nth(1).unwrap();
            rest.split(" --").next().unwrap()
        };
        let value = |name: &str, key: &str| {
            let mut pairs = option(name).split(',');
            pairs.find_map(|pair| pair.strip_prefix(key)).unwrap()
        };
        let has_api = arguments.contains("--api-socket");
        let api = has_api.then(|| value("--api-socket", "path=").into());
        assert_eq!((option("--serial"), option("--console")), ("tty", "off"));
        assert_eq!(value("--vsock", "cid="), "3");
        Self {
            kernel: option("--kernel").into(),
            initramfs: option("--initramfs").into(),
            disk: value("--disk", "path=").into(),
            vsock: value("--vsock", "socket=").into(),
            kernel_arguments: option("--cmdline").to_owned(),
            vcpus: value("--cpus", "boot=").parse().unwrap(),
            memory_mib: value("--memory", "size=")
                .trim_end_matches('M')
                .parse()
                .unwrap(),
            api,
        }
    }

    /// Checks that the kernel is an ELF file and the disk a writable ext4 file
    /// system.
    pub(super) fn check_files(&self) {
        let mut magic = [0; 4];
        File::open(&self.kernel)
            .unwrap()
            .read_exact(&mut magic)
            .unwrap();
        assert_eq!(&magic, b"\x7fELF");
        let mut options = OpenOptions::new();
        let disk = options
            .read(true)
            .write(true)
            .open(in_root(&self.disk))
            .unwrap();
        let mut magic = [0; 2];
        disk.read_exact_at(&mut magic, 1024 + 0x38).unwrap();
        assert_eq!(magic, [0x53, 0xef]);
        disk.write_all_at(b"written", 0).unwrap();
    }
}
