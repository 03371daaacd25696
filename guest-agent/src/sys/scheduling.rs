use rustix::io::Errno;

/// Switches the agent to `SCHED_BATCH`, so that it does not preempt the running
/// process when it is woken: sched(7). Children get the default policy again.
///
/// On a single CPU this saves two context switches for each short command and
/// lets a process that prints a lot fill its pipe first. Against a CPU-bound
/// process it costs the agent one tick, 10 ms, until it runs.
pub(crate) fn use_batch_scheduling() -> Result<(), Errno> {
    // `struct sched_param` of the kernel is one integer.
    let priority: libc::c_int = 0;
    let policy = libc::SCHED_BATCH | libc::SCHED_RESET_ON_FORK;
    const CURRENT_PROCESS: libc::pid_t = 0;
    // musl does not implement the call, hence a raw one.
    // SAFETY: the kernel reads one integer, which is there.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            CURRENT_PROCESS,
            policy,
            &raw const priority,
        )
    };
    super::check(result).map(|_| ())
}
