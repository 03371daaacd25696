//! What a VM leaves on its disk, which only the library's inside can see: the
//! layer has no name and ends with the VM.

use std::path::PathBuf;

use imago::{
    DenyImplicitOpenGate, FormatAccess, FormatDriverBuilder, StorageOpenOptions,
    file::File as ImagoFile, qcow2::Qcow2, raw::Raw,
};

use super::*;

#[tokio::test]
async fn a_stopped_vm_leaves_a_clean_disk_and_a_killed_one_does_not() {
    // Stopping must be what makes it clean: after a kill the journal is open.
    let (vm, disk) = boot_and_write().await;
    vm.kill().await;
    assert!(disk.superblock().needs_recovery());

    let (vm, disk) = boot_and_write().await;
    vm.stop().await.unwrap();
    let superblock = disk.superblock();
    assert!(!superblock.needs_recovery());
    assert!(superblock.is_clean());
    assert!(superblock.bytes_written() > disk.image_superblock().bytes_written());
}

/// Boots a VM of which the disk can be looked at later, and lets the guest
/// write to it.
async fn boot_and_write() -> (Vm, Disk) {
    let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
    let builder = Vm::builder().image(&image).memory_mib(128);
    let secrets = Secrets {
        boot_id: random_bytes().unwrap(),
        reset_key: ResetKey::new(random_bytes().unwrap()),
    };
    let id = "test".to_owned();
    let acceleration = AccelerationChoice::detect();
    let machine = prepare(&builder, secrets, id.clone(), acceleration).unwrap();
    let layer = machine.disk.layer.try_clone().unwrap();
    let backend = Qemu {
        program: locate::qemu(None).unwrap(),
    };
    let launched = backend.launch(machine).unwrap();
    let console = Console::default();
    let (vmm, session) = connect(launched, secrets, builder.boot_timeout, &console)
        .await
        .unwrap();
    let about = About {
        id,
        backend: backend.name(),
        acceleration,
        console,
    };
    let vm = hand_over(vmm, session, about, None).unwrap();
    let script = "echo hello > /workspace/file; sync";
    assert!(vm.exec(["sh", "-c", script]).await.unwrap().success());
    (vm, Disk { image, layer })
}

/// A layer over an image, without a VM.
struct Disk {
    image: PathBuf,
    layer: File,
}

impl Disk {
    fn superblock(&self) -> Superblock {
        let options = StorageOpenOptions::new();
        let layer = self.layer.try_clone().unwrap();
        let layer = ImagoFile::from_open_file(layer, options).unwrap();
        let disk = Qcow2::builder(layer)
            .backing(Some(self.open_image()))
            .open(DenyImplicitOpenGate::default())
            .unwrap();
        Superblock::read(&FormatAccess::new(disk))
    }

    fn image_superblock(&self) -> Superblock {
        Superblock::read(&self.open_image())
    }

    fn open_image(&self) -> FormatAccess<ImagoFile> {
        let options = StorageOpenOptions::new();
        let image = ImagoFile::from_open_file(File::open(&self.image).unwrap(), options).unwrap();
        let image = Raw::builder(image)
            .open(DenyImplicitOpenGate::default())
            .unwrap();
        FormatAccess::new(image)
    }
}

/// An ext4 superblock (the kernel's `filesystems/ext4/globals.rst`).
struct Superblock([u8; 1024]);

impl Superblock {
    fn read(disk: &FormatAccess<ImagoFile>) -> Self {
        let mut bytes = [0; 1024];
        disk.read(&mut bytes[..], 1024).unwrap();
        let superblock = Self(bytes);
        assert_eq!(superblock.u16_at(0x38), 0xef53, "there is no superblock");
        superblock
    }

    /// `s_state`: it was unmounted cleanly, and no error was noted.
    fn is_clean(&self) -> bool {
        self.u16_at(0x3a) == 1
    }

    /// `EXT4_FEATURE_INCOMPAT_RECOVER` in `s_feature_incompat`: the journal has
    /// to be replayed.
    fn needs_recovery(&self) -> bool {
        self.u16_at(0x60) & 0x4 != 0
    }

    /// `s_kbytes_written`: what was ever written to the file system, in KiB.
    fn bytes_written(&self) -> u64 {
        u64::from_le_bytes(self.0[0x178..0x180].try_into().unwrap())
    }

    fn u16_at(&self, offset: usize) -> u16 {
        u16::from_le_bytes([self.0[offset], self.0[offset + 1]])
    }
}
