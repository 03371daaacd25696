//! The HTTP API of a VMM, on a Unix socket. Firecracker and Cloud Hypervisor have
//! one each.

use std::{
    io::{self, BufRead, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

use serde_json::Value;

use crate::{error::Error, printable, socket_path::SocketPath};

/// The API of a VMM.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) socket: PathBuf,
}

/// A request to the API.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApiRequest<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// JSON, or nothing.
    pub(super) body: &'a str,
}

/// What to do about a VM that has no API.
pub(super) const NO_API_REMEDY: &str = "enable its API with `with_api`, or choose the backend qemu";

/// Why a VMM that has an API is not confined.
pub(super) const API_WRITES_ANYWHERE: &str =
    "its API saves VMs to folders that are not known when it starts";

/// How long the VMM may take to reply.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The most that is read of a reply. The VMM may be under the control of its guest.
const MAX_REPLY: u64 = 64 * 1024;

impl Api {
    /// Sends a request, and waits for the reply. Returns its body.
    pub(super) fn request(
        &self,
        request: ApiRequest<'_>,
        doing: &'static str,
    ) -> Result<Vec<u8>, Error> {
        self.request_within(REPLY_TIMEOUT, request, doing)
    }

    /// Same as [`request`](Self::request), for what may take longer.
    pub(super) fn request_within(
        &self,
        timeout: Duration,
        request: ApiRequest<'_>,
        doing: &'static str,
    ) -> Result<Vec<u8>, Error> {
        let reason = match self.exchange(timeout, request) {
            Ok((200..300, body)) => return Ok(body),
            Ok((status, body)) => format!("its API replies {status}: {}", printable(&body)),
            Err(error) => format!("its API does not reply: {error}"),
        };
        Err(Error::Control { doing, reason })
    }

    /// Sends a request for JSON, and returns the text in this field of it.
    pub(super) fn text(
        &self,
        path: &'static str,
        field: &'static str,
        doing: &'static str,
    ) -> Result<String, Error> {
        let request = ApiRequest {
            method: "GET",
            path,
            body: "",
        };
        let reply = self.request(request, doing)?;
        let reply: Option<Value> = serde_json::from_slice(&reply).ok();
        let text = reply.as_ref().and_then(|reply| reply.get(field)?.as_str());
        text.map(str::to_owned).ok_or_else(|| Error::Control {
            doing,
            reason: format!("the reply of its API to {path} has no {field}"),
        })
    }

    /// Returns the status and the beginning of the body of the reply.
    fn exchange(&self, timeout: Duration, request: ApiRequest<'_>) -> io::Result<(u16, Vec<u8>)> {
        let ApiRequest { method, path, body } = request;
        let address = SocketPath::open(&self.socket)?;
        let mut socket = UnixStream::connect(address.path())?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes())?;
        socket.write_all(body.as_bytes())?;
        read_reply(BufReader::new(socket).take(MAX_REPLY))
    }
}

/// Reads a reply: its status, and the beginning of its body.
pub(super) fn read_reply(mut reply: impl BufRead) -> io::Result<(u16, Vec<u8>)> {
    let mut line = String::new();
    reply.read_line(&mut line)?;
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .ok_or_else(|| malformed("no status line"))?;
    let mut length = 0;
    loop {
        line.clear();
        if reply.read_line(&mut line)? == 0 {
            return Err(malformed("no end of the headers"));
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| malformed("no length"))?;
        }
    }
    let mut body = Vec::new();
    reply.take(length).read_to_end(&mut body)?;
    Ok((status, body))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the reply is malformed: {what}"),
    )
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    const PAUSE: ApiRequest<'_> = ApiRequest {
        method: "PATCH",
        path: "/vm",
        body: r#"{"state":"Paused"}"#,
    };

    fn pause_at(socket: PathBuf) -> Result<Vec<u8>, Error> {
        Api { socket }.request(PAUSE, "pause the VM")
    }

    /// Pauses through an API that gives this reply. Also returns the request.
    fn pause(reply: &'static str) -> (Result<Vec<u8>, Error>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api");
        let listener = UnixListener::bind(&path).unwrap();
        let serving = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let mut length = 0;
            while !request[..length].ends_with(b"}") {
                length += client.read(&mut request[length..]).unwrap();
            }
            client.write_all(reply.as_bytes()).unwrap();
            String::from_utf8(request[..length].to_vec()).unwrap()
        });
        let result = pause_at(path);
        (result, serving.join().unwrap())
    }

    #[test]
    fn a_request_has_a_length_and_any_success_is_one() {
        let (result, sent) = pause("HTTP/1.1 204 No Content\r\nServer: a\r\n\r\n");
        result.unwrap();
        assert!(sent.starts_with("PATCH /vm HTTP/1.1\r\n"), "{sent}");
        assert!(
            sent.contains("\r\nContent-Length: 18\r\n\r\n{\"state\""),
            "{sent}"
        );
        let (result, _) = pause("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        assert_eq!(result.unwrap(), b"{}");
    }

    #[test]
    fn a_refusal_says_why() {
        let (result, _) = pause("HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\nno\x1b[31m!");
        let reason = result.unwrap_err().to_string();
        let expected = "the VMM could not pause the VM: its API replies 400: no";
        assert!(reason.starts_with(expected), "{reason}");
        assert!(!reason.contains('\x1b'));
    }

    #[test]
    fn nonsense_is_an_error() {
        for reply in ["", "hello\r\n\r\n", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nA: b"] {
            let (result, _) = pause(reply);
            let reason = result.unwrap_err().to_string();
            assert!(reason.contains("malformed"), "{reply:?}: {reason}");
        }
    }

    #[test]
    fn a_socket_that_is_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let _listener = UnixListener::bind(folder.path().join("other")).unwrap();
        let path = folder.path().join("api");
        std::os::unix::fs::symlink(folder.path().join("other"), &path).unwrap();
        let reason = pause_at(path).unwrap_err().to_string();
        assert!(reason.contains("does not reply"), "{reason}");
    }
}
