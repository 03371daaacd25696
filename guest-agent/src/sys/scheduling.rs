use rustix::io::Errno;

/// Makes the agent wait for its turn instead of interrupting whoever runs when
/// it is woken, as sched(7) describes for `SCHED_BATCH`. Children are ordinary
/// again.
///
/// On a single processor this spares two switches for each short command and
/// lets a process that prints a lot fill its pipe first. Against a process that
/// computes without end it costs the agent one tick, 10 ms, until its turn.
pub(crate) fn wait_for_our_turn() -> Result<(), Errno> {
    // `struct sched_param` of the kernel is one integer.
    let priority: libc::c_int = 0;
    let policy = libc::SCHED_BATCH | libc::SCHED_RESET_ON_FORK;
    const OURSELVES: libc::pid_t = 0;
    // The C library of musl refuses the call, hence a raw one.
    // SAFETY: the kernel reads one integer, which is there.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            OURSELVES,
            policy,
            &raw const priority,
        )
    };
    super::check(result).map(|_| ())
}
