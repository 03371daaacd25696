//! Builds QEMU's command line for a machine. Pure, and tested by its text.

use std::{
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
};

use super::link::Device;
use crate::{
    acceleration::Acceleration,
    backend::{Machine, machine::KERNEL_ARGUMENTS},
    overlay::Overlay,
};

/// The resources of a VM that were found or created for it.
#[derive(Debug)]
pub(super) struct Parts {
    /// `None` if the VM is restored.
    pub(super) kernel: Option<PathBuf>,
    pub(super) disk: Overlay,
    pub(super) link: Device,
    /// The frequency of the host's time stamp counter, if it is constant.
    pub(super) tsc_khz: Option<u64>,
    /// Whether one thread emulates all processors.
    pub(super) single_thread: bool,
    pub(super) memory: Memory,
}

/// The guest's memory.
#[derive(Debug)]
pub(super) enum Memory {
    /// QEMU's own.
    Own,
    /// A file that this program and QEMU share.
    Shared(File),
    /// A copy of a file, which is made page by page as the guest writes.
    CopyOf(File),
}

// The descriptors that QEMU inherits, in the order in which they are passed.
const LINK_FD: usize = 3;
const CONSOLE_FD: usize = 4;
const CONTROL_FD: usize = 5;
/// What the VM starts from: the initramfs, or the state of a saved VM.
pub(super) const START_FD: usize = 6;
const LAYER_FD: usize = 7;
/// The first of the backing files; the others follow.
const FIRST_BACKING_FD: usize = 8;

/// The node that the disk of the guest is on.
const DISK: &str = "disk";

/// The topmost layer, if there is a filter above it.
const THROTTLED_DISK: &str = "throttled";

pub(super) fn arguments(machine: &Machine, parts: &Parts) -> Vec<OsString> {
    let mut arguments = Arguments(Vec::new());
    arguments.add_lockdown(machine);
    arguments.add_machine(machine, parts);
    match &parts.kernel {
        Some(kernel) => arguments.add_boot(machine, parts, kernel),
        None => arguments.add_restore(),
    }
    arguments.add_console();
    arguments.add_control();
    arguments.add_disk(&parts.disk, machine.quotas.disk_rate);
    arguments.add_link(parts.link);
    arguments.0
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn option(&mut self, name: &str, value: impl Into<OsString>) {
        self.0.push(name.into());
        self.0.push(value.into());
    }

    /// Denies all devices, files and rights that are not listed here.
    fn add_lockdown(&mut self, machine: &Machine) {
        self.flag("-nodefaults");
        self.flag("-no-user-config");
        self.option("-display", "none");
        self.option("-name", format!("vmcell-{}", machine.id));
        self.option(
            "-sandbox",
            "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        );
    }

    fn add_machine(&mut self, machine: &Machine, parts: &Parts) {
        let (accelerator, processor) = match machine.acceleration.acceleration {
            Acceleration::Kvm => ("kvm", "host"),
            Acceleration::Tcg if parts.single_thread => ("tcg,thread=single", TCG_CPU),
            Acceleration::Tcg => ("tcg", TCG_CPU),
        };
        // Without ACPI, QEMU announces the virtio-mmio devices on the kernel's
        // command line. The clock chip saves the kernel a second of
        // calibration under emulation.
        let mut kind = "microvm,acpi=off,x-option-roms=off,rtc=on".to_owned();
        let size = machine.memory_mib;
        let file = |share| {
            let descriptor = FIRST_BACKING_FD + parts.disk.backing.len();
            format!(
                "memory-backend-file,mem-path=/proc/self/fd/{descriptor},share={share},size={size}M"
            )
        };
        let memory = match parts.memory {
            Memory::Shared(_) => Some(file("on")),
            Memory::CopyOf(_) => Some(file("off")),
            Memory::Own => None,
        };
        if let Some(memory) = memory {
            self.option("-object", format!("{memory},id={MEMORY_ID}"));
            kind.push_str(MEMORY_OPTION);
        }
        self.option("-machine", kind);
        self.option("-accel", accelerator);
        self.option("-cpu", processor);
        self.option("-smp", machine.vcpus.to_string());
        self.option("-m", format!("{}M", machine.memory_mib));
    }

    fn add_boot(&mut self, machine: &Machine, parts: &Parts, kernel: &Path) {
        // A guest that resets, on purpose or after a panic, has ended.
        self.flag("-no-reboot");
        self.option("-kernel", kernel);
        self.option("-initrd", format!("/proc/self/fd/{START_FD}"));
        self.option("-append", kernel_arguments(machine, parts));
    }

    /// Makes QEMU wait for the state of a saved VM.
    fn add_restore(&mut self) {
        self.flag("-no-reboot");
        self.option("-incoming", "defer");
    }

    fn add_console(&mut self) {
        self.option("-chardev", format!("socket,id=console,fd={CONSOLE_FD}"));
        self.option("-serial", "chardev:console");
    }

    /// Adds the monitor, on which QEMU takes commands.
    fn add_control(&mut self) {
        self.option("-chardev", format!("socket,id=control,fd={CONTROL_FD}"));
        self.option("-mon", "chardev=control,mode=control");
    }

    /// Adds the chain of layers. The backing file names in their headers are
    /// not used: each layer is stacked on the next one here.
    fn add_disk(&mut self, disk: &Overlay, rate: Option<u64>) {
        let mut backing = None;
        for (number, layer) in disk.backing.iter().enumerate().rev() {
            let node = format!("beneath{number}");
            let descriptor = FIRST_BACKING_FD + number;
            self.add_layer(&node, descriptor, layer.format, backing, "read-only=on");
            backing = Some(node);
        }
        // A layer that is discarded with the VM needs no flush.
        let options = match disk.is_persistent {
            true => "discard=unmap",
            false => "discard=unmap,cache.no-flush=on",
        };
        match rate {
            None => self.add_layer(DISK, LAYER_FD, "qcow2", backing, options),
            Some(rate) => {
                self.add_layer(THROTTLED_DISK, LAYER_FD, "qcow2", backing, options);
                self.add_throttle(rate);
            }
        }
        // A full disk on the host is reported to the guest as an I/O error
        // instead of pausing the VM.
        self.option(
            "-device",
            "virtio-blk-device,drive=disk,werror=report,rerror=report",
        );
    }

    /// Adds a filter above the topmost layer that limits how many bytes pass per second. The
    /// device is on it, as it is on the layer otherwise, so the machine is the same.
    fn add_throttle(&mut self, rate: u64) {
        let group = format!(
            r#"{{"qom-type":"throttle-group","id":"disk-rate","limits":{{"bps-total":{rate}}}}}"#
        );
        self.option("-object", group);
        self.option(
            "-blockdev",
            format!(
                "driver=throttle,node-name={DISK},throttle-group=disk-rate,file={THROTTLED_DISK}"
            ),
        );
    }

    /// Adds a block device on a file that QEMU inherits.
    fn add_layer(
        &mut self,
        node: &str,
        descriptor: usize,
        format: &str,
        backing: Option<String>,
        options: &str,
    ) {
        let backing = backing.map_or(String::new(), |node| format!("backing={node},"));
        self.option("-add-fd", format!("fd={descriptor},set={descriptor}"));
        self.option(
            "-blockdev",
            format!("driver=file,node-name={node}-file,filename=/dev/fdset/{descriptor},{options}"),
        );
        self.option(
            "-blockdev",
            format!("driver={format},node-name={node},file={node}-file,{backing}{options}"),
        );
    }

    fn add_link(&mut self, link: Device) {
        let socket = format!("socket,id=link,fd={LINK_FD}");
        match link {
            Device::Serial => {
                self.option("-device", "virtio-serial-device,max_ports=2");
                self.option("-chardev", socket);
                self.option("-device", "virtserialport,chardev=link,nr=1,name=vmcell.0");
            }
            Device::Vsock { cid } => {
                let device = format!("vhost-vsock-device,guest-cid={cid},vhostfd={LINK_FD}");
                self.option("-device", device);
            }
            Device::VhostUserVsock => {
                self.option("-chardev", socket);
                self.option("-device", "vhost-user-vsock-device,chardev=link");
            }
        }
    }
}

/// Returns the name of the topmost layer when QEMU starts.
pub(super) fn layer_node(machine: &Machine) -> &'static str {
    match machine.quotas.disk_rate {
        None => DISK,
        Some(_) => THROTTLED_DISK,
    }
}

/// The name that memory has in a saved state, whether or not it has an object of its own.
const MEMORY_ID: &str = "microvm.ram";
const MEMORY_OPTION: &str = ",memory-backend=microvm.ram";

/// Returns what the state of the machine depends on: its kind, its processors, its
/// memory and its devices.
pub(super) fn machine_text(machine: &Machine, parts: &Parts) -> String {
    let arguments = arguments(machine, parts);
    let pairs = arguments.windows(2).filter(|pair| {
        let options = ["-machine", "-accel", "-cpu", "-smp", "-m", "-device"];
        options.iter().any(|option| pair[0] == *option)
    });
    let words: Vec<_> = pairs
        .flatten()
        .map(|word| word.to_string_lossy().replace(MEMORY_OPTION, ""))
        .collect();
    words.join(" ")
}

/// All features of the emulator except those that it runs slowly: the fast
/// string instructions, which it executes byte by byte (without them the
/// guest's kernel moves words), and the wide registers of XSAVE, which it
/// emulates piece by piece.
const TCG_CPU: &str = "max,-erms,-fsrm,-xsave";

fn kernel_arguments(machine: &Machine, parts: &Parts) -> String {
    // `reboot=t`: without ACPI, a triple fault is how a machine resets.
    let mut words = vec![format!("{KERNEL_ARGUMENTS} reboot=t")];
    if machine.acceleration.acceleration == Acceleration::Tcg {
        words.extend(emulation_arguments(machine, parts));
    }
    if !machine.kernel_arguments.is_empty() {
        words.push(machine.kernel_arguments.clone());
    }
    words.join(" ")
}

/// Kernel arguments that avoid work that emulation makes slow or unreliable.
fn emulation_arguments(machine: &Machine, parts: &Parts) -> Vec<String> {
    // Do not test emulated timers, and do not patch out locks.
    let mut words = vec!["no_timer_check noreplace-smp".to_owned()];
    // The emulator computes the crc32 instruction bit by bit. The kernel's
    // tables are several times faster, and ext4 checksums all metadata that it
    // writes.
    words.push("initcall_blacklist=crc32c_intel_mod_init".to_owned());
    if let Some(rate) = parts.tsc_khz {
        // The counter is the host's: it needs neither calibration nor a
        // watchdog.
        words.push(format!("tsc_early_khz={rate} tsc=reliable"));
    }
    if machine.vcpus == 1 {
        // One processor can use the machine's timer; calibrating its own takes
        // a quarter of the boot.
        words.push("noapictimer".to_owned());
    }
    if !machine.randomise_addresses {
        // The emulator translates code again for every address that it is
        // loaded at; without randomisation it does so once.
        words.push("norandmaps".to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::BackingFile;

    fn file() -> File {
        tempfile::tempfile().unwrap()
    }

    fn backing_file(format: &'static str) -> BackingFile {
        BackingFile {
            file: file(),
            format,
        }
    }

    fn parts() -> Parts {
        Parts {
            kernel: Some("/kernel".into()),
            disk: Overlay {
                layer: file(),
                is_persistent: false,
                backing: vec![backing_file("raw")],
                size: 1 << 20,
            },
            link: Device::Serial,
            tsc_khz: Some(2_000_000),
            single_thread: false,
            memory: Memory::Own,
        }
    }

    fn text(machine: &Machine, parts: &Parts) -> String {
        let arguments = arguments(machine, parts);
        let words: Vec<_> = arguments
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect();
        words
            .join("\n")
            .replace("\n-", "\x00-")
            .replace('\n', " ")
            .replace('\0', "\n")
    }

    #[test]
    fn the_whole_command_line() {
        assert_eq!(
            text(&Machine::sample(Acceleration::Kvm), &parts()),
            "\
-nodefaults
-no-user-config
-display none
-name vmcell-0123
-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
-machine microvm,acpi=off,x-option-roms=off,rtc=on
-accel kvm
-cpu host
-smp 2
-m 256M
-no-reboot
-kernel /kernel
-initrd /proc/self/fd/6
-append console=ttyS0 quiet panic=-1 init_on_free=1 reboot=t debug
-chardev socket,id=console,fd=4
-serial chardev:console
-chardev socket,id=control,fd=5
-mon chardev=control,mode=control
-add-fd fd=8,set=8
-blockdev driver=file,node-name=beneath0-file,filename=/dev/fdset/8,read-only=on
-blockdev driver=raw,node-name=beneath0,file=beneath0-file,read-only=on
-add-fd fd=7,set=7
-blockdev driver=file,node-name=disk-file,filename=/dev/fdset/7,discard=unmap,cache.no-flush=on
-blockdev driver=qcow2,node-name=disk,file=disk-file,backing=beneath0,discard=unmap,cache.no-flush=on
-device virtio-blk-device,drive=disk,werror=report,rerror=report
-device virtio-serial-device,max_ports=2
-chardev socket,id=link,fd=3
-device virtserialport,chardev=link,nr=1,name=vmcell.0"
        );
    }

    #[test]
    fn the_kernels_vsock_needs_a_number_and_an_open_device() {
        let mut parts = parts();
        parts.link = Device::Vsock { cid: 70_000 };
        let text = text(&Machine::sample(Acceleration::Kvm), &parts);
        assert!(
            text.ends_with("\n-device vhost-vsock-device,guest-cid=70000,vhostfd=3"),
            "{text}"
        );
        assert!(!text.contains("virtserialport") && !text.contains("-object"));
    }

    #[test]
    fn vsock_by_another_program_needs_memory_that_both_see() {
        let mut parts = parts();
        parts.link = Device::VhostUserVsock;
        parts.memory = Memory::Shared(file());
        let text = text(&Machine::sample(Acceleration::Kvm), &parts);
        assert!(
            text.contains(
                "
-object memory-backend-file,mem-path=/proc/self/fd/9,share=on,size=256M,id=microvm.ram
-machine microvm,acpi=off,x-option-roms=off,rtc=on,memory-backend=microvm.ram
-accel kvm
"
            ),
            "{text}"
        );
        assert!(
            text.ends_with(
                "
-chardev socket,id=link,fd=3
-device vhost-user-vsock-device,chardev=link"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_disk_that_is_kept_is_flushed_and_stands_on_all_that_is_beneath_it() {
        let mut parts = parts();
        parts.disk.is_persistent = true;
        parts.disk.backing.insert(0, backing_file("qcow2"));
        let text = text(&Machine::sample(Acceleration::Kvm), &parts);
        assert!(
            text.contains(
                "\n\
-add-fd fd=9,set=9
-blockdev driver=file,node-name=beneath1-file,filename=/dev/fdset/9,read-only=on
-blockdev driver=raw,node-name=beneath1,file=beneath1-file,read-only=on
-add-fd fd=8,set=8
-blockdev driver=file,node-name=beneath0-file,filename=/dev/fdset/8,read-only=on
-blockdev driver=qcow2,node-name=beneath0,file=beneath0-file,backing=beneath1,read-only=on
-add-fd fd=7,set=7
-blockdev driver=file,node-name=disk-file,filename=/dev/fdset/7,discard=unmap
-blockdev driver=qcow2,node-name=disk,file=disk-file,backing=beneath0,discard=unmap
"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_disk_with_a_rate_has_a_filter_and_the_machine_is_the_same() {
        let mut machine = Machine::sample(Acceleration::Kvm);
        let unlimited = machine_text(&machine, &parts());
        machine.quotas = machine.quotas.disk_rate(1 << 20);
        let text = text(&machine, &parts());
        assert!(
            text.contains(
                "
-blockdev driver=qcow2,node-name=throttled,file=throttled-file,backing=beneath0,discard=unmap,cache.no-flush=on
-object {\"qom-type\":\"throttle-group\",\"id\":\"disk-rate\",\"limits\":{\"bps-total\":1048576}}
-blockdev driver=throttle,node-name=disk,throttle-group=disk-rate,file=throttled
-device virtio-blk-device,drive=disk,"
            ),
            "{text}"
        );
        assert_eq!(machine_text(&machine, &parts()), unlimited);
    }

    #[test]
    fn a_restored_machine_waits_for_its_state_and_is_the_same_machine() {
        let mut parts = parts();
        let machine = Machine::sample(Acceleration::Kvm);
        let booted = machine_text(&machine, &parts);
        parts.kernel = None;
        parts.memory = Memory::CopyOf(file());
        let text = text(&machine, &parts);
        assert!(
            text.contains(
                "
-object memory-backend-file,mem-path=/proc/self/fd/9,share=off,size=256M,id=microvm.ram
-machine microvm,acpi=off,x-option-roms=off,rtc=on,memory-backend=microvm.ram
-accel kvm
-cpu host
-smp 2
-m 256M
-no-reboot
-incoming defer
-chardev"
            ),
            "{text}"
        );
        assert_eq!(machine_text(&machine, &parts), booted);
        assert_eq!(
            booted,
            "-machine microvm,acpi=off,x-option-roms=off,rtc=on -accel kvm -cpu host -smp 2 \
             -m 256M -device virtio-blk-device,drive=disk,werror=report,rerror=report \
             -device virtio-serial-device,max_ports=2 \
             -device virtserialport,chardev=link,nr=1,name=vmcell.0"
        );
    }

    #[test]
    fn emulation_has_its_own_processor_and_arguments() {
        let (mut machine, mut parts) = (Machine::sample(Acceleration::Tcg), parts());
        let emulated = text(&machine, &parts);
        assert!(emulated.contains("-accel tcg\n"));
        assert!(emulated.contains("-cpu max,-erms,-fsrm,-xsave\n"));
        assert!(emulated.contains(
            "-append console=ttyS0 quiet panic=-1 init_on_free=1 reboot=t \
             no_timer_check noreplace-smp \
             initcall_blacklist=crc32c_intel_mod_init tsc_early_khz=2000000 tsc=reliable norandmaps debug\n"
        ));
        machine.randomise_addresses = true;
        parts.tsc_khz = None;
        machine.vcpus = 1;
        parts.single_thread = true;
        assert!(text(&machine, &parts).contains("-accel tcg,thread=single\n"));
        assert!(text(&machine, &parts).contains("crc32c_intel_mod_init noapictimer debug\n"));
    }
}
