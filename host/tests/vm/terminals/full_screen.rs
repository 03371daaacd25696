//! Programs that use the whole screen.

use vmcell::terminal::{Key, Status, TerminalSize};

use super::{SHORT, open_shell, start_debian, wait_for_status, wait_for_text};

#[tokio::test]
async fn a_pager_is_recognised_and_scrolled() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let start = terminal.run("seq 1 500 | less").quiet(SHORT);
    start.await.unwrap();
    wait_for_status(&terminal, Status::Pager).await;
    assert!(terminal.screen().alternate);
    terminal.send_input("G").quiet(SHORT).await.unwrap();
    wait_for_text(&terminal, "^500$").await;
    terminal.send_key(Key::PageUp).quiet(SHORT).await.unwrap();
    wait_for_text(&terminal, "^450$").await;
    terminal.send_input("?123\r").quiet(SHORT).await.unwrap();
    wait_for_text(&terminal, "^123$").await;
    terminal.send_input("q").await.unwrap();
    wait_for_status(&terminal, Status::Ready).await;
    let screen = terminal.screen();
    assert!(!screen.alternate);
    // The main screen is restored.
    assert!(
        screen.text().contains("seq 1 500 | less"),
        "{}",
        screen.text()
    );
    assert!(!screen.text().contains("123\n"), "{}", screen.text());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn an_editor_writes_a_file_and_redraws_for_a_new_size() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let start = terminal.run("vi -u NONE /tmp/note.txt").quiet(SHORT);
    start.await.unwrap();
    wait_for_status(&terminal, Status::Editor).await;
    let typing = terminal.send_input("ihello from afar").quiet(SHORT);
    typing.await.unwrap();
    terminal.send_key(Key::Escape).quiet(SHORT).await.unwrap();
    wait_for_text(&terminal, "hello from afar").await;
    terminal.poll_output().timeout(SHORT).await.unwrap();
    let smaller = TerminalSize::new(60, 12).unwrap();
    terminal.resize(smaller).await.unwrap();
    // It redraws everything.
    terminal.poll_output().await.unwrap();
    let asking = terminal.run(":set columns? lines?").quiet(SHORT);
    asking.await.unwrap();
    wait_for_text(&terminal, "columns=60").await;
    terminal.send_key(Key::Enter).quiet(SHORT).await.unwrap();
    terminal.run(":wq").quiet(SHORT).await.unwrap();
    wait_for_status(&terminal, Status::Ready).await;
    let written = vm.files().read("/tmp/note.txt").await.unwrap();
    assert_eq!(written, b"hello from afar\n");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_monitor_runs_until_it_is_told_to_quit() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    terminal.run("top").quiet(SHORT).await.unwrap();
    wait_for_text(&terminal, "PID +USER").await;
    wait_for_status(&terminal, Status::Running).await;
    terminal.send_input("q").await.unwrap();
    wait_for_status(&terminal, Status::Ready).await;
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn colours_are_on_the_screen_and_in_its_pictures() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
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
    vm.kill().await.unwrap();
}
