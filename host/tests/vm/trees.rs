//! Process trees: their cgroups, how they are killed, and what commands leave
//! behind.

use vmcell::{Cause, Command, ExecEvent, Process, ProcessSelector, ReadFrom, Vm};

use crate::{builder, start};

/// Runs a command and returns what it printed.
async fn printed(vm: &Vm, script: &str) -> String {
    let output = vm.exec_command(Command::shell(script)).await.unwrap();
    assert!(output.success(), "{script}: {output:?}");
    output.stdout_text()
}

/// Waits until a background process has printed these lines.
async fn wait_for(process: &Process, text: &str) {
    let mut stream = process.attach(ReadFrom::Start).unwrap();
    let mut printed = String::new();
    while printed != text {
        match stream.next().await.unwrap() {
            Some(ExecEvent::Stdout(bytes)) => printed += &String::from_utf8_lossy(&bytes),
            other => panic!("{other:?} after {printed:?}"),
        }
    }
}

/// The command of issue 16, unchanged.
const MOVES_TO_A_CGROUP_OF_ITS_OWN: &str = "mkdir -p /sys/fs/cgroup/mine; \
    setsid sh -c \"echo \\$\\$ > /sys/fs/cgroup/mine/cgroup.procs; exec sleep 5555\" & sleep 500";

const BOTH_SLEEP: &str = "until [ $(pidof sleep | wc -w) = 2 ]; do :; done";

#[tokio::test]
async fn who_moves_to_another_cgroup_ends_with_its_command() {
    let vm = start().await;
    // A background command has a cgroup namespace of its own, a foreground
    // command has not.
    let command = || Command::from_argv(["sh", "-c", MOVES_TO_A_CGROUP_OF_ITS_OWN]);
    vm.spawn(command().tag("behind")).await.unwrap();
    printed(&vm, BOTH_SLEEP).await;
    let exit = vm.processes().kill("behind").await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Killed, Some(true)));
    assert_eq!(printed(&vm, "pidof sleep | wc -w").await, "0\n");

    let running = vm.exec_stream(command().tag("before")).unwrap();
    printed(&vm, BOTH_SLEEP).await;
    let exit = vm.processes().kill("before").await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Killed, Some(true)));
    assert_eq!(printed(&vm, "pidof sleep | wc -w").await, "0\n");
    drop(running);
}

#[tokio::test]
async fn nested_and_frozen_cgroups_are_killed_and_removed() {
    let vm = start().await;
    let script = "cd /sys/fs/cgroup; mkdir -p a/b frozen; \
                  sh -c 'echo $$ > a/b/cgroup.procs; cat /proc/self/cgroup; exec sleep 1000' & \
                  until [ $(pidof sleep | wc -w) = 1 ]; do :; done; \
                  sh -c 'echo $$ > frozen/cgroup.procs; exec sleep 1001' & \
                  until [ $(pidof sleep | wc -w) = 2 ]; do :; done; \
                  echo 1 > frozen/cgroup.freeze; \
                  until grep -q 'frozen 1' frozen/cgroup.events; do :; done; \
                  echo 1 2>/dev/null > cgroup.freeze || echo refused; \
                  echo ready; exec sleep 1002";
    let job = vm.spawn(Command::shell(script)).await.unwrap();
    wait_for(&job, "0::/a/b\nrefused\nready\n").await;
    let exit = job.kill().await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Killed, Some(true)));
    let left = "pidof sleep | wc -w; find /sys/fs/cgroup/vmcell -mindepth 2 -type d | wc -l";
    assert_eq!(printed(&vm, left).await, "0\n0\n");
}

#[tokio::test]
async fn a_program_can_be_a_service_manager_below_its_cgroup() {
    let vm = start().await;
    let script = "cd /sys/fs/cgroup && mkdir init service && echo $$ > init/cgroup.procs && \
                  echo +pids > cgroup.subtree_control && echo 7 > service/pids.max || exit 9; \
                  sleep 1000 & pid=$!; \
                  echo $pid > service/cgroup.procs && cat /proc/$pid/cgroup service/pids.max; \
                  kill $pid; wait $pid; \
                  wc -l < service/cgroup.procs; rmdir service; ls -d */";
    let command = Command::shell(script).pids_max(50);
    let output = vm.exec_command(command).await.unwrap();
    let expected = "0::/service\n7\n0\ninit/\n";
    assert_eq!(output.stdout_text(), expected, "{output:?}");
}

#[tokio::test]
async fn no_command_gets_a_cgroup_that_another_has_changed() {
    let vm = start().await;
    let look = "cat /proc/self/cgroup; cd /sys/fs/cgroup; find . -mindepth 1 -type d; \
                cat cgroup.subtree_control; stat -c %u .";
    let changes = [
        "mkdir /sys/fs/cgroup/below",
        "chown 1000 /sys/fs/cgroup",
        "mkdir /sys/fs/cgroup/x; echo 0 > /sys/fs/cgroup/x/cgroup.procs; \
         echo +pids > /sys/fs/cgroup/cgroup.subtree_control",
    ];
    // More than there are cgroups in the pool.
    for change in changes.into_iter().cycle().take(9) {
        let job = vm.spawn(Command::shell(change)).await.unwrap();
        job.wait().await.unwrap();
        job.forget().await.unwrap();
        let job = vm.spawn(Command::shell(look).tag("look")).await.unwrap();
        wait_for(&job, "0::/\n0\n").await;
        job.wait().await.unwrap();
        job.forget().await.unwrap();
    }
    let left = "find /sys/fs/cgroup/vmcell -mindepth 2 -type d | wc -l";
    assert_eq!(printed(&vm, left).await, "0\n");
}

#[tokio::test]
async fn mounts_of_one_command_are_those_of_all() {
    let vm = start().await;
    let early = vm.spawn(Command::shell("read line; cat /mnt/word").stdin_stream());
    let early = early.await.unwrap();
    let mount = "mkdir -p /mnt; mount -t tmpfs none /mnt && echo mounted > /mnt/word";
    let job = vm.spawn(Command::shell(mount)).await.unwrap();
    assert_eq!(job.wait().await.unwrap().cause, Cause::Code(0));
    assert_eq!(printed(&vm, "cat /mnt/word").await, "mounted\n");
    assert!(vm.files().exists("/mnt/word").await.unwrap());
    let stream = early.attach_with_input(ReadFrom::Now).unwrap();
    assert!(stream.input().write("go\n").await);
    wait_for(&early, "mounted\n").await;
    printed(&vm, "umount /mnt").await;
    assert!(!vm.files().exists("/mnt/word").await.unwrap());
}

/// Returns a program that enters the cgroup namespace of PID 1 and executes its
/// arguments: x86-64 code after the headers that elf(5) requires.
fn nsenter() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let code: &[u8] = &[
        0x48, 0x8d, 0x3d, 0x2b, 0, 0, 0, // lea rdi, [rip + path]
        0x31, 0xf6, 0xb8, 2, 0, 0, 0, 0x0f, 0x05, // open(rdi, 0)
        0x89, 0xc7, 0x31, 0xf6, 0xb8, 0x34, 1, 0, 0, 0x0f, 0x05, // setns(eax, 0)
        0x48, 0x8b, 0x7c, 0x24, 0x10, // mov rdi, [rsp + 16]
        0x48, 0x8d, 0x74, 0x24, 0x10, // lea rsi, [rsp + 16]
        0x31, 0xd2, 0xb8, 0x3b, 0, 0, 0, 0x0f, 0x05, // execve(rdi, rsi, 0)
        0x0f, 0x0b, 0x90, 0x90, // ud2
    ];
    let path = b"/proc/1/ns/cgroup\0";
    let size = HEADERS + (code.len() + path.len()) as u64;
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.resize(16, 0);
    let mut put = |bytes: &[u8]| program.extend_from_slice(bytes);
    put(&[2, 0, 62, 0, 1, 0, 0, 0]); // executable, x86-64
    for word in [BASE + HEADERS, 64, 0] {
        put(&u64::to_le_bytes(word)); // entry, program headers, sections
    }
    put(&[0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    put(&[1, 0, 0, 0, 5, 0, 0, 0]); // load, readable and executable
    for word in [0, BASE, BASE, size, size, 0x1000] {
        put(&u64::to_le_bytes(word));
    }
    put(code);
    put(path);
    program
}

#[tokio::test]
async fn who_leaves_through_the_namespace_of_pid_1_spoils_the_proof() {
    let vm = start().await;
    vm.files().write("/enter", nsenter()).await.unwrap();
    printed(&vm, "chmod 755 /enter").await;
    let bystander = Command::shell("echo $$ > /bystander; exec sleep 999").tag("bystander");
    vm.spawn(bystander).await.unwrap();
    // It moves to the root, to a cgroup of its own, and to that of another
    // command. In the last case it is still in the namespace of PID 1.
    let own = "mkdir -p /sys/fs/cgroup/mine; echo $$ > /sys/fs/cgroup/mine/cgroup.procs";
    let root = "echo $$ > /sys/fs/cgroup/cgroup.procs";
    let other = "p=$(grep -lx $(cat /bystander) /sys/fs/cgroup/vmcell/*/cgroup.procs) && \
                 echo $$ > $p";
    for way in [own, root, other] {
        // In the foreground it sees the whole cgroup tree.
        let inner = format!("echo $$ > /leaver; {way} && exec sleep 5555");
        let script = "setsid /enter /bin/sh -c \"$INNER\" & sleep 500";
        let command = Command::shell(script).env("INNER", &inner).tag("leaver");
        let running = vm.exec_stream(command).unwrap();
        printed(&vm, "until [ $(pidof sleep | wc -w) = 3 ]; do :; done").await;
        let exit = vm.processes().kill("leaver").await.unwrap();
        assert_eq!(
            (exit.cause, exit.tree_ended),
            (Cause::Killed, None),
            "{way}"
        );
        drop(running);
        // It is still alive.
        printed(&vm, "kill -0 $(cat /leaver)").await;
        // A command that started later is not affected. The agent compares
        // start times with a resolution of one second.
        let next_second = "now() { cut -d . -f 1 /proc/uptime; }; \
                           then=$(($(now) + 2)); until [ $(now) -ge $then ]; do :; done";
        printed(&vm, next_second).await;
        let later = vm
            .spawn(Command::from_argv(["sleep", "1000"]))
            .await
            .unwrap();
        assert_eq!(later.kill().await.unwrap().tree_ended, Some(true), "{way}");
        let end = "pid=$(cat /leaver); kill $pid; while [ -e /proc/$pid ]; do :; done";
        printed(&vm, end).await;
    }
    let exit = vm.processes().kill("bystander").await.unwrap();
    assert_eq!(exit.tree_ended, Some(true));
}

#[tokio::test]
async fn hundreds_of_daemons_that_execs_leave_keep_nobody_from_starting_more() {
    let vm = builder().memory_mib(512).start().await.unwrap();
    const DAEMONS: usize = 400;
    for _ in 0..DAEMONS {
        let script = "sleep 1000 <&- >&- 2>&- &";
        let output = vm.exec_command(Command::shell(script)).await.unwrap();
        assert_eq!(output.exit.unwrap().tree_ended, Some(false));
    }
    // The agent's open descriptors do not grow with them.
    let open: usize = printed(&vm, "ls /proc/1/fd | wc -l")
        .await
        .trim()
        .parse()
        .unwrap();
    assert!(open < 64, "{open}");
    let list = vm.processes().list().await.unwrap();
    assert_eq!(list.len(), DAEMONS);
    assert!(list.iter().all(|info| info.left.len() == 1));
    // The limits of open files for programs are unchanged.
    assert_eq!(printed(&vm, "ulimit -n; ulimit -Hn").await, "1024\n4096\n");
    printed(
        &vm,
        "kill $(pidof sleep); while pidof sleep > /dev/null; do :; done",
    )
    .await;
    assert!(vm.processes().list().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_a_command_leaves_is_listed_and_killed_by_the_name_of_the_command() {
    let vm = start().await;
    let script = "/bin/sleep 1000 <&- >&- 2>&- & setsid /bin/sleep 1001 <&- >&- 2>&- &";
    for tag in ["one", "two", "three"] {
        let command = Command::shell(script).tag(tag);
        assert!(vm.exec_command(command).await.unwrap().success());
    }
    let list = vm.processes().list().await.unwrap();
    assert_eq!(list.len(), 3, "{list:?}");
    for (info, tag) in list.iter().zip(["one", "two", "three"]) {
        assert_eq!((&*info.tag, &info.command[2][..]), (tag, script));
        assert!(!info.background && !info.left_more);
        assert_eq!(info.exit.unwrap().cause, Cause::Code(0));
        // The name is not checked: it depends on whether the process has
        // already executed its program.
        assert_eq!(info.left.len(), 2, "{info:?}");
    }
    let pid = list[2].left[1].pid;
    for name in [list[0].id.into(), "two".into(), ProcessSelector::Pid(pid)] {
        let exit = vm.processes().kill(name).await.unwrap();
        assert_eq!((exit.cause, exit.tree_ended), (Cause::Code(0), Some(true)));
    }
    assert_eq!(printed(&vm, "pidof sleep | wc -w").await, "0\n");
    assert_eq!(vm.processes().list().await.unwrap(), []);
    assert!(vm.processes().kill("two").await.is_err());

    // The list shows only some of many, and `left_more` is set.
    let many = "for i in $(seq 20); do sleep 1000 <&- >&- 2>&- & done";
    let command = Command::shell(many).tag("many");
    assert!(vm.exec_command(command).await.unwrap().success());
    let list = vm.processes().list().await.unwrap();
    assert_eq!((list[0].left.len(), list[0].left_more), (16, true));
    let exit = vm.processes().kill("many").await.unwrap();
    assert_eq!(exit.tree_ended, Some(true));
}
