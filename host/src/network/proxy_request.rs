use std::{fmt, net::IpAddr};

use bytes::{Bytes, BytesMut};

use super::connecting::{WantedConnection, WantedTarget};

/// What a program asks of the proxy.
#[derive(Debug)]
pub(super) struct ProxyRequest {
    pub(super) wanted: WantedConnection,
    pub(super) kind: ProxyRequestKind,
    /// What the program has sent after the request's head.
    pub(super) rest: Bytes,
}

#[derive(Debug)]
pub(super) enum ProxyRequestKind {
    /// A connection of its own.
    Tunnel,
    /// A request that the proxy passes on: its head, as the server is to get it.
    Forward(Vec<u8>),
}

/// What the proxy does not understand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadRequest(&'static str);

/// The most fields that a request may have.
const MAX_FIELDS: usize = 100;

/// The longest head of a request in bytes.
const MAX_HEAD: usize = 32 * 1024;

const TOO_LONG: BadRequest = BadRequest("the head of the request is too long");

impl ProxyRequest {
    /// Reads a request from the bytes that have come so far; `None` if its head is not
    /// whole yet.
    ///
    /// # Errors
    /// They are not a request to a proxy, or it is too long.
    pub(super) fn parse(received: &mut BytesMut) -> Result<Option<Self>, BadRequest> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = match request.parse(received) {
            Ok(httparse::Status::Partial) if received.len() >= MAX_HEAD => return Err(TOO_LONG),
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(length)) => length,
            Err(httparse::Error::TooManyHeaders) => return Err(TOO_LONG),
            Err(_) => return Err(BadRequest("this is not a request of HTTP/1")),
        };
        let (Some(method), Some(target), Some(minor)) =
            (request.method, request.path, request.version)
        else {
            return Err(BadRequest("the request is not whole"));
        };
        let (wanted, kind) = match method {
            "CONNECT" => (connection(target, None)?, ProxyRequestKind::Tunnel),
            _ => {
                let (authority, path) = http_url(target)?;
                let head = format!("{method} {path} HTTP/1.{minor}\r\nHost: {authority}\r\n");
                let kind = ProxyRequestKind::Forward(forwarded(head, request.headers));
                (connection(authority, Some(80))?, kind)
            }
        };
        let rest = received.split_off(parsed).freeze();
        Ok(Some(Self { wanted, kind, rest }))
    }
}

/// Splits a URL into its host with port, and its path.
fn http_url(url: &str) -> Result<(&str, String), BadRequest> {
    let scheme = url.get(..7).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("http://") {
        return Err(BadRequest(
            "a request to a proxy names an http:// URL, or is a CONNECT",
        ));
    }
    let rest = url.get(7..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    Ok((authority, path))
}

/// Reads the host and the port of a URL.
fn connection(authority: &str, default_port: Option<u16>) -> Result<WantedConnection, BadRequest> {
    const BAD: BadRequest = BadRequest("the request does not name a host and a port");
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(BAD)?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().map_err(|_| BAD)?
        }
        None if port.is_empty() => default_port.ok_or(BAD)?,
        Some(_) | None => return Err(BAD),
    };
    let target = match host.parse::<IpAddr>() {
        Ok(address) => WantedTarget::Address(address),
        Err(_) if host.is_empty() || authority.starts_with('[') => return Err(BAD),
        Err(_) => WantedTarget::from_name(host),
    };
    Ok(WantedConnection { target, port })
}

/// Adds the fields of a request to its head, but for those that are meant for the proxy.
/// The server is told to close the connection, so that the next request comes to the
/// proxy again.
fn forwarded(head: String, fields: &[httparse::Header<'_>]) -> Vec<u8> {
    const NOT_PASSED_ON: [&str; 5] = [
        "Connection",
        "Host",
        "Keep-Alive",
        "Proxy-Authorization",
        "Proxy-Connection",
    ];
    let mut head = head.into_bytes();
    for field in fields {
        let is_field = |name: &&str| name.eq_ignore_ascii_case(field.name);
        if !NOT_PASSED_ON.iter().any(is_field) {
            head.extend([field.name.as_bytes(), b": ", field.value, b"\r\n"].concat());
        }
    }
    head.extend(b"Connection: close\r\n\r\n");
    head
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Option<ProxyRequest>, BadRequest> {
        ProxyRequest::parse(&mut BytesMut::from(bytes))
    }

    fn wanted(head: &str) -> String {
        parse(head.as_bytes())
            .unwrap()
            .unwrap()
            .wanted
            .wanted()
            .to_string()
    }

    #[test]
    fn a_tunnel_keeps_what_comes_after_its_head() {
        let request = parse(b"CONNECT a.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\nhello").unwrap();
        let request = request.unwrap();
        assert_eq!(request.wanted.wanted().to_string(), "a.test:443");
        assert!(matches!(request.kind, ProxyRequestKind::Tunnel));
        assert_eq!(&request.rest[..], b"hello");
    }

    #[test]
    fn a_request_is_passed_on_to_the_host_of_its_url() {
        let head = b"GET http://a.test:8080/x?y#z HTTP/1.1\r\nhost: b.test\r\nAccept: */*\r\n\
            Proxy-Authorization: secret\r\nproxy-connection: keep-alive\r\n\r\nbody";
        let request = parse(head).unwrap().unwrap();
        assert_eq!(request.wanted.wanted().to_string(), "a.test:8080");
        let ProxyRequestKind::Forward(head) = request.kind else {
            panic!("not passed on");
        };
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "GET /x?y#z HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(&request.rest[..], b"body");
    }

    #[test]
    fn hosts_are_read_in_all_their_forms() {
        assert_eq!(wanted("GET http://a.test HTTP/1.0\r\n\r\n"), "a.test:80");
        assert_eq!(wanted("GET HTTP://a.test?b HTTP/1.0\r\n\r\n"), "a.test:80");
        assert_eq!(wanted("CONNECT [::1]:1 HTTP/1.1\r\n\r\n"), "[::1]:1");
        assert_eq!(wanted("CONNECT 10.0.0.1:1 HTTP/1.1\r\n\r\n"), "10.0.0.1:1");
    }

    #[test]
    fn what_is_no_request_to_a_proxy_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.test/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://user@a.test:/ HTTP/1.1\r\n\r\n",
            "CONNECT a.test HTTP/1.1\r\n\r\n",
            "CONNECT a.test:0x50 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:+80 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:65536 HTTP/1.1\r\n\r\n",
            "CONNECT [a.test]:80 HTTP/1.1\r\n\r\n",
            "CONNECT [::1:80 HTTP/1.1\r\n\r\n",
            "CONNECT [::1]80 HTTP/1.1\r\n\r\n",
            "\u{16}\u{3}\u{1}",
        ] {
            assert!(parse(head.as_bytes()).is_err(), "{head}");
        }
        // Not a name, which the policy refuses.
        assert!(wanted("GET http://user@a.test/ HTTP/1.1\r\n\r\n").starts_with("user@a.test"));
    }

    #[test]
    fn a_head_without_an_end_is_refused_when_it_is_long() {
        let start = "CONNECT a.test:1 HTTP/1.1\r\nA: ";
        assert!(matches!(parse(start.as_bytes()), Ok(None)));
        let long = format!("{start}{}", "a".repeat(MAX_HEAD));
        assert_eq!(parse(long.as_bytes()).unwrap_err(), TOO_LONG);
        let many = format!("CONNECT a.test:1 HTTP/1.1\r\n{}", "A: b\r\n".repeat(101));
        assert_eq!(parse(many.as_bytes()).unwrap_err(), TOO_LONG);
    }
}
