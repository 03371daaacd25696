//! The files of a saved VM: those of Firecracker, and those of Cloud Hypervisor.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::{
        fs::{FileExt as _, symlink},
        net::UnixListener,
    },
    path::Path,
    sync::Arc,
};

use serde_json::{Value, json};

use super::{Machine, guest::Guest, has_fault, in_root};

/// What a disk begins with as long as only the first VM has written to it.
const OF_FIRST: &[u8; 7] = b"written";

/// What a restored VM writes to its disk.
const OF_COPY: &[u8; 7] = b"a copy!";

impl Machine {
    /// Writes what Firecracker does for `PUT /snapshot/create`.
    pub(super) fn save_firecracker(&self, state: &Path, memory: &Path) {
        let text = json!({
            "version": std::env::var(super::VERSION).unwrap(),
            "vcpus": self.vcpus,
            "mem_size_mib": self.memory_mib,
            "path_on_host": self.disk,
            "uds_path": self.vsock,
        });
        if has_fault("symlink") {
            let _ = std::fs::remove_file(state);
            symlink("/etc/hostname", state).unwrap();
        } else {
            let mut options = OpenOptions::new();
            let options = options.create(true).write(true).truncate(true);
            let mut state = options.open(state).unwrap();
            write!(state, "{text}").unwrap();
        }
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true).truncate(false);
        self.save_memory(&options.open(memory).unwrap());
        self.guest.reset_connections();
    }

    /// Restores what Firecracker does for `PUT /snapshot/load`.
    pub(super) fn load_firecracker(state: &Path, memory: &Path) -> (UnixListener, Self) {
        let state: Value = serde_json::from_reader(File::open(state).unwrap()).unwrap();
        let version = std::env::var(super::VERSION).unwrap();
        assert_eq!(state["version"], version.as_str());
        let text = |name: &str| state[name].as_str().unwrap().to_owned();
        Self {
            disk: text("path_on_host"),
            vsock: text("uds_path"),
            vcpus: state["vcpus"].as_u64().unwrap(),
            memory_mib: state["mem_size_mib"].as_u64().unwrap(),
            guest: Arc::new(Guest::booted([0; 16], 0)),
        }
        .open_devices(memory)
    }

    /// Writes what Cloud Hypervisor does for `PUT vm.snapshot`.
    pub(super) fn save_cloud_hypervisor(&self, folder: &Path) {
        let config = json!({
            "cpus": { "boot_vcpus": self.vcpus },
            "memory": { "size": self.memory_mib << 20 },
            "disks": [{ "path": self.disk }],
            "vsock": { "cid": 3, "socket": self.vsock },
        });
        let create = |name: &str| File::create_new(folder.join(name)).unwrap();
        write!(create("config.json"), "{config}").unwrap();
        write!(create("state.json"), "{{}}").unwrap();
        self.save_memory(&create("memory-ranges"));
    }

    /// Restores what Cloud Hypervisor does for `PUT vm.restore`.
    pub(super) fn load_cloud_hypervisor(folder: &Path) -> (UnixListener, Self) {
        let read = |name: &str| -> Value {
            let file = File::open(folder.join(name)).unwrap();
            serde_json::from_reader(file).unwrap()
        };
        let config = read("config.json");
        assert_eq!(read("state.json"), json!({}));
        let text = |pointer: &str| {
            config
                .pointer(pointer)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        let number = |pointer: &str| config.pointer(pointer).unwrap().as_u64().unwrap();
        Self {
            disk: text("/disks/0/path"),
            vsock: text("/vsock/socket"),
            vcpus: number("/cpus/boot_vcpus"),
            memory_mib: number("/memory/size") >> 20,
            guest: Arc::new(Guest::booted([0; 16], 0)),
        }
        .open_devices(&folder.join("memory-ranges"))
    }

    fn save_memory(&self, memory: &File) {
        let extra = match has_fault("size") {
            true => 1 << 30,
            false => 0,
        };
        memory.set_len((self.memory_mib << 20) + extra).unwrap();
        memory.write_all_at(&self.guest.to_memory(), 4096).unwrap();
    }

    /// Opens the devices of a restored machine, as it was told them when it booted, and its
    /// memory.
    fn open_devices(self, memory: &Path) -> (UnixListener, Self) {
        assert_eq!((self.vcpus, self.memory_mib), (2, 128));
        let memory = File::open(memory).unwrap();
        assert_eq!(memory.metadata().unwrap().len(), self.memory_mib << 20);
        let mut contents = [0; 36];
        memory.read_exact_at(&mut contents, 4096).unwrap();
        let mut options = OpenOptions::new();
        let disk = options.read(true).write(true);
        let disk = disk.open(in_root(&self.disk)).unwrap();
        let mut begin = [0; 7];
        disk.read_exact_at(&mut begin, 0).unwrap();
        assert_eq!(&begin, OF_FIRST, "the disk of another VM");
        disk.write_all_at(OF_COPY, 0).unwrap();
        let vsock = UnixListener::bind(in_root(&self.vsock)).unwrap();
        let guest = Arc::new(Guest::from_memory(&contents));
        (vsock, Self { guest, ..self })
    }
}
