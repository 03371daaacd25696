//! Programs that use the whole screen.

use vmcell::terminal::{Key, Status, TerminalSize};

use super::{BRIEFLY, debian, see, settle, shell};

#[tokio::test]
async fn a_pager_is_recognised_and_scrolled() {
    let vm = debian().await;
    let terminal = shell(&vm).await;
    let start = terminal.run("seq 1 500 | less").quiet(BRIEFLY);
    start.await.unwrap();
    settle(&terminal, Status::Pager).await;
    assert!(terminal.screen().alternate);
    terminal.send_input("G").quiet(BRIEFLY).await.unwrap();
    see(&terminal, "^500$").await;
    terminal.send_key(Key::PageUp).quiet(BRIEFLY).await.unwrap();
    see(&terminal, "^450$").await;
    terminal.send_input("?123\r").quiet(BRIEFLY).await.unwrap();
    see(&terminal, "^123$").await;
    terminal.send_input("q").await.unwrap();
    settle(&terminal, Status::Ready).await;
    let screen = terminal.screen();
    assert!(!screen.alternate);
    // What the pager showed is gone, and what was there before is back.
    assert!(
        screen.text().contains("seq 1 500 | less"),
        "{}",
        screen.text()
    );
    assert!(!screen.text().contains("123\n"), "{}", screen.text());
    vm.kill().await;
}

#[tokio::test]
async fn an_editor_writes_a_file_and_redraws_for_a_new_size() {
    let vm = debian().await;
    let terminal = shell(&vm).await;
    let start = terminal.run("vi -u NONE /tmp/note.txt").quiet(BRIEFLY);
    start.await.unwrap();
    settle(&terminal, Status::Editor).await;
    let typing = terminal.send_input("ihello from afar").quiet(BRIEFLY);
    typing.await.unwrap();
    terminal.send_key(Key::Escape).quiet(BRIEFLY).await.unwrap();
    see(&terminal, "hello from afar").await;
    terminal.poll_output().timeout(BRIEFLY).await.unwrap();
    let smaller = TerminalSize::new(60, 12).unwrap();
    terminal.resize(smaller).await.unwrap();
    // It draws everything anew.
    terminal.poll_output().await.unwrap();
    let asking = terminal.run(":set columns? lines?").quiet(BRIEFLY);
    asking.await.unwrap();
    see(&terminal, "columns=60").await;
    terminal.send_key(Key::Enter).quiet(BRIEFLY).await.unwrap();
    terminal.run(":wq").quiet(BRIEFLY).await.unwrap();
    settle(&terminal, Status::Ready).await;
    let written = vm.files().read("/tmp/note.txt").await.unwrap();
    assert_eq!(written, b"hello from afar\n");
    vm.kill().await;
}

#[tokio::test]
async fn a_monitor_runs_until_it_is_told_to_quit() {
    let vm = debian().await;
    let terminal = shell(&vm).await;
    terminal.run("top").quiet(BRIEFLY).await.unwrap();
    see(&terminal, "PID +USER").await;
    settle(&terminal, Status::Running).await;
    terminal.send_input("q").await.unwrap();
    settle(&terminal, Status::Ready).await;
    vm.kill().await;
}

#[tokio::test]
async fn colours_are_on_the_screen_and_in_its_pictures() {
    let vm = debian().await;
    let terminal = shell(&vm).await;
    let line =
        r"printf '\033[38;5;196mred\033[0m \033[38;2;1;2;250mblue\033[0m \033[1;4mloud\033[0m \n'";
    terminal.run(line).await.unwrap();
    let screen = terminal.screen();
    assert!(screen.text().contains("red blue loud"), "{}", screen.text());
    let svg = screen.to_svg();
    assert!(svg.contains("#ff0000") && svg.contains("#0102fa"), "{svg}");
    let picture = screen.to_picture();
    let has = |colour: [u8; 3]| picture.rgba.chunks(4).any(|pixel| pixel[..3] == colour);
    assert!(has([255, 0, 0]) && has([1, 2, 250]));
    vm.kill().await;
}
