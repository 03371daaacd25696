//! HTTPS servers of this machine, with certificates of an authority of their own.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response, Version,
    body::{Frame, Incoming},
    http::HeaderValue,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::AbortHandle,
};
use tokio_rustls::TlsAcceptor;

/// An authority that nobody trusts without being told.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "authority of a test");
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        let lines = STANDARD.encode(self.0.der());
        let lines = lines.as_bytes().chunks(64).map(str::from_utf8);
        let text = lines.collect::<Result<Vec<_>, _>>().unwrap().join("\n");
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A request as the server got it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The number of its connection.
    pub(crate) connection: usize,
    pub(crate) version: Version,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: AbortHandle,
}

impl Server {
    /// Serves `name` with TLS, or anybody without.
    pub(crate) async fn start(tls: Option<(&Authority, &str)>) -> Self {
        let acceptor = tls.map(|(authority, name)| authority.acceptor(name));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let task = tokio::spawn(async move {
            for connection in 1.. {
                let Ok((client, _)) = listener.accept().await else {
                    return;
                };
                let (acceptor, log) = (acceptor.clone(), log.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(client, false, connection, log).await,
                        Some(acceptor) => {
                            if let Ok(client) = acceptor.accept(client).await {
                                let is_http2 = client.get_ref().1.alpn_protocol() == Some(b"h2");
                                serve(client, is_http2, connection, log).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            seen,
            task: task.abort_handle(),
        }
    }

    /// Returns the requests since the last call.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    client: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    is_http2: bool,
    connection: usize,
    log: Arc<Mutex<Vec<Seen>>>,
) {
    let service = service_fn(move |request| answer(request, connection, log.clone()));
    let client = TokioIo::new(client);
    // The end of a connection is none of the server's business.
    let _ = match is_http2 {
        true => {
            let server = http2::Builder::new(TokioExecutor::new());
            server.serve_connection(client, service).await
        }
        false => {
            let server = http1::Builder::new();
            server.serve_connection(client, service).await
        }
    };
}

/// The size of a large answer.
pub(crate) const LARGE: usize = 32 * 1024 * 1024;

async fn answer(
    request: Request<Incoming>,
    connection: usize,
    log: Arc<Mutex<Vec<Seen>>>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, hyper::Error> {
    let (parts, mut body) = request.into_parts();
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        received += frame?.into_data().map_or(0, |data| data.len());
    }
    let path = parts.uri.path().to_owned();
    let target = parts.uri.path_and_query().unwrap().to_string();
    let credentials = parts.headers.get("authorization").cloned();
    let credentials = credentials.unwrap_or(HeaderValue::from_static(""));
    log.lock().unwrap().push(Seen {
        connection,
        version: parts.version,
        target: target.clone(),
        headers: parts.headers,
        body: received,
    });
    let echo = format!(
        "{target}\n{}\n{}\n{received}\n",
        credentials.to_str().unwrap(),
        STANDARD.encode(&credentials)
    );
    let full = |bytes: Bytes| Full::new(bytes).boxed_unsync();
    let mut response = Response::new(match path.as_str() {
        "/large" => full(Bytes::from(vec![b'x'; LARGE])),
        // One line, and no end.
        "/endless" => {
            let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from("begun\n")))]);
            let never = futures_util::stream::pending();
            StreamBody::new(futures_util::StreamExt::chain(first, never)).boxed_unsync()
        }
        _ => full(Bytes::from(echo)),
    });
    response.headers_mut().insert("x-echo", credentials);
    if path == "/compressed" {
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert("content-encoding", gzip);
    }
    Ok(response)
}
