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
    super::{
        Format, Image, ImageError, OpenOptions, create_child, platform::tests::is_portable, seal,
    },
    tools::{Folder, open},
};

/// A QEMU process that only opens a disk.
struct Vm {
    process: Child,
}

impl Vm {
    /// Starts it, or returns QEMU's error.
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
        // QMP answers once the devices are initialized.
        let mut input = process.stdin.take().unwrap();
        let _ = input.write_all(b"{\"execute\":\"qmp_capabilities\"}");
        let mut output = process.stdout.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
            drop(input);
        });
        let mut vm = Self { process };
        let mut text = String::new();
        loop {
            match receiver.recv_timeout(Duration::from_secs(60)) {
                Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("QEMU says nothing more than {text:?}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let mut errors = String::new();
                    let stderr = vm.process.stderr.as_mut().unwrap();
                    stderr.read_to_string(&mut errors).unwrap();
                    return Err(errors);
                }
            }
            if text.contains("\"return\"") {
                // Keep its standard input open while it runs.
                thread::spawn(move || while receiver.recv().is_ok() {});
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
        create_child(disk, &child, OpenOptions::new()).unwrap();
        let vm = Vm::start(disk, format, "").unwrap();
        assert_in_use(disk, disk);
        assert_in_use(&child, disk);
        let options = OpenOptions::new();
        assert!(create_child(disk, folder.path("other"), options.clone()).is_err());
        assert!(seal(disk, options.clone()).is_err());
        let torn = Image::open(disk, OpenOptions::new().allow_in_use(true)).unwrap();
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
    create_child(&base, &child, OpenOptions::new()).unwrap();
    let _vm = Vm::start(&child, Format::Qcow2, "").unwrap();
    assert_in_use(&child, &child);
    open(&base).unwrap();
    create_child(&base, folder.path("other"), OpenOptions::new()).unwrap();

    let reader = folder.file("reader", vec![1; 1 << 20]);
    let _reading = Vm::start(&reader, Format::Raw, ",readonly=on").unwrap();
    open(&reader).unwrap();
}

#[test]
fn a_vm_does_not_start_on_a_disk_that_is_open() {
    if is_portable() {
        println!("skipped: on Linux, QEMU does not respect flock(2)");
        return;
    }
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &[], 1 << 20);
    let image = open(&disk).unwrap();
    let refusal = Vm::start(&disk, Format::Qcow2, "").err().unwrap();
    assert!(refusal.contains("lock"), "{refusal}");
    // Other readers are not refused, neither ours nor QEMU.
    open(&disk).unwrap();
    drop(Vm::start(&disk, Format::Qcow2, ",readonly=on").unwrap());
    drop(image);
    Vm::start(&disk, Format::Qcow2, "").unwrap();

    // An image opened with `allow_in_use` locks nobody out.
    let _torn = Image::open(&disk, OpenOptions::new().allow_in_use(true)).unwrap();
    Vm::start(&disk, Format::Qcow2, "").unwrap();
}

#[test]
fn locks_of_the_whole_file_are_seen() {
    let folder = Folder::new();
    let disk = folder.file("disk", vec![1; 4096]);
    // A child process that another test has just forked holds copies of the
    // open files and their locks until it calls execve(2). So wait for locks,
    // and release them before closing the file.
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
