//! Which evidence counts for an out-of-memory kill.

use vmcell::{Cause, Command, Signal, Vm};

use crate::{COMMAND_TIMEOUT, start};

async fn cause(vm: &Vm, script: &str) -> Cause {
    let command = Command::shell(script).timeout(COMMAND_TIMEOUT);
    let output = vm.exec_command(command).await.unwrap();
    output.exit.unwrap().cause
}

/// Writes the kernel's OOM message about this shell into the kernel log, in all
/// ways that root has, and kills the shell. The kernel itself quotes an unknown
/// mount option.
const FORGED_OOM_MESSAGE: &str = r#"
words="Out of memory: Killed process $$ (sh) total-vm:9kB"
for level in 3 11 2051 ''; do
    echo "${level:+<$level>}$words" > /dev/kmsg
done
mount -t tmpfs -o "$words" none /mnt
dmesg -r | grep -q "^<3>.*$words" || exit 1
kill -9 $$
"#;

#[tokio::test]
async fn nobody_but_the_kernel_says_that_memory_was_short() {
    let vm = start().await;
    assert_eq!(
        cause(&vm, FORGED_OOM_MESSAGE).await,
        Cause::Signal(Signal::KILL)
    );
    let hog = "exec tail /dev/zero";
    assert_eq!(cause(&vm, hog).await, Cause::OutOfMemory);
    // An earlier message of the kernel does not apply to others.
    assert_eq!(
        cause(&vm, FORGED_OOM_MESSAGE).await,
        Cause::Signal(Signal::KILL)
    );
    assert_eq!(cause(&vm, "kill -9 $$").await, Cause::Signal(Signal::KILL));
    assert_eq!(cause(&vm, hog).await, Cause::OutOfMemory);
    assert_eq!(cause(&vm, hog).await, Cause::OutOfMemory);
}

#[tokio::test]
async fn a_pid_that_is_used_again_does_not_inherit_a_lack_of_memory() {
    let vm = start().await;
    // Limits the pids, so that one is soon used again; the first 300 never are.
    let few_pids = "while [ $(sh -c 'echo $$') -lt 310 ]; do :; done; \
                    echo 400 > /proc/sys/kernel/pid_max";
    assert_eq!(cause(&vm, few_pids).await, Cause::Code(0));
    // The killed process is not the command itself, so nobody has asked how it
    // ended. The order of the kill and what comes after is determined from two
    // clocks, which need not agree exactly.
    let hog = Command::shell("tail /dev/zero & echo $!; wait; sleep 1").timeout(COMMAND_TIMEOUT);
    let pid = vm.exec_command(hog).await.unwrap().stdout_text();
    for _ in 0..400 {
        let next = Command::shell("echo $$; kill -9 $$");
        let output = vm.exec_command(next).await.unwrap();
        assert_eq!(output.exit.unwrap().cause, Cause::Signal(Signal::KILL));
        if output.stdout_text() == pid {
            return;
        }
    }
    panic!("no command had the pid {pid}");
}
