//! System calls that no VMM needs, and that would help one that was taken over: seccomp(2).

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch, apply_filter,
};
use vmcell_launcher::{Failure, Layer, LayerStatus, Plan};

use crate::stage::StageExt as _;

/// Not permitted.
const DENIED: &[c_long] = &[
    // Processes.
    libc::SYS_fork,
    libc::SYS_vfork,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_perf_event_open,
    // Memory that no limit counts.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_uselib,
    libc::SYS_sysfs,
    libc::SYS_lookup_dcookie,
    libc::SYS_personality,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
];

/// As if the kernel did not have them, so that programs do without: what these do cannot be
/// seen by a filter.
const UNKNOWN: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// What a VMM that inherits its sockets does not need.
const SOCKETS: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Memory that only a cgroup would count.
const MEMORY_FILES: &[c_long] = &[libc::SYS_memfd_create, libc::SYS_memfd_secret];

/// The bit by which the kernel tells the x32 variants of system calls, and their own numbers.
const X32: c_long = 0x4000_0000;
const X32_ONLY: std::ops::RangeInclusive<c_long> = 512..=547;

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Filters the system calls of this process.
pub(crate) fn apply(plan: &Plan) -> Result<LayerStatus, Failure> {
    let denied = denied(plan).stage("make the filter of system calls")?;
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    for (rules, errno) in [(denied, libc::EPERM), (unknown, libc::ENOSYS)] {
        let program = program(rules, errno).stage("make the filter of system calls")?;
        apply_filter(&program).stage("filter system calls")?;
    }
    let sockets = match plan.uses_sockets {
        true => "Unix sockets only",
        false => "no new sockets",
    };
    let detail = format!("no new processes, no namespaces, {sockets}");
    Ok(LayerStatus::active(Layer::Seccomp, detail))
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, BackendError> {
    let action = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, action, TargetArch::x86_64)?.try_into()
}

/// Returns what is not permitted.
fn denied(plan: &Plan) -> Result<Rules, BackendError> {
    // An empty list of rules always matches.
    let mut rules: Rules = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    // Threads share their process with who makes them, processes do not.
    let thread = libc::CLONE_THREAD as u64;
    let is_process = Condition::new(0, Length::Qword, Op::MaskedEq(thread), 0)?;
    rules.insert(libc::SYS_clone, vec![Rule::new(vec![is_process])?]);
    if plan.uses_sockets {
        let unix = libc::AF_UNIX as u64;
        let is_other = Condition::new(0, Length::Dword, Op::Ne, unix)?;
        rules.insert(libc::SYS_socket, vec![Rule::new(vec![is_other])?]);
    } else {
        rules.extend(SOCKETS.iter().map(|call| (*call, Vec::new())));
    }
    if !plan.uses_memory_files {
        rules.extend(MEMORY_FILES.iter().map(|call| (*call, Vec::new())));
    }
    let ordinary: Vec<i64> = rules.keys().copied().collect();
    let variants = ordinary
        .into_iter()
        .chain(UNKNOWN.iter().copied())
        .chain(X32_ONLY);
    rules.extend(variants.map(|call| (call | X32, Vec::new())));
    Ok(rules)
}
