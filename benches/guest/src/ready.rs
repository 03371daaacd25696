//! A server that becomes ready on request, and reports the time at which it did.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener},
};

use crate::sys::now;

/// The requests on its connection. Each is answered with a time.
const GET_TIME: u8 = b't';
const BECOME_READY: u8 = b'r';

/// Serves one connection on the port in the variable `vmcell_control`. The variable
/// `vmcell_ready` selects how it becomes ready.
pub(crate) fn serve() -> io::Result<u128> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number("vmcell_control")?))?;
    let (mut control, _) = listener.accept()?;
    control.set_nodelay(true)?;
    let mut ready = None;
    let mut byte = [0];
    while control.read(&mut byte)? > 0 {
        let moment = now();
        match byte[0] {
            GET_TIME => {}
            BECOME_READY => ready = Some(become_ready()?),
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
        control.write_all(&moment.to_le_bytes())?;
    }
    drop(ready);
    Ok(0)
}

/// Returns the listener, which must be kept open.
fn become_ready() -> io::Result<Option<TcpListener>> {
    let what = std::env::var("vmcell_ready").unwrap_or_default();
    match what.split_once(':') {
        Some(("file", path)) => File::create(path).map(|_| None),
        Some(("log", line)) => writeln!(io::stdout(), "{line}").map(|()| None),
        Some(("tcp", port)) => {
            let port: u16 = port.parse().map_err(io::Error::other)?;
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(Some)
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn number(variable: &str) -> io::Result<u16> {
    let value = std::env::var(variable).map_err(io::Error::other)?;
    value.parse().map_err(io::Error::other)
}
