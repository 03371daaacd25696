//! Memory that users allocate and no process owns.

use vmcell::{Command, Vm};

use crate::builder;

/// Allocates System V shared memory until it fails, touches it, and prints how
/// many MiB it got.
const FILL_SEGMENTS: &str = "
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
count = 0
while (segment := libc.shmget(0, 1 << 20, 0o1600)) >= 0:
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, 1 << 20)
    libc.shmdt(ctypes.c_void_p(address))
    count += 1
print(count)
";

/// Does the same with message queues, whose empty messages cost the kernel more
/// than their size, and with semaphores.
const FILL_QUEUES_AND_SETS: &str = "
import ctypes
libc = ctypes.CDLL(None)
message = ctypes.byref(ctypes.c_long(1))
while (queue := libc.msgget(0, 0o1600)) >= 0:
    while libc.msgsnd(queue, message, 0, 0o4000) == 0:
        pass
for semaphores in (32000, 1000, 1):
    while libc.semget(0, semaphores, 0o1600) >= 0:
        pass
";

const FILL_FILES: &str = "
    cd /dev/shm
    i=0; while true > $i; do i=$((i + 1)); done 2>/dev/null
    rm 1
    dd if=/dev/zero of=0 bs=64k 2>&1
";

async fn start_with_memory(mib: u32) -> Vm {
    let image = vmcell_rootfs::recipe::debian().cached().unwrap().path;
    let builder = builder().image(image).memory_mib(mib);
    builder.start().await.unwrap()
}

fn as_user(command: Command) -> Command {
    command.user("nobody").current_dir("/")
}

/// Lets a user allocate all that it can get, and checks that root can still
/// work.
async fn check_root_works_when_user_takes_all(mib: u32, scripts: &[&str]) {
    let vm = start_with_memory(mib).await;
    for script in scripts {
        let fill = as_user(Command::new("python3").args(["-c", script]));
        let filled = vm.exec_command(fill).await.unwrap();
        assert!(filled.success(), "{filled:?}");
        if *script == FILL_SEGMENTS {
            let taken: u32 = filled.stdout_text().trim().parse().unwrap();
            assert!((1..=mib / 4).contains(&taken), "{taken} MiB of {mib} MiB");
        }
    }
    let filled = vm.exec_command(as_user(Command::shell(FILL_FILES)));
    let filled = filled.await.unwrap();
    let text = filled.stdout_text();
    assert!(text.contains("No space left on device"), "{filled:?}");

    let health = vm.health().await;
    assert!(health.is_healthy(), "{health:?}");
    let size = "df -k /dev/shm | tail -n 1";
    let output = vm.exec(["sh", "-c", size]).await.unwrap();
    assert!(output.stdout_text().contains("100%"), "{output:?}");
    vm.files().write("/workspace/file", "x").await.unwrap();
    assert_eq!(vm.files().read("/workspace/file").await.unwrap(), b"x");
    // Root can raise the limit.
    let raise = ["sysctl", "-q", "-w", "kernel.shmall=1000000"];
    let raised = vm.exec(raise).await.unwrap();
    assert!(raised.success(), "{raised:?}");
}

#[tokio::test]
async fn a_user_cannot_take_all_memory_of_a_vm_for_good() {
    check_root_works_when_user_takes_all(512, &[FILL_SEGMENTS]).await;
}

#[tokio::test]
async fn not_even_of_the_smallest_vm() {
    let scripts = [FILL_SEGMENTS, FILL_QUEUES_AND_SETS];
    check_root_works_when_user_takes_all(64, &scripts).await;
}
