//! What runs in the guest, where the other machine is the guest's host.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use super::{CONTROL, DATA, FROM_GUEST, FROM_HOST, NOBODY, SIZE, bytes};
use crate::vsock::{VsockListener, connect};

/// Set where this is to run.
pub(super) const ROLE: &str = "VMCELL_TEST_ROLE";

/// How the test below is called.
pub(super) const NAME: &str = "vsock::tests::guest::the_part_that_runs_in_a_guest";

/// What it tells its host.
pub(super) const HAS_COME: u8 = 1;
pub(super) const STILL_WAITS: u8 = 2;
pub(super) const SAYS_NO_MORE: u8 = 3;

/// What its host says when it says no more itself.
pub(super) const LAST_WORD: &[u8] = b"the last word";

/// The machines, as vsock(7) numbers them.
const HOST: u32 = 2;
const ANOTHER_GUEST: u32 = 4;

/// Thirty times what it takes on an idle machine without KVM.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);

#[tokio::test]
async fn the_part_that_runs_in_a_guest() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let all = async {
        let mut control = connect(HOST, CONTROL).await.unwrap();
        nobody_listens().await;
        let data = connect(HOST, DATA).await.unwrap();
        exchange(data, &mut control).await.unwrap();
        the_host_comes(&mut control).await.unwrap();
        others_are_turned_away(&mut control).await.unwrap();
    };
    timeout(TEST_TIMEOUT, all).await.unwrap();
}

async fn nobody_listens() {
    let error = connect(HOST, NOBODY).await.unwrap_err();
    // A kernel at the other end would refuse. This device says nothing, and
    // ours gives up after two seconds.
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
}

/// Sends while it takes what it is sent, then says that it says no more, and
/// still hears the last word.
async fn exchange(mut data: UnixStream, control: &mut UnixStream) -> io::Result<()> {
    let (mut reader, mut writer) = data.split();
    let mut received = vec![0; SIZE];
    let sent = bytes(FROM_GUEST);
    let sending = async {
        writer.write_all(&sent).await?;
        writer.shutdown().await?;
        let error = writer.write_all(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        control.write_u8(SAYS_NO_MORE).await
    };
    tokio::try_join!(reader.read_exact(&mut received), sending)?;
    assert!(received == bytes(FROM_HOST));
    let mut rest = Vec::new();
    data.read_to_end(&mut rest).await?;
    assert_eq!(rest, LAST_WORD);
    Ok(())
}

async fn the_host_comes(control: &mut UnixStream) -> io::Result<()> {
    let listener = VsockListener::bind()?;
    control.write_u32(listener.port()).await?;
    listener.wait_for(HOST).await?;
    control.write_u8(HAS_COME).await
}

async fn others_are_turned_away(control: &mut UnixStream) -> io::Result<()> {
    let listener = VsockListener::bind()?;
    control.write_u32(listener.port()).await?;
    tokio::select! {
        came = listener.wait_for(ANOTHER_GUEST) => panic!("the host is no guest: {came:?}"),
        told = control.read_u8() => assert_eq!(told?, 0),
    }
    control.write_u8(STILL_WAITS).await
}
