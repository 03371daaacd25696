//! Interpreters and debuggers.

use std::time::Duration;

use vmcell::terminal::{Prompt, Status};

use super::{open_shell, start_debian};

#[tokio::test]
async fn python_is_driven_line_by_line() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let reply = terminal.run("python3 -q").await.unwrap();
    assert_eq!((reply.status, reply.prompt), (Status::Repl, Prompt::Python));
    terminal.run("x = 6 * 7").await.unwrap();
    let reply = terminal.run("x").await.unwrap();
    assert!(reply.text.contains("\n42\n"), "{reply:?}");
    assert_eq!((reply.status, reply.prompt), (Status::Repl, Prompt::Python));
    let reply = terminal.run("for i in range(2):").await.unwrap();
    assert_eq!(reply.prompt, Prompt::Python, "{reply:?}");
    let reply = terminal.paste("    print('line', i)\n\n").await.unwrap();
    assert!(reply.text.contains("line 1"), "{reply:?}");
    // An old prompt on the screen is ignored.
    let sleep = terminal.run("import time; time.sleep(1000)");
    let reply = sleep.quiet(Duration::from_secs(1)).await.unwrap();
    assert_eq!(
        (reply.status, reply.prompt),
        (Status::Running, Prompt::None)
    );
    let reply = terminal.send_control('c').await.unwrap();
    assert!(reply.text.contains("KeyboardInterrupt"), "{reply:?}");
    assert_eq!(reply.status, Status::Repl);
    let reply = terminal.send_control('d').await.unwrap();
    assert_eq!((reply.status, reply.prompt), (Status::Ready, Prompt::Shell));
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_debugger_keeps_its_state_between_steps() {
    let vm = start_debian().await;
    let program = "def f(n):\n    total = n\n    total += 1\n    return total\nf(41)\n";
    let files = vm.files();
    files.write("/tmp/program.py", program).await.unwrap();
    let terminal = open_shell(&vm).await;
    let reply = terminal
        .run("python3 -m pdb /tmp/program.py")
        .await
        .unwrap();
    assert_eq!((reply.status, reply.prompt), (Status::Repl, Prompt::Pdb));
    terminal.run("b 4").await.unwrap();
    terminal.run("c").await.unwrap();
    let reply = terminal.run("p total").await.unwrap();
    assert!(reply.text.contains("\n42\n"), "{reply:?}");
    assert_eq!(reply.prompt, Prompt::Pdb);
    let reply = terminal.run("q").await.unwrap();
    assert_eq!(reply.status, Status::Ready);
    vm.kill().await.unwrap();
}
