use std::{
    fs::{File, OpenOptions as FileOptions},
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use rustix::fs::{FlockOperation, flock};

use super::{
    super::{Format, Image, ImageError, OpenOptions, create_child, seal},
    tools::{Folder, open},
};

/// A real VM that does nothing but have a disk.
struct Vm {
    process: Child,
}

impl Vm {
    /// Starts it, or tells why QEMU refuses.
    fn start(disk: &Path, format: Format, options: &str) -> Result<Self, String> {
        let drive = format!("if=virtio,format={format}{options},file={}", disk.display());
        let mut process = Command::new("qemu-system-x86_64")
            .args(["-machine", "pc,accel=tcg", "-S", "-display", "none"])
            .args(["-nodefaults", "-qmp", "stdio", "-drive", &drive])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("qemu-system-x86_64");
        // It answers when its devices are there.
        let mut input = process.stdin.take().unwrap();
        let _ = input.write_all(b"{\"execute\":\"qmp_capabilities\"}");
        let mut output = process.stdout.take().unwrap();
        let (said, hears) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                if said.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
            drop(input);
        });
        let mut vm = Self { process };
        let mut heard = String::new();
        loop {
            match hears.recv_timeout(Duration::from_secs(60)) {
                Ok(bytes) => heard.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout) => panic!("QEMU says nothing more than {heard:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    let mut errors = String::new();
                    let stderr = vm.process.stderr.as_mut().unwrap();
                    stderr.read_to_string(&mut errors).unwrap();
                    return Err(errors);
                }
            }
            if heard.contains("\"return\"") {
                // Its input stays open as long as it runs.
                thread::spawn(move || while hears.recv().is_ok() {});
                return Ok(vm);
            }
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn assert_in_use(path: &Path, disk: &Path) {
    let error = open(path).unwrap_err();
    assert!(
        matches!(&error, ImageError::InUse { path } if path == disk),
        "{error}"
    );
}

#[test]
fn the_disk_of_a_vm_is_in_use() {
    let folder = Folder::new();
    let qcow2 = folder.qcow2("qcow2", &[], 1 << 20);
    let raw = folder.file("raw", vec![1; 1 << 20]);
    for (disk, format) in [(&qcow2, Format::Qcow2), (&raw, Format::Raw)] {
        let child = folder.path("child");
        create_child(disk, &child, &OpenOptions::new()).unwrap();
        let vm = Vm::start(disk, format, "").unwrap();
        assert_in_use(disk, disk);
        assert_in_use(&child, disk);
        let options = OpenOptions::new();
        assert!(create_child(disk, folder.path("other"), &options).is_err());
        assert!(seal(disk, &options).is_err());
        let torn = Image::open(disk, &OpenOptions::new().torn(true)).unwrap();
        torn.read_at(0, &mut [0; 512]).unwrap();
        drop(vm);
        open(disk).unwrap();
        std::fs::remove_file(child).unwrap();
    }
}

#[test]
fn a_base_that_vms_only_read_is_free() {
    let folder = Folder::new();
    let base = folder.file("base", vec![1; 1 << 20]);
    let child = folder.path("child");
    create_child(&base, &child, &OpenOptions::new()).unwrap();
    let _vm = Vm::start(&child, Format::Qcow2, "").unwrap();
    assert_in_use(&child, &child);
    open(&base).unwrap();
    create_child(&base, folder.path("other"), &OpenOptions::new()).unwrap();

    let reader = folder.file("reader", vec![1; 1 << 20]);
    let _reading = Vm::start(&reader, Format::Raw, ",readonly=on").unwrap();
    open(&reader).unwrap();
}

#[test]
fn a_vm_does_not_start_on_a_disk_that_is_open() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &[], 1 << 20);
    let image = open(&disk).unwrap();
    let refusal = Vm::start(&disk, Format::Qcow2, "").err().unwrap();
    assert!(refusal.contains("lock"), "{refusal}");
    // Others can look at the same time, we as well as QEMU.
    open(&disk).unwrap();
    drop(Vm::start(&disk, Format::Qcow2, ",readonly=on").unwrap());
    drop(image);
    Vm::start(&disk, Format::Qcow2, "").unwrap();

    // A torn look keeps nobody from anything.
    let _torn = Image::open(&disk, &OpenOptions::new().torn(true)).unwrap();
    Vm::start(&disk, Format::Qcow2, "").unwrap();
}

#[test]
fn locks_of_the_whole_file_are_seen() {
    let folder = Folder::new();
    let disk = folder.file("disk", vec![1; 4096]);
    // A child that another test has just forked has a copy of what is open here,
    // and of its locks, until it executes its program. So a lock is waited for,
    // and is given back before its file is closed.
    let file: File = FileOptions::new().write(true).open(&disk).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    assert_in_use(&disk, &disk);
    flock(&file, FlockOperation::Unlock).unwrap();
    open(&disk).unwrap();

    let whole = |kind: libc::c_int| libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_OFD_SETLKW(&whole(libc::F_WRLCK))).unwrap();
    assert_in_use(&disk, &disk);
    fcntl(&file, FcntlArg::F_OFD_SETLK(&whole(libc::F_UNLCK))).unwrap();
    open(&disk).unwrap();
}
