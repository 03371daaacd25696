//! One request of a program, and its answer.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response, StatusCode, Uri, Version,
    body::Incoming,
    client::conn::{http1, http2},
    ext::ReasonPhrase,
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{self, Entry},
        request::Parts,
        uri::{Authority, Scheme},
    },
};
use tokio::sync::Mutex;

use super::{
    BrokeredHost,
    brokered_host::Transport,
    masked_body::{MaskedBody, mask_headers},
};
use crate::network::HostName;

/// Passes requests of one connection on to a host.
pub(super) struct Exchange {
    pub(super) host: Arc<BrokeredHost>,
    pub(super) upstream: UpstreamSender,
}

/// The connection to a host.
pub(super) enum UpstreamSender {
    Http1(Mutex<http1::SendRequest<Incoming>>),
    Http2(http2::SendRequest<Incoming>),
    /// There is none. Contains why.
    Failed(String),
}

pub(super) type AnswerBody = Either<MaskedBody<Incoming>, Full<Bytes>>;

/// Headers of one connection: RFC 9110, 7.6.1. `Trailer` is not one of them.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Headers that are not passed on. `Expect` was answered by then.
const NOT_PASSED_ON: [HeaderName; 3] = [header::EXPECT, header::RANGE, header::IF_RANGE];

const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");

/// Why the broker answers itself.
struct Refused(StatusCode, String);

impl Exchange {
    /// Puts values into a request, sends it and masks them in its answer.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let answered = match self.prepare(request) {
            Ok(request) => self.send(request).await,
            Err(refused) => Err(refused),
        };
        let answered = answered.and_then(|answer| self.checked(answer));
        answered.unwrap_or_else(|Refused(status, text)| {
            tracing::debug!(host = %self.host.name, %status, text, "a request is refused");
            let body = Bytes::from(format!("vmcell: {text}\n"));
            let mut answer = Response::new(Either::Right(Full::new(body)));
            *answer.status_mut() = status;
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            answer.headers_mut().insert(header::CONTENT_TYPE, plain);
            answer
        })
    }

    fn prepare(&self, request: Request<Incoming>) -> Result<Request<Incoming>, Refused> {
        let (mut parts, body) = request.into_parts();
        self.host.prepare(&mut parts)?;
        for secret in &self.host.secrets {
            secret.apply(&mut parts);
        }
        Ok(Request::from_parts(parts, body))
    }

    async fn send(&self, request: Request<Incoming>) -> Result<Response<Incoming>, Refused> {
        let answered = match &self.upstream {
            UpstreamSender::Http1(sender) => {
                let mut sender = sender.lock().await;
                match sender.ready().await {
                    Ok(()) => sender.send_request(request).await,
                    Err(error) => Err(error),
                }
            }
            UpstreamSender::Http2(sender) => sender.clone().send_request(request).await,
            UpstreamSender::Failed(why) => return Err(bad_gateway(&self.host, why)),
        };
        answered.map_err(|error| bad_gateway(&self.host, &error.to_string()))
    }

    fn checked(&self, answer: Response<Incoming>) -> Result<Response<AnswerBody>, Refused> {
        let (mut parts, body) = answer.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(bad_gateway(&self.host, "it switches the protocol"));
        }
        let plain = [
            (header::CONTENT_ENCODING, IDENTITY),
            (header::TRANSFER_ENCODING, CHUNKED),
        ];
        for (name, plain) in plain {
            let mut codings = parts.headers.get_all(name).iter();
            if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(plain.as_bytes())) {
                let why = "its answer is compressed, and may hide the value of a secret";
                return Err(bad_gateway(&self.host, why));
            }
        }
        remove_hop_by_hop(&mut parts.headers);
        parts.extensions.remove::<ReasonPhrase>();
        mask_headers(&mut parts.headers, &self.host.masked);
        let body = MaskedBody::new(body, self.host.masked.clone());
        Ok(Response::from_parts(parts, Either::Left(body)))
    }
}

impl BrokeredHost {
    /// Checks that a request is to this host, and makes it one of the broker.
    fn prepare(&self, request: &mut Parts) -> Result<(), Refused> {
        let refused = |status, text: &str| Refused(status, text.to_owned());
        if !self.is_host_of(request) {
            let text = format!(
                "this connection is to {}, and the request is not",
                self.name
            );
            return Err(Refused(StatusCode::MISDIRECTED_REQUEST, text));
        }
        let upgrade = request.headers.get(header::UPGRADE);
        let switches = upgrade.is_some_and(|to| !to.as_bytes().eq_ignore_ascii_case(b"h2c"));
        if switches || request.method == Method::CONNECT {
            let text = "the protocol cannot be switched on a connection with brokered secrets";
            return Err(refused(StatusCode::NOT_IMPLEMENTED, text));
        }
        let headers = &mut request.headers;
        for name in NOT_PASSED_ON {
            headers.remove(name);
        }
        headers.insert(header::ACCEPT_ENCODING, IDENTITY);
        let authority = self.authority();
        let mut uri = std::mem::take(&mut request.uri).into_parts();
        let bad = |_| refused(StatusCode::BAD_REQUEST, "this is not a URI");
        if request.version == Version::HTTP_2 {
            headers.remove(header::HOST);
            uri.scheme = Some(Scheme::HTTPS);
            uri.authority = Some(Authority::try_from(authority.as_str()).map_err(bad)?);
        } else {
            let is_chunked = headers.contains_key(header::TRANSFER_ENCODING);
            remove_hop_by_hop(headers);
            if is_chunked {
                headers.remove(header::CONTENT_LENGTH);
                headers.insert(header::TRANSFER_ENCODING, CHUNKED);
            }
            let host = HeaderValue::try_from(authority);
            let host = host.map_err(|_| refused(StatusCode::BAD_REQUEST, "this is not a host"))?;
            match headers.entry(header::HOST) {
                Entry::Occupied(mut old) => drop(old.insert(host)),
                Entry::Vacant(none) => drop(none.insert(host)),
            }
            request.version = Version::HTTP_11;
            (uri.scheme, uri.authority) = (None, None);
        }
        let bad = |_| refused(StatusCode::BAD_REQUEST, "this is not a URI");
        request.uri = Uri::from_parts(uri).map_err(bad)?;
        Ok(())
    }

    /// Returns whether all that a request says about its host names this one.
    fn is_host_of(&self, request: &Parts) -> bool {
        let authority = request.uri.authority().map(|it| it.as_str().as_bytes());
        let hosts = request.headers.get_all(header::HOST).iter();
        let mut named = authority
            .into_iter()
            .chain(hosts.map(HeaderValue::as_bytes));
        // Only a request of HTTP/1.0 may name none.
        let is_old = request.version == Version::HTTP_10;
        match named.next() {
            None => is_old,
            Some(first) => self.is_named(first) && named.all(|name| self.is_named(name)),
        }
    }

    fn is_named(&self, authority: &[u8]) -> bool {
        let Ok(authority) = str::from_utf8(authority) else {
            return false;
        };
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (authority, Some(self.port)),
        };
        port == Some(self.port) && HostName::new(name).as_ref() == Ok(&self.name)
    }

    /// Returns the host as requests name it.
    fn authority(&self) -> String {
        let default_port = match self.transport {
            Transport::Plain => 80,
            Transport::Tls(_) => 443,
        };
        match self.port == default_port {
            true => self.name.to_string(),
            false => format!("{}:{}", self.name, self.port),
        }
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|names| names.split(','));
    let named = named.filter_map(|name| HeaderName::try_from(name.trim()).ok());
    let named: Vec<_> = named.collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

fn bad_gateway(host: &BrokeredHost, why: &str) -> Refused {
    Refused(StatusCode::BAD_GATEWAY, format!("{}: {why}", host.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redaction::SecretSet;

    fn host(port: u16) -> BrokeredHost {
        BrokeredHost {
            name: HostName::new("api.test").unwrap(),
            port,
            transport: Transport::Plain,
            secrets: Vec::new(),
            masked: Arc::new(SecretSet::new([], [])),
        }
    }

    fn prepared(
        host: &BrokeredHost,
        version: Version,
        uri: &str,
        headers: &[(&str, &str)],
    ) -> Result<Parts, u16> {
        let mut request = Request::builder().version(version).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let prepared = host.prepare(&mut parts);
        prepared.map_err(|Refused(status, _)| status.as_u16())?;
        Ok(parts)
    }

    #[test]
    fn requests_to_another_host_are_refused() {
        let v11 = Version::HTTP_11;
        for (uri, headers) in [
            ("/", &[][..]),
            ("/", &[("host", "other.test")]),
            ("/", &[("host", "api.test.other.test")]),
            ("/", &[("host", "api.test@other.test")]),
            ("/", &[("host", "api.test:81")]),
            ("/", &[("host", "api.test:")]),
            ("/", &[("host", "api.test"), ("host", "other.test")]),
            ("http://other.test/", &[("host", "api.test")]),
            ("http://api.test/", &[("host", "other.test")]),
            ("http://user@api.test/", &[("host", "api.test")]),
        ] {
            let refused = prepared(&host(80), v11, uri, headers).unwrap_err();
            assert_eq!(refused, 421, "{uri} {headers:?}");
        }
        let h2 = prepared(&host(443), Version::HTTP_2, "https://other.test/", &[]);
        assert_eq!(h2.unwrap_err(), 421);
    }

    #[test]
    fn a_request_gets_one_host_and_the_form_of_its_version() {
        for (version, uri, headers) in [
            (Version::HTTP_11, "/a?b", &[("host", "API.test.:8080")][..]),
            (
                Version::HTTP_11,
                "http://api.test/a?b",
                &[("host", "api.test")],
            ),
            (Version::HTTP_10, "/a?b", &[]),
        ] {
            let parts = prepared(&host(8080), version, uri, headers).unwrap();
            assert_eq!(parts.headers.get_all("host").iter().count(), 1);
            assert_eq!(parts.headers["host"], "api.test:8080");
            assert_eq!(parts.uri, "/a?b");
        }
        let uri = "https://api.test:8443/a?b";
        let parts = prepared(&host(8443), Version::HTTP_2, uri, &[("host", "api.test")]).unwrap();
        assert_eq!(parts.uri, uri);
        assert!(!parts.headers.contains_key("host"));
    }

    #[test]
    fn what_is_for_one_connection_is_not_passed_on() {
        let headers = [
            ("host", "api.test"),
            ("connection", "keep-alive, X-Own"),
            ("x-own", "x"),
            ("x-other", "x"),
            ("keep-alive", "5"),
            ("proxy-authorization", "x"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("accept-encoding", "gzip"),
            ("range", "bytes=0-1"),
            ("upgrade", "h2c"),
        ];
        let parts = prepared(&host(80), Version::HTTP_11, "/", &headers).unwrap();
        let mut names: Vec<_> = parts.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = ["accept-encoding", "host", "transfer-encoding", "x-other"];
        assert_eq!(names, expected);
        assert_eq!(parts.headers["accept-encoding"], "identity");
        let headers = [("host", "api.test"), ("upgrade", "websocket")];
        let refused = prepared(&host(80), Version::HTTP_11, "/", &headers);
        assert_eq!(refused.unwrap_err(), 501);
    }
}
