//! What `run` waits for when no time is set.

use std::time::Duration;

use vmcell::terminal::Status;

use super::{open_shell, start_debian};
use crate::start;

#[tokio::test]
async fn a_silent_program_is_waited_for_until_it_ends() {
    let vm = start().await;
    let terminal = open_shell(&vm).await;
    let script = "echo starts; sleep 3; echo done-$((1 + 1))";
    let reply = terminal.run(script).await.unwrap();
    assert!(reply.text.contains("done-2"), "{reply:?}");
    assert_eq!((reply.status, reply.timed_out), (Status::Ready, false));
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_that_never_asks_takes_the_whole_timeout() {
    let vm = start().await;
    let terminal = open_shell(&vm).await;
    let serving = terminal.run("echo serving; sleep 1000");
    let reply = serving.timeout(Duration::from_secs(4)).await.unwrap();
    assert!(reply.text.contains("serving"), "{reply:?}");
    assert_eq!((reply.status, reply.timed_out), (Status::Running, true));
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_that_reads_without_a_prompt_is_not_waited_for() {
    let vm = start().await;
    let terminal = open_shell(&vm).await;
    for line in ["cat", "hello", "hello again"] {
        let reply = terminal.run(line).await.unwrap();
        assert_eq!((reply.status, reply.timed_out), (Status::Unknown, false));
    }
    assert!(
        terminal
            .screen()
            .text()
            .contains("hello again\nhello again")
    );
    terminal.send_control('d').await.unwrap();
    // It reads later, in a child, and prints nothing before.
    let reply = terminal
        .run("sh -c 'sleep 2; head -n 1; true'")
        .await
        .unwrap();
    assert_eq!((reply.status, reply.timed_out), (Status::Unknown, false));
    let reply = terminal.run("a line").await.unwrap();
    assert_eq!(reply.status, Status::Ready, "{reply:?}");
    vm.kill().await.unwrap();
}

/// Go and Java read in any thread.
#[tokio::test]
async fn a_thread_that_reads_is_found() {
    let vm = start_debian().await;
    let program = "import sys, threading, time\n\
                   def read():\n\
                   \x20   time.sleep(2)\n\
                   \x20   print('got', sys.stdin.readline())\n\
                   thread = threading.Thread(target=read)\n\
                   thread.start()\n\
                   thread.join()\n";
    vm.files().write("/tmp/thread.py", program).await.unwrap();
    let terminal = open_shell(&vm).await;
    let reply = terminal.run("python3 /tmp/thread.py").await.unwrap();
    assert_eq!((reply.status, reply.timed_out), (Status::Unknown, false));
    let reply = terminal.run("a line").await.unwrap();
    assert!(reply.text.contains("got a line"), "{reply:?}");
    assert_eq!(reply.status, Status::Ready);
    vm.kill().await.unwrap();
}
